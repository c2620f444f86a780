"""What runs suites and nights, and what they share with the verbs and the dashboard."""
