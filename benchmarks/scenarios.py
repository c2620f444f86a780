"""``smoke.padded_graph_rows.PaddedGraphRows`` and so on: a class for each scenario file.

A file that is wrong has one benchmark, which fails and says what is wrong; it hides no other file.
"""

from hybridwatch.orchestration.nightly.suite import suites
from hybridwatch.system.home import home

globals().update(suites(home() / "scenarios", "benchmarks"))
