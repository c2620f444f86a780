"""Whether the answers are still right: tasks, how they are asked of an endpoint, and the scores."""
