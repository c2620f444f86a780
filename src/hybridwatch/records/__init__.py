"""A run as it is kept: who was measured, where, and every raw value.

``identity`` says what was measured and on which machine, ``run`` holds the values, ``codec`` is
the file form. The producing and the reading side of the library meet here.
"""
