"""What a fleet of hosts is to measure, has measured, and where."""

import sqlalchemy as sa
from alembic import op

from hybridwatch.database.schema import Moment

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables."""
    _make_jobs()
    _make_hosts()


def _make_jobs() -> None:
    op.create_table(
        "fleet_testbed",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("declared", sa.Text, nullable=False),
    )
    op.create_table(
        "fleet_job",
        sa.Column("key", sa.String(16), primary_key=True),
        sa.Column("night", sa.Text, nullable=False),
        sa.Column("purpose", sa.String(16), nullable=False),
        sa.Column("scenario", sa.Text, nullable=False),
        sa.Column("builds", sa.Text, nullable=False),
        sa.Column("testbed", sa.String(64), nullable=False),
        sa.Column("series", sa.Text, nullable=False),
        sa.Column("wish", sa.Text, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("planned_at", Moment, nullable=False),
        sa.Column("until", Moment, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("deaths", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("cancel", sa.Boolean, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
    )
    op.create_index("fleet_job_by_state", "fleet_job", ["state", "until"])
    op.create_index("fleet_job_by_night", "fleet_job", ["night", "state"])
    op.create_table(
        "fleet_attempt",
        sa.Column("job", sa.String(16), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("driver", sa.String(32), nullable=False),
        sa.Column("started_at", Moment, nullable=False),
        sa.Column("ended_at", Moment),
        sa.Column("end", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("log", sa.Text, nullable=False),
    )
    op.create_index("fleet_attempt_by_end", "fleet_attempt", ["end", "driver"])


def _make_hosts() -> None:
    op.create_table(
        "fleet_host",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("labels", sa.Text, nullable=False),
        sa.Column("gpus", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("since", Moment, nullable=False),
        sa.Column("seen_at", Moment, nullable=False),
        sa.Column("job", sa.Text, nullable=False),
    )
    op.create_table(
        "fleet_proof",
        sa.Column("host", sa.Text, primary_key=True),
        sa.Column("at", Moment, primary_key=True, autoincrement=False),
        sa.Column("facts", sa.Text, nullable=False),
        sa.Column("kernel_s", sa.Double),
        sa.Column("a_a", sa.Double),
        sa.Column("passed", sa.Boolean, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_table(
        "fleet_placement",
        sa.Column("series", sa.Text, primary_key=True),
        sa.Column("host", sa.Text, primary_key=True),
        sa.Column("since", Moment, nullable=False),
    )
    op.create_table(
        "fleet_driver",
        sa.Column("name", sa.String(32), primary_key=True),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("started_at", Moment, nullable=False),
        sa.Column("beat_at", Moment, nullable=False),
        sa.Column("ended", sa.Boolean, nullable=False),
    )
