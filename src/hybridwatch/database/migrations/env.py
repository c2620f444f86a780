"""Runs the migrations on the connection that holds the writer's lock."""

from alembic import context

from hybridwatch.database.connection import VERSIONS

context.configure(connection=context.config.attributes["connection"], version_table=VERSIONS)
context.run_migrations()
