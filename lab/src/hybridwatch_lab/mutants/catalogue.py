"""The mutants that there are: those of the lab, and the user's own.

Tables and code of the lab's lie in one folder, which an engine is told.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.fixes import Mutant, load_mutants, own_faults
from hybridwatch_lab.in_engine import MUTANTS

_CALLED: Final = f"{MUTANTS.parent.name}/{MUTANTS.name}"


def catalogue() -> Mapping[str, Mutant]:
    """Every mutant by its name, in the order of tables: the first half first, own ones last.

    Raises:
        ScenarioError: A file is wrong, or an own mutant is called as one that is shipped.
    """
    shipped, own = _shipped(), own_faults()
    for name in own.keys() & shipped.keys():
        raise ScenarioError(
            f"{own[name].file}: mutant.{name}: expected a name that is not taken yet, found one "
            f"that {_CALLED}/{shipped[name].half}.toml has"
        )
    return {**shipped, **{name: one.mutant for name, one in own.items()}}


@cache
def _shipped() -> Mapping[str, Mutant]:
    first, second = map(load_mutants, (MUTANTS / "first.toml", MUTANTS / "second.toml"))
    return {**first, **second}
