"""What the studies of a campaign answered: what fixes, probes and one read of the device cost.

The shapes are those of ``engine/README.md``, "What things cost".
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hybridwatch.errors import CampaignError
from hybridwatch.records.store.files import read_entries
from hybridwatch_lab.gpu.campaign.runner import JOURNAL, StageEntry
from hybridwatch_lab.gpu.cost import Cost, Ratio

CAMPAIGNS: Final = "campaigns"
"""Folder of the campaigns in a results folder."""

_MODULES: Final = ("hybridwatch_engine_lab.studies.", "hybridwatch_engine.studies.")
"""Where studies are, and where they were; campaigns keep the commands of their day."""
_Share = Annotated[float, Field(gt=0, lt=1e6, allow_inf_nan=False)]
_PerStep = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class _StepTime(_Answer):
    ratio: _Share
    low: _Share
    high: _Share

    def to_ratio(self) -> Ratio:
        return Ratio(self.ratio, self.low, self.high)


class _FixAtBatch(_Answer):
    step_time: dict[str, _StepTime] = {}
    syncs_added: dict[str, _PerStep] = {}


class _FixCost(_Answer):
    device: str
    syncs: str
    fixes: dict[str, dict[int, _FixAtBatch]]


class _ProbeAtBatch(_Answer):
    step_time: _StepTime


class _ProbeCost(_Answer):
    device: str
    batches: dict[int, _ProbeAtBatch]


class _ReadAtBatch(_Answer):
    step_time: dict[str, _StepTime]
    at_site: dict[str, dict[str, _PerStep]]


class _ReadCost(_Answer):
    device: str
    batches: dict[int, _ReadAtBatch]


def costs_in(results: Path) -> list[Cost]:
    """Read what the campaigns of a results folder measured; of each study the newest answer."""
    newest: dict[tuple[str, str], list[Cost]] = {}
    for path in sorted((results / CAMPAIGNS).glob(f"*/{JOURNAL}")):
        for study, answer in _answers(path.parent):
            costs = list(_costs(study, answer, results))
            if costs:
                newest[study, costs[0].device] = costs
    return [cost for costs in newest.values() for cost in costs]


def _answers(folder: Path) -> Iterator[tuple[str, Path]]:
    """The answered studies of a campaign, each with the file of what it printed."""
    for entry in read_entries(folder / JOURNAL, StageEntry):
        module = next((word for word in entry.command if word.startswith(_MODULES)), "")
        name = f"{entry.stage}.out"
        if module and name in entry.left and (folder / name).is_file():
            yield module.rpartition(".")[2], folder / name


def _costs(study: str, answer: Path, results: Path) -> Iterator[Cost]:
    source = answer.relative_to(results).as_posix()
    try:
        # Each line is the whole answer until then; a line without an end was cut.
        text = answer.read_text(encoding="utf-8").rpartition("\n")[0].rpartition("\n")[2]
        match study:
            case "fix_cost":
                yield from _of_fixes(_FixCost.model_validate_json(text), source)
            case "probe_cost":
                yield from _of_probe(_ProbeCost.model_validate_json(text), source)
            case "is_prefilling_cost":
                yield from _of_read(_ReadCost.model_validate_json(text), source)
            case _:
                return  # another kind of answer
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise CampaignError(f"{answer}: {key or 'the file'}: {first['msg']}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise CampaignError(f"{answer}: cannot be read: {error}") from error


def _of_fixes(study: _FixCost, source: str) -> Iterator[Cost]:
    for fix, batches in study.fixes.items():
        for batch, one in batches.items():
            for forms, step_time in one.step_time.items():
                added = one.syncs_added.get(forms.partition("/")[0])
                remark = "" if added is None else f"{added:g} {study.syncs} added per step"
                ratio = step_time.to_ratio()
                yield Cost(study.device, fix, batch, forms, ratio, remark, source)


def _of_probe(study: _ProbeCost, source: str) -> Iterator[Cost]:
    for batch, one in study.batches.items():
        ratio = one.step_time.to_ratio()
        yield Cost(study.device, "host-sync probe", batch, "on/off", ratio, "", source)


def _of_read(study: _ReadCost, source: str) -> Iterator[Cost]:
    for batch, one in study.batches.items():
        for forms, step_time in one.step_time.items():
            ratio, seen = step_time.to_ratio(), _seen(one.at_site)
            yield Cost(study.device, "read of is_prefilling", batch, forms, ratio, seen, source)


def _seen(at_site: Mapping[str, Mapping[str, Any]]) -> str:
    """Reads and waits per step of each form, in words."""
    return "; ".join(
        f"{form}: "
        + ", ".join(f"{count:g} {kind.replace('_', ' ')}" for kind, count in ones.items())
        for form, ones in at_site.items()
    )
