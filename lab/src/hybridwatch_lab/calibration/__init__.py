"""How often our own rules are right: false alarms and power, measured on what is shipped.

``python -m hybridwatch_lab.calibration`` simulates reports and histories whose truth is
known, hands them to the functions that users call, and writes ``docs/calibration.md``. ``noise``
and ``simulated`` make the data; ``reports``, ``comparisons``, ``accuracy``, ``synthetic``,
``online`` and ``speed`` put the questions; ``rivals`` holds rules in use elsewhere; ``figure`` is
what comes out and ``tables`` how it is written.
"""
