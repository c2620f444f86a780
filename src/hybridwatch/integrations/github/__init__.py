"""What comes from GitHub and goes there: one comment, one check, and a stranger's record bundle."""
