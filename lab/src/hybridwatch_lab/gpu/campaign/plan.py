"""The stages of a campaign (``engine/campaign.toml``), filled in for two builds."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from hybridwatch.engines.builds import BuildRequest
from hybridwatch.errors import CampaignError
from hybridwatch.scenarios.validation import Part, closest, quoted, refuse, refusing_toml
from hybridwatch.system.python_command import python_command

PLAN_FILE: Final = Path("engine") / "campaign.toml"

_Id = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
_Text = Annotated[str, Field(pattern=r"\S")]


class _Stage(Part):
    """One ``[[stages]]`` table as it is written."""

    id: _Id
    why: _Text
    limit_s: Annotated[float, Field(gt=0, le=7200)]
    run: list[_Text] | None = None
    study: list[_Text] | None = None
    build: Literal["{build}", "{older}"] = "{build}"
    accelerator: Literal["cpu", "cuda"] | None = None

    @model_validator(mode="after")
    def _has_one_command(self) -> Self:
        if (self.run is None) == (self.study is None) or not (self.run or self.study):
            refuse(("run", "expected either run or study, with at least one word"))
        return self


class _CampaignFile(Part):
    stages: Annotated[list[_Stage], Field(min_length=1)]

    @model_validator(mode="after")
    def _ids_differ(self) -> Self:
        ids = [stage.id for stage in self.stages]
        twice = sorted({one for one in ids if ids.count(one) > 1})
        refuse(*(("stages", f"{quoted(one)} stands there twice") for one in twice))
        return self


@dataclass(frozen=True, slots=True)
class Stage:
    """One command of a campaign.

    Attributes:
        limit_s: Seconds after which it is ended.
        measures: Whether it is expected to leave records; else its answer is what it prints.
    """

    id: str
    why: str
    limit_s: float
    command: tuple[str, ...]
    measures: bool


@dataclass(frozen=True, slots=True)
class CampaignPlan:
    """The stages in order of worth."""

    stages: tuple[Stage, ...]
    left_out: Mapping[str, str]

    @property
    def limit_s(self) -> float:
        """Seconds that all stages take at most."""
        return sum(stage.limit_s for stage in self.stages)

    def only(self, ids: Sequence[str]) -> "CampaignPlan":
        """Keep the named stages, in the plan's order."""
        known = [stage.id for stage in self.stages]
        for one in ids:
            if one not in known:
                raise CampaignError(
                    f"{quoted(one)} is no stage of this campaign; {closest(one, known)}"
                )
        return replace(self, stages=tuple(one for one in self.stages if one.id in ids))


@dataclass(frozen=True, slots=True)
class CampaignSubject:
    """What a campaign is about; a CPU's ``slowdown`` multiplies every limit of the plan."""

    build: BuildRequest
    older: BuildRequest
    results: Path
    models: Path
    harness: tuple[str, ...]
    slowdown: float = 1.0

    @property
    def accelerator(self) -> str:
        """What both builds compute on."""
        return self.build.spec.accelerator

    def words(self) -> dict[str, str]:
        """The words that stand in braces in a plan."""
        return {
            "build": self.build.label,
            "older": self.older.label,
            "group": "gpu" if self.accelerator == "cuda" else "smoke",
            "results": str(self.results),
            "models": str(self.models),
        }


def load_plan(path: Path, subject: CampaignSubject) -> CampaignPlan:
    """Read the stages of a file and fill them in."""
    if subject.older.spec.accelerator != subject.accelerator:
        raise CampaignError(
            f"{subject.older.label} computes on {subject.older.spec.accelerator}, "
            f"{subject.build.label} on {subject.accelerator}; a campaign has one of both"
        )
    stages: list[Stage] = []
    left_out: dict[str, str] = {}
    for entry in _read(path).stages:
        if entry.accelerator not in {None, subject.accelerator}:
            left_out[entry.id] = f"only on {entry.accelerator}"
        else:
            stages.append(_filled(entry, subject, path))
    return CampaignPlan(tuple(stages), left_out)


def _read(path: Path) -> _CampaignFile:
    with refusing_toml(path, _CampaignFile, CampaignError):
        return _CampaignFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


def _filled(entry: _Stage, subject: CampaignSubject, path: Path) -> Stage:
    known = subject.words()
    try:
        words = tuple(word.format_map(known) for word in entry.run or entry.study or ())
    except (KeyError, ValueError, IndexError) as error:
        raise CampaignError(
            f"{path}: stage {quoted(entry.id)}: expected one of "
            f"{', '.join(f'{{{name}}}' for name in known)} in braces, found {error}"
        ) from None
    if entry.run:
        prefix: tuple[str, ...] = subject.harness
    else:
        request = subject.build if entry.build == "{build}" else subject.older
        module, *words_after = words
        study = f"hybridwatch_engine_lab.studies.{module}"
        prefix = python_command("-m", study, python=request.spec.interpreter)
        words = tuple(words_after)
    return Stage(
        id=entry.id,
        why=entry.why,
        limit_s=entry.limit_s * subject.slowdown,
        command=(*prefix, *words),
        measures=bool(entry.run) and words[0] == "run",
    )
