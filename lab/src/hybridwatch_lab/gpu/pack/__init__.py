"""Prepares an environment as files for a machine with a GPU, before it is rented."""
