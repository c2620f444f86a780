"""Tokens of programs that use the API."""

import sqlalchemy as sa
from alembic import op

from hybridwatch.database.schema import Moment

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "api_token",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("made_at", Moment, nullable=False),
        sa.Column("expires_at", Moment),
        sa.Column("revoked_at", Moment),
        sa.Column("used_at", Moment),
    )
