"""Ninety nights of six scenarios on three testbeds, with planted faults whose truth is known.

::

    python -m tests.planted_world --out DIR --seed 1
    python -m tests.planted_world --out DIR --seed 1 --nothing start-luck
    python -m tests.planted_world score DIR

Nothing in it was measured, and no engine runs; the records are real ones, written by the store.
``plan`` says what is planted where, ``records`` makes the runs, ``replay`` goes through the nights
as a person on duty would. ``questions`` asks the product, one function for each question; ``told``
finds the fault that an alert is about, ``needs`` says what a reader must be told of each kind, and
``score`` puts it together.
"""
