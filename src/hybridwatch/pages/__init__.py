"""The pages of the dashboard as documents, and as HTML, live and saved."""
