"""The verbs that this distribution adds to hybridwatch; entry points name them."""

from typing import Final

from hybridwatch.cli.main import Verb

_COMMANDS: Final = "hybridwatch_lab.commands"
_LAB: Final = "hybridwatch-lab"

MUTANTS: Final = Verb(
    "Plant faults in a live engine, and count which are found.",
    *(f"{_COMMANDS}.mutants", _LAB),
    after="oracle",
)
FUZZ: Final = Verb(
    "Fuzz an engine.",
    *(f"{_COMMANDS}.fuzz", _LAB),
    after="oracle",
)
GPU: Final = Verb(
    "Prepare a rented GPU, and measure what matters most.",
    *(f"{_COMMANDS}.gpu", _LAB),
    after="openmetrics",
)
FINDINGS: Final = Verb(
    "Write the page of figures measured on GPUs.",
    *(f"{_COMMANDS}.findings", _LAB),
    after="releases",
)
