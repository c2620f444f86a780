"""The machine below: processes, files, locks, terminals, and where things lie."""
