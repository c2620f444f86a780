"""The file format of engine builds: the tables of ``builds.toml``, and how they are validated."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from hybridwatch.errors import BuildError
from hybridwatch.scenarios.fixes import FixId, unprobed, variant_fixes
from hybridwatch.scenarios.validation import quoted, refusing_toml

_LAST_LINE: Final = "last_line"
_END: Final = "# end"
_OF_A_VARIANT: Final = {"like", "fixes"}
_KINDS: Final[Mapping[str, str]] = {"patched": "apply", "reverted": "revert"}

Text = Annotated[str, Field(pattern=r"\S")]
Python = Annotated[str, Field(pattern=r"^3\.\d+$", description="a version such as 3.11")]


class BuildEntry(BaseModel):
    """One ``[builds.<name>]`` table, with what the build that it is like says.

    Attributes:
        python: Oldest Python that can make the environment; ``newest_python`` is ``None`` for any.
        torch: The requirement installed first.
        lock: File of all requirements, from the folder of the file that names it.
        fixes: What is switched; other fixes stay as released.
        base: The build whose packages and compiled parts it has under Python code of its own; empty
            when its environment has everything itself.
        origin: Where an added build has its code from; of a ``source`` also the ``commit``, where
            it is not what lies there; empty for builds with a lock.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    release: Text
    accelerator: Literal["cpu", "cuda"]
    distribution: Text
    python: Python
    newest_python: Python | None = None
    torch: Text
    lock: Text
    fixes: dict[FixId, Literal["apply", "revert"]] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    flags: dict[str, str] = Field(default_factory=dict)
    base: str = ""
    origin: dict[Literal["source", "commit", "wheel", "index", "python"], Text] = Field(
        default_factory=dict
    )

    @property
    def switches(self) -> dict[str, bool]:
        """Fix id to whether it shall be in."""
        return {fix: switch == "apply" for fix, switch in self.fixes.items()}


class _BuildsFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    builds: dict[str, BuildEntry]
    last_line: Text | None = None


@dataclass(frozen=True, slots=True)
class BuildsFile:
    """Builds by name, in the order of their file; ``entries`` have what each is ``like``, too."""

    shown: Path
    tables: Mapping[str, Any] = field(default_factory=dict)
    entries: Mapping[str, BuildEntry] = field(default_factory=dict)


def read_file(path: Path, shown: Path, others: Sequence[BuildsFile] = ()) -> BuildsFile:
    """Read a file that messages call ``shown``; its builds may be like those of ``others``."""
    with refusing_toml(path, _BuildsFile, BuildError, shown):
        text = path.read_text(encoding="utf-8")
        _check_ended(text, shown)
        content = tomllib.loads(text)
        _check_last_line(text, shown, content)
        parsed = _BuildsFile.model_validate(_completed(content, shown, others))
    return BuildsFile(shown, content["builds"], parsed.builds)


def written_tables(file: Path) -> dict[str, Any]:
    """Read the tables of a file of builds that we wrote, as they are; none without a file."""
    if not file.exists():
        return {}
    try:
        entries: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))["builds"]
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError) as error:
        raise BuildError(
            f"{file}: expected builds, as an earlier call wrote them: {error}"
        ) from None
    return entries


def render_tables(entries: Mapping[str, Mapping[str, Any]]) -> str:
    """Write tables as a file of builds that says where it ends."""
    lines = [f"{_LAST_LINE} = {json.dumps(_END)}"]
    for name, entry in entries.items():
        head = f"builds.{json.dumps(name)}"
        lines += ["", f"[{head}]", *_lines(entry)]
        for key, table in entry.items():
            if isinstance(table, dict):
                lines += ["", f"[{head}.{key}]", *_lines(table)]
    return "\n".join([*lines, "", _END, ""])


def _lines(table: Mapping[str, Any]) -> list[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    return [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in plain.items()]


def _check_ended(text: str, shown: Path) -> None:
    if not text.endswith("\n"):
        raise BuildError(
            f"{shown}: expected a line end as its last character, found none: the file may "
            "have been cut short; if not, end its last line"
        )


def _check_last_line(text: str, shown: Path, content: Mapping[str, Any]) -> None:
    """Check that the file ends as it says: cut between two lines it is a file of fewer builds."""
    expected, found = content.get(_LAST_LINE), text.rstrip("\n").rpartition("\n")[2]
    if expected is not None and found != expected:
        raise BuildError(
            f"{shown}: {_LAST_LINE}: expected {quoted(str(expected))} at the end of the "
            f"file, found {quoted(found)}: it was cut short, or something was added below that line"
        )


def _completed(
    content: dict[str, Any], shown: Path, others: Sequence[BuildsFile]
) -> dict[str, Any]:
    builds = content.get("builds")
    if not isinstance(builds, dict):
        return content
    known: dict[str, Any] = {}
    for other in others:
        for name in builds.keys() & other.entries.keys():
            raise BuildError(
                f"{shown}: builds.{quoted(name)}: expected a name that is not taken yet, found one "
                f"that {other.shown} has"
            )
        known |= {name: one.model_dump(exclude_none=True) for name, one in other.entries.items()}
    known |= builds
    filled = {name: _switched(name, _filled(name, known, shown), shown) for name in builds}
    return {**content, "builds": filled}


def _filled(name: str, builds: Mapping[str, Any], shown: Path) -> Any:
    own = builds[name]
    if not isinstance(own, dict) or "like" not in own:
        return own
    model = builds.get(own["like"]) if isinstance(own["like"], str) else None
    if not isinstance(model, dict) or "like" in model:
        raise BuildError(
            f"{shown}: builds.{quoted(name)}.like: expected a build that says everything "
            f"itself, found {quoted(own['like'])}"
        )
    return {**model, **{key: value for key, value in own.items() if key != "like"}}


def _switched(name: str, entry: Any, shown: Path) -> Any:
    kind = entry.get("fixes") if isinstance(entry, dict) else None
    if not isinstance(kind, str):
        return entry
    if kind not in _KINDS:
        raise BuildError(
            f"{shown}: builds.{quoted(name)}.fixes: expected a table, "
            f"{' or '.join(map(quoted, _KINDS))}, found {quoted(kind)}"
        )
    release = entry.get("release")
    if unsaid := unprobed(release):
        raise BuildError(
            f"{shown}: builds.{quoted(name)}.fixes: {kind}: expected a release of which "
            f"engine/fixes.toml says what fixes it has, found {quoted(release)}, which is unknown "
            f"to {', '.join(unsaid)}; python locks/fixes.py {release} asks its wheel"
        )
    switched = variant_fixes(release, str(entry.get("accelerator")), kind)
    return {**entry, "fixes": dict.fromkeys(switched, _KINDS[kind])}


def build_variant(entry: Mapping[str, Any]) -> str:
    """The build that an entry says no more about than which fixes are switched on it."""
    return entry["like"] if set(entry) == _OF_A_VARIANT else ""
