"""What a search can measure: a build that is there, or one that is made when its turn comes."""

from collections.abc import Callable
from dataclasses import dataclass

from hybridwatch.engines.commits import Commit


@dataclass(frozen=True, slots=True)
class Candidate:
    """One position of a search.

    Attributes:
        key: What it is, the same in every call: a build, a commit.
        title: How it is called in what a person reads.
        make: Makes it, and gives the label of its build; raises ``BuildError`` if it cannot be had.
        weight: How likely it is to be the change, beside the others; for times.
        commit: Of a clone, where it is one.
    """

    key: str
    title: str
    make: Callable[[], str]
    weight: float = 1.0
    commit: Commit | None = None


@dataclass(frozen=True, slots=True)
class Rung:
    """Candidates in order, the ends included.

    Attributes:
        name: What they are: ``releases``, ``commits``, ``files`` or ``builds``.
        candidates: Two or more; the earlier end first.
    """

    name: str
    candidates: tuple[Candidate, ...]

    @property
    def ends(self) -> tuple[Candidate, Candidate]:
        """The earlier and the later end."""
        return self.candidates[0], self.candidates[-1]

    @property
    def last(self) -> int:
        """Position of the later end."""
        return len(self.candidates) - 1
