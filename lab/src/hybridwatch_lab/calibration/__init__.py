"""How often our own rules are right: false alarms and power, measured on what is shipped.

``python -m hybridwatch_lab.calibration`` simulates reports and histories whose truth is known,
hands them to the functions that users call, and writes ``lab/docs/calibration.md``. ``simulated``
makes the data; ``reports``, ``comparisons``, ``accuracy``, ``synthetic``, ``online``, ``places``
and ``speed`` put the questions; ``rivals`` holds rules in use elsewhere; ``laboratory`` is what
comes out and how it is written.
"""
