"""What a CPU engine lacks to show the bugs of a GPU engine."""
