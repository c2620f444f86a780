"""Probes: what an engine tells about itself while it works. Each costs nothing while it is off."""
