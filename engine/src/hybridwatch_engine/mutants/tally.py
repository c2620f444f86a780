"""How often a mutant's code ran, and how often it changed something."""


class Tally:
    """The two counters of one mutant in one process.

    Attributes:
        reached: Calls in which the mutant had something to work on.
        changed: Those of them in which it left something else than was there.
    """

    def __init__(self) -> None:
        self.reached = 0
        self.changed = 0

    def count(self, *, changed: bool) -> None:
        """Note one call."""
        self.reached += 1
        self.changed += changed

    def clear(self) -> None:
        """Begin from zero."""
        self.reached = self.changed = 0
