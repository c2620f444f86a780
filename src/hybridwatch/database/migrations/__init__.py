"""What Alembic runs; ``database.migration`` starts it."""
