"""Reads scenario files, compares two contents, and writes lines of such a file from values.

A wrong file is reported in full: every wrong key, one line each, and no file hides another.
"""

import hashlib
import json
import re
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.scenarios.trace import fill_in
from hybridwatch.scenarios.validation import closest, explain, quoted
from hybridwatch.system.home import layers
from hybridwatch.system.plain_text import visible

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(/[a-z0-9]+(-[a-z0-9]+)*)*")


class _FilePlace(NamedTuple):
    """Where a scenario file lies: the file, and the folder that its id is counted from."""

    path: Path
    root: Path


@dataclass(frozen=True, slots=True)
class Survey:
    """All files below one folder: the good ones, and lines about the others: ``file: key: ...``."""

    scenarios: tuple[Scenario, ...]
    problems: tuple[str, ...]


def scenario_files(root: Path) -> Iterator[Path]:
    """Find every scenario file below a folder, good or bad, by id; links are followed."""
    if not root.is_dir():
        raise ScenarioError(f"{root}: expected a folder of scenario files, found none")
    yield from _below(root, ())


def _below(folder: Path, above: tuple[Path, ...]) -> Iterator[Path]:
    real = folder.resolve()
    if real in above:
        raise ScenarioError(f"{folder}: expected a link to another place, found one to {real}")
    for entry in sorted(folder.iterdir()):
        if entry.is_symlink() and not entry.exists():
            raise ScenarioError(f"{entry}: expected a link to what is there: {entry.readlink()}")
        if entry.is_dir():
            yield from _below(entry, (*above, real))
        elif entry.suffix == ".toml":
            yield entry


def load_scenario(path: Path, root: Path) -> Scenario:
    """Read one file, and the one that it is ``like``, which may be shipped.

    Ids are paths below ``root``. Errors have one line per wrong key, each
    ``scenarios/smoke/x.toml: key: what is wrong``.
    """
    name = f"{root.name}/{path.relative_to(root).as_posix()}"
    scenario_id = path.relative_to(root).with_suffix("").as_posix()
    if not _ID.fullmatch(scenario_id):
        raise ScenarioError(f"{name}: expected lower-case words joined by hyphens as file name")
    content = _completed(_parse(path, name), root, name)
    try:
        if isinstance(workload := content.get("workload"), dict) and "trace" in workload:
            content["workload"] = fill_in(workload, layers(root), name)
        return Scenario.model_validate({**content, "id": scenario_id})
    except ValidationError as error:
        lines = explain(Scenario, error)
        raise ScenarioError("\n".join(f"{name}: {line}" for line in lines)) from None


def survey(root: Path) -> Survey:
    """Read every file below a folder, good or bad; below a home's also what is shipped."""
    scenarios, problems = [], []
    for places in files_by_id(root).values():
        try:
            scenarios.append(_loaded(places))
        except ScenarioError as error:
            problems.extend(str(error).splitlines())
    return Survey(tuple(scenarios), tuple(dict.fromkeys(problems)))


def find(root: Path, patterns: Sequence[str]) -> list[Scenario]:
    """Read scenarios by ids or groups (``smoke``), each once, or all; others are not opened."""
    paths = files_by_id(root)
    chosen: dict[str, list[_FilePlace]] = {}
    problems = []
    for pattern in patterns or sorted(_groups(paths)):
        matching = {
            scenario_id: places
            for scenario_id, places in paths.items()
            if scenario_id == pattern or scenario_id.startswith(f"{pattern.rstrip('/')}/")
        }
        if not matching:
            known = [*sorted(_groups(paths)), *paths]
            problems.append(f"{quoted(pattern)} names no scenario; {closest(pattern, known)}")
        chosen |= matching
    if problems:
        raise ScenarioError("\n".join(problems))
    return [_loaded(places) for places in chosen.values()]


def files_by_id(root: Path) -> dict[str, list[_FilePlace]]:
    """Find where each scenario lies, good or bad: more than one place is a name that is taken."""
    found: dict[str, list[_FilePlace]] = {}
    for folder in layers(root):
        for path in scenario_files(folder):
            scenario_id = path.relative_to(folder).with_suffix("").as_posix()
            found.setdefault(scenario_id, []).append(_FilePlace(path, folder))
    return found


def _loaded(places: Sequence[_FilePlace]) -> Scenario:
    if len(places) > 1:
        shipped, own = (place.path for place in places)
        raise ScenarioError(f"{own}: expected an id that is not taken; {shipped} has it: rename")
    return load_scenario(*places[0])


def _groups(ids: Iterable[str]) -> set[str]:
    return {scenario_id.partition("/")[0] for scenario_id in ids}


def _parse(path: Path, name: str) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{name}: expected UTF-8 text, found other bytes: {error}") from None
    except OSError as error:
        raise ScenarioError(f"{name}: cannot be read: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{name}: not TOML: {error}") from None
    if "id" in content:
        raise ScenarioError(f"{name}: id: unknown key; a scenario's id is its path")
    return content


def _completed(content: dict[str, Any], root: Path, name: str) -> dict[str, Any]:
    """Give a scenario that is ``like`` another what it does not say itself; expectations whole."""
    if "like" not in content:
        return content
    like = content["like"]
    places = [place for place in layers(root) if (place / f"{like}.toml").is_file()]
    if not isinstance(like, str) or not _ID.fullmatch(like) or not places:
        raise ScenarioError(f"{name}: like: expected the id of a scenario, found {quoted(like)}")
    path = places[0] / f"{like}.toml"
    model = _parse(path, f"{root.name}/{like}.toml")
    if "like" in model:
        raise ScenarioError(
            f"{name}: like: expected a scenario that says everything itself, found {quoted(like)}"
        )
    load_scenario(path, places[0])  # what is wrong there is reported for that file
    own = {key: value for key, value in content.items() if key != "like"}
    if "expect" in own:
        model.pop("expect", None)
    return _merged(model, own)


def _merged(model: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """One table laid over another, tables within them likewise; a list is taken whole."""
    merged = {**model, **own}
    for key in model.keys() & own.keys():
        if isinstance(model[key], dict) and isinstance(own[key], dict):
            merged[key] = _merged(model[key], own[key])
    return merged


def digest(scenario: Scenario) -> str:
    """Return the SHA-256, in hexadecimal, of what the scenario asks of an engine.

    What leaves each single number as it is does not count: comments, layout, ``why``, the file's
    place, expectations, which releases come up, the fix of model runner V2, and how often a thing
    is measured. Nor does a key at its default, so that a field added later leaves older digests.
    """
    content = scenario.model_dump(
        mode="json",
        exclude={
            **dict.fromkeys(("id", "fix_v2", "why", "since", "until", "expect", "trials"), True),
            "accuracy": {"documents"},
            "sweep": {"known_bad"},
            "workload": {"trace"},
        },
        exclude_defaults=True,
    )
    content["fix"] = scenario.written_fix
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


_WIDTH: Final = 100


def text_lines(key: str, lines: Sequence[str]) -> Iterator[str]:
    """Write a text of several lines, each wrapped, whatever they hold."""
    yield f'{key} = """'
    for line in lines:
        safe = visible(line).replace("\\", "\\\\").replace('"', '\\"')
        yield from textwrap.wrap(safe, _WIDTH, break_long_words=False) or [""]
    yield '"""'


def comment_lines(lines: Sequence[str]) -> Iterator[str]:
    """Write comments, one for each line, whatever they hold."""
    return (f"# {' '.join(visible(line).split())}" for line in lines)


def table_lines(table: Mapping[str, Any]) -> list[str]:
    """Write the keys of a table that has no tables in it; what is not set is left out."""
    return [
        f"{_key(key)} = {_value(value)}"
        for key, value in table.items()
        if value is not None and value != []
    ]


def _key(key: str) -> str:
    return json.dumps(key) if "." in key else key


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)  # numbers, truth values and texts are written alike in both
