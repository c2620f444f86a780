"""The mutants that there are: those of ``engine/mutants/*.toml``, and somebody's own.

The files are part of this package and of the plugin in the engine, which holds what each does.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from hybridwatch.errors import ScenarioError
from hybridwatch.scenario.mutant import Mutant, load_mutants
from hybridwatch.scenario.own_faults import own_faults


def catalogue() -> Mapping[str, Mutant]:
    """Every mutant by its name, in the order of tables: the first half first, own ones last.

    Raises:
        ScenarioError: A file is wrong, or an own mutant is called as one that is shipped.
    """
    shipped, own = _shipped(), own_faults()
    for name in own.keys() & shipped.keys():
        raise ScenarioError(
            f"{own[name].file}: mutant.{name}: expected a name that is not taken yet, found one "
            f"that engine/mutants/{shipped[name].half}.toml has"
        )
    return {**shipped, **{name: one.mutant for name, one in own.items()}}


@cache
def _shipped() -> Mapping[str, Mutant]:
    halves = [
        load_mutants(Path(__file__).with_name(file), Path("engine") / "mutants" / file)
        for file in ("first.toml", "second.toml")
    ]
    return {**halves[0], **halves[1]}
