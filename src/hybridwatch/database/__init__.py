"""What every screen needs of a store, without reading a record again.

The database keeps what the records gave (runs, one number per trial, verdicts) and, apart from
that, what people decided.
"""
