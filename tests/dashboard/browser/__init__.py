"""Tests that share one browser; a worker takes the folder whole (``tests/order.py``)."""
