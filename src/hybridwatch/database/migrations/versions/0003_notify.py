"""How each channel stands, and the messages that are on their way."""

import sqlalchemy as sa
from alembic import op

from hybridwatch.database.schema import Moment

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "notify_told",
        sa.Column("channel", sa.String(64), primary_key=True),
        sa.Column("topic", sa.String(32), primary_key=True),
        sa.Column("standing", sa.String(16), nullable=False),
        sa.Column("seen", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("messages", sa.Integer, nullable=False),
        sa.Column("place", sa.Text, nullable=False),
    )
    op.create_table(
        "notify_message",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("channel", sa.String(64), nullable=False),
        sa.Column("topic", sa.String(32), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("news", sa.String(16), nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("made_at", Moment, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("trouble", sa.Text, nullable=False),
        sa.Column("sent_at", Moment),
    )
    op.create_index("notify_message_by_channel", "notify_message", ["channel", "sent_at"])
