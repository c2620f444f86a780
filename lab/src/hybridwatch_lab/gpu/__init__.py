"""A machine with a GPU for half an hour: what goes there, what it measures, what came of it."""
