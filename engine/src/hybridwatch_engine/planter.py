"""The planter of this process: the faults that are shipped, and those of the user's own."""

from functools import cache, partial

from hybridwatch_engine.mutants.board import OWN, mutant_headers, patches_of
from hybridwatch_engine.mutants.tally import Tally
from hybridwatch_engine.planted import FAULTS, Fault, Planter


@cache
def planter() -> Planter:
    """The one of this process."""
    return Planter({**FAULTS, **_own_faults()})


def _own_faults() -> dict[str, Fault]:
    """Mutants of the user's own as faults: on all the time, without counts."""
    return {
        name: Fault(
            id=name,
            target=", ".join(header.target),
            why=f"Resembles: {header.resembles}",
            how=header.what,
            make=partial(patches_of, header, Tally()),
        )
        for name, header in mutant_headers().items()
        if header.half == OWN
    }
