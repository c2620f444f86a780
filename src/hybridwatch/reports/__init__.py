"""Reports as text, Markdown, CSV and JSON; ``figures`` draws them."""
