"""What a measurement could not have seen, in words, and what would settle it."""

from collections.abc import Callable
from typing import TypeAlias

from hybridwatch.analysis.blindness import Blindness, BlindSpot
from hybridwatch.analysis.power import ENOUGH
from hybridwatch.analysis.verdict import Report
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.labels import MOST_TRIALS, WORTHWHILE_TRIALS, name_of, plural

PlaceOf: TypeAlias = Callable[[Report], str]


def blind_sentence(blindness: Blindness, place_of: PlaceOf | None = None) -> str:
    """Say how large a change would have passed unseen, of what, and of how much."""
    spots, of = blindness.spots, blindness.of
    seen = [spot for spot in spots if spot.reach is not None]
    if seen:
        least, worst = seen[0], seen[-1]
        start = f"Could only have seen changes above {_reach(least)} in {_name(least, place_of)}"
        if _reach(worst) != _reach(least):
            start += f", at worst above {_reach(worst)} in {_name(worst, place_of)}"
    else:
        start = f"Could not have seen any change in {_name(spots[0], place_of)}: too few trials"
    counted = f"{len(spots)} of {plural(of, 'comparison')} that can stop a change"
    return f"{start}; nothing can be told of {counted}"


def settling(blindness: Blindness) -> str:
    """Say what would settle it."""
    needed = blindness.trials_needed
    if needed is None:
        return f"at least {ENOUGH} trials a side, and a quiet machine"
    if needed > MOST_TRIALS:
        return "a quieter machine: no practical number of trials settles it on this one"
    if needed > WORTHWHILE_TRIALS:
        return f"a quieter machine; on this one it takes about {needed} trials a side, hours"
    return f"about {needed} trials a side, or a quieter machine"


def _reach(spot: BlindSpot) -> str:
    return numbers.size(spot.comparison, spot.reach or 0.0)


def _name(spot: BlindSpot, place_of: PlaceOf | None) -> str:
    place = f" ({place_of(spot.report)})" if place_of else ""
    return f"{name_of(spot.comparison).removesuffix(' median')}{place}"
