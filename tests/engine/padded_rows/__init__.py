"""Tests that share one engine; a worker takes the folder whole (``tests/order.py``)."""
