"""Plotly figures of reports and series. Nothing else imports plotly."""
