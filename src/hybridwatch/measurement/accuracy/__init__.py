"""Accuracy: the tasks, how they are put to an endpoint, and their scores."""
