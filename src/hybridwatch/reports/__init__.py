"""What is known, in words: for a terminal, as Markdown, as JSON."""
