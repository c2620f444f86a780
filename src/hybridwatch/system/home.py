"""Where things lie: what is shipped, and the folder that a user works in.

Shipped are scenarios, models, right answers, builds, the plugin, the dashboard. In a checkout these
are folders of the repository. A wheel carries them inside ``hybridwatch``, in the same places
relative to each other (``setup.py`` puts them there). No other module may work out such a path.

A checkout has everything itself. A home (``hybridwatch init``) has only what its owner added; what
is looked up in a folder of it is looked up in the ``layers`` of that folder. Other distributions
add verbs, screens, metrics and more by entry points, read from files: to import
``importlib.metadata`` takes half as long as ``hybridwatch --help``.
"""

import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from hybridwatch.errors import BuildError, HybridwatchError

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_DATA: Final = _PACKAGE / "data"


def foreign_environment() -> dict[str, str]:
    """Give our environment for another Python: our own paths must not reach into its world."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def is_checkout() -> bool:
    """Whether this code runs from a checkout, in which people edit what is shipped."""
    return not _DATA.is_dir()


def shipped() -> Path:
    """Give the folder that has ``scenarios``, ``models``, ``engine`` and the rest below it."""
    return _PACKAGE.parents[1] if is_checkout() else _DATA


HOME_VARIABLE: Final = "HYBRIDWATCH_HOME"
MARKER: Final = "hybridwatch.toml"
"""The file that makes a folder a home."""

_OF_A_CHECKOUT: Final = Path("engine") / "builds.toml"


def home() -> Path:
    """Find the folder that environments and own things lie in.

    It is what ``HYBRIDWATCH_HOME`` names, or else the nearest home or checkout from the working
    directory upwards, or else the checkout that this code runs from.
    """
    if named := os.environ.get(HOME_VARIABLE):
        if not _is_home(Path(named)):
            raise BuildError(
                f"{HOME_VARIABLE}: expected a folder with {MARKER} or {_OF_A_CHECKOUT}, "
                f"found {named}; hybridwatch init {named} makes a home there"
            )
        return Path(named).resolve()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if _is_home(folder):
            return folder
    if is_checkout():
        return shipped()
    raise BuildError(
        f"no home from {here} upwards: expected a folder with {MARKER}; hybridwatch init DIR makes "
        f"one, and {HOME_VARIABLE} names one that lies elsewhere"
    )


def home_or_shipped() -> Path:
    """Find the home, for verbs that only read; without one, what is shipped has to do."""
    try:
        return home()
    except BuildError:
        if os.environ.get(HOME_VARIABLE):
            raise
        return shipped()


def is_extending(folder: Path) -> bool:
    """Whether a home extends what is shipped, which a checkout does not."""
    return (folder / MARKER).is_file()


def is_checkout_folder(folder: Path) -> bool:
    """Whether a folder has everything itself."""
    return (folder / _OF_A_CHECKOUT).is_file()


def layers(folder: Path) -> tuple[Path, ...]:
    """Give the layers of a folder right below a home or checkout: shipped, then its own."""
    if not is_extending(folder.parent):
        return (folder,)
    return (shipped() / folder.name, folder)


def shipped_engine(folder: Path) -> Path:
    """Give the engine's folder of a home: builds, locks, plans and the plugin's source."""
    return layers(folder / "engine")[0]


def _is_home(folder: Path) -> bool:
    """Whether a folder is a home or a checkout; a wheel's own data are neither."""
    in_a_wheel = not is_checkout() and folder.resolve() == shipped()
    return is_extending(folder) or (not in_a_wheel and is_checkout_folder(folder))


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
