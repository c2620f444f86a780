"""A report in words and as JSON, as every place that shows or keeps one has it."""
