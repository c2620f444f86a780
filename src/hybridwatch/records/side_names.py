"""Short names for the sides of a run, where their labels would wrap over several lines.

``cpu-0.27.1~all-cache-spec-decode-anchor+prev-step-anchor+conv-anchor+block-end-states`` is
*without anchor* next to the same build that has it. What is shortened is written in full once,
where it is shown.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from hybridwatch.scenarios.fixes import FIX_PARTS

LONGEST: Final = 48
"""Characters of a label that fit into a line of 80 with what stands next to it."""

_SWITCH: Final = re.compile(r"([~+])([^~+]+)")
_WORDS: Final[Mapping[str, str]] = {"~": "without", "+": "with"}
_NAMED: Final = 2
"""As many switches as are named; more are counted."""
_RELEASED: Final = "released"
_WHOLES: Final = {part: whole for whole, parts in FIX_PARTS.items() for part in parts}


def side_names(labels: Sequence[str]) -> tuple[str, ...]:
    """Name the sides of a run: by label where all labels are short, else by what differs."""
    if all(len(label) <= LONGEST for label in labels):
        return tuple(labels)
    bases = [re.split(r"[~+]", label, maxsplit=1)[0] for label in labels]
    switched = [dict.fromkeys(_SWITCH.findall(label)) for label in labels]
    shared = [one for one in switched[0] if all(one in others for others in switched)]
    one_base = len(set(bases)) == 1 and len(set(labels)) > 1
    names = []
    for base, switches in zip(bases, switched, strict=True):
        own = _changes_text([one for one in switches if one not in shared])
        if one_base and own:
            names.append(own)
        else:
            plain = " ".join(filter(None, (_RELEASED if one_base else base, own)))
            names.append(plain + _counted(shared))
    return tuple(names) if len(set(names)) == len(set(labels)) else tuple(labels)


def _changes_text(switches: Sequence[tuple[str, str]]) -> str:
    """Say what is out and what is in, each by the shortest word that is still clear."""
    phrases = []
    for mark, how in _WORDS.items():
        words = [_short(word) for sign, word in switches if sign == mark]
        if words:
            few = len(words) <= _NAMED
            phrases.append(f"{how} {' and '.join(words) if few else f'{len(words)} fixes'}")
    return ", ".join(phrases)


def _counted(shared: Sequence[tuple[str, str]]) -> str:
    """Say how much is switched on every side alike."""
    put_in = sum(mark == "+" for mark, _ in shared)
    out = len(shared) - put_in
    phrases = f" + {put_in} fix{'' if put_in == 1 else 'es'}" if put_in else ""
    return f"{phrases}, {out} out" if out else phrases


def _short(word: str) -> str:
    """A part of a fix goes by what it adds to the name of the whole."""
    whole = _WHOLES.get(word)
    return word if whole is None else word.removeprefix(f"{whole}-")
