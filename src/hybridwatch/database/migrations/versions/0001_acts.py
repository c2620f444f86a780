"""What people did about alerts; a table of before there were migrations stays as it is."""

import sqlalchemy as sa
from alembic import op

from hybridwatch.database.schema import Utc

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "triage_act",
        sa.Column("alert", sa.String(32), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("about", sa.Text, nullable=False),
        sa.Column("at", Utc, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("deed", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("until", Utc),
        sa.Column("seen_run", sa.Text, nullable=False),
        sa.Column("seen_started_at", Utc, nullable=False),
        sa.Column("seen_verdict", sa.Text, nullable=False),
        sa.Column("seen_effect", sa.Double),
        sa.Column("seen_rank", sa.Text, nullable=False),
        if_not_exists=True,
    )
