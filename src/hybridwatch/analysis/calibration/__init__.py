"""Figures of how often our own rules are right, as ``docs/calibration.json`` has them."""
