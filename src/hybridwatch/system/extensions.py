"""Extensions by entry points of other distributions: verbs, screens, metrics and more.

Importing ``importlib.metadata`` takes half as long as ``hybridwatch --help``, so files are read.
"""

import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeVar

from hybridwatch.errors import HybridwatchError


class Placed(Protocol):
    """What has its place in a list."""

    @property
    def after(self) -> str:
        """The name behind which it stands; last of all where there is no such name."""


_Listed = TypeVar("_Listed", bound=Placed)


def extended(own: Mapping[str, _Listed], group: str) -> dict[str, _Listed]:
    """Add what the entry points of a group name, each in its place; ours keep their names."""
    items = list(own.items())
    for name, one in loaded(group).items():
        if name not in own:
            names = [each for each, _ in items]
            place = names.index(one.after) + 1 if one.after in names else len(names)
            items.insert(place, (name, one))
    return dict(items)


def loaded(group: str) -> dict[str, Any]:
    """Load what entry points of a group name, by name; not what a distribution left behind."""
    found: dict[str, Any] = {}
    for name, target in sorted(_named(group).items()):
        module, _, attribute = target.partition(":")
        try:
            found[name] = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            package = module.partition(".")[0]
            if isinstance(error, ModuleNotFoundError) and error.name == package:
                continue
            raise HybridwatchError(
                f"entry point {name} of {group}: {target} cannot be loaded: {error}"
            ) from error
    return found


def _named(group: str) -> dict[str, str]:
    """Find the entry points of a group, ``module:name`` by name; the first on the path counts."""
    head = f"[{group}]\n"
    found: dict[str, str] = {}
    for content in _files():
        if head.encode() in content:
            section = content.decode("utf-8").partition(head)[2].partition("\n[")[0]
            for line in section.splitlines():
                name, equals, target = line.partition("=")
                if equals:
                    found.setdefault(name.strip(), target.strip())
    return found


def _files() -> Iterator[bytes]:
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 (pathlib is slower)
        except OSError:
            continue  # an archive, or not there
        for name in names:
            if name.endswith(".dist-info"):
                try:
                    with open(f"{folder or '.'}/{name}/entry_points.txt", "rb", 0) as file:  # noqa: PTH123 (as above)
                        yield file.read()
                except OSError:
                    continue  # it has none
