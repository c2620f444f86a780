"""What Alembic runs; ``database.connection`` starts it."""
