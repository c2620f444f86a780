"""The command line: a file for each verb or few that belong together, shells of the library."""
