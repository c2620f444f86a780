"""Probes: counts and times of an engine while it works. Each costs nothing while it is off."""
