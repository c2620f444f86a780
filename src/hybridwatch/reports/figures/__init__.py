"""What is known, drawn. Nobody else imports plotly."""
