"""Whether the answers are still right: tasks, how an endpoint gets them, and the scores."""
