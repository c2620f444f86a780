"""GitHub: our comment and check on a pull request, commands in comments, records from forks."""
