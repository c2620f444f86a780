"""The page of figures: Markdown of what ``findings_analysis`` gathered.

Every text that comes from a record passes through ``escape``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hybridwatch.analysis.control import ControlKind
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.metrics import Kind
from hybridwatch.records.identity import Testbed
from hybridwatch.reports.escape import as_code, as_item, escape, render_table
from hybridwatch_lab.gpu.cost import Cost
from hybridwatch_lab.gpu.findings_analysis import (
    QUANTITIES,
    Evidence,
    FindingRow,
    GpuFigure,
    JudgedFinding,
    Quantity,
)

_OWED: Final = "owed"
_CONTROLS: Final = {ControlKind.KNOWN_BAD: "known-bad told apart", ControlKind.A_A: "A/A clean"}


@dataclass(frozen=True, slots=True)
class FindingSource:
    """What a page is made of."""

    folder: str
    command: str
    commands: Sequence[str]


def render_evidence(
    title: str, source: FindingSource, found: Sequence[Evidence], costs: Sequence[Cost] = ()
) -> str:
    """Write the page."""
    numbered = {record: at for at, record in enumerate(dict.fromkeys(_records(found)), start=1)}
    remarks = {name: result for part in found for name, result in part.remarks.items()}
    parts = (
        f"# {title}",
        _introduction(source, found),
        *(text for part in found for text in _part(part, numbered)),
        *_costs(costs, source.folder),
        *_owed(found, [*source.commands, source.command]),
        *_write_list(numbered, remarks, source.folder),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _introduction(source: FindingSource, found: Sequence[Evidence]) -> str:
    if all(part.testbed is None for part in found):
        held = "There is no record of these scenarios yet, so there is no figure here either."
    else:
        held = (
            "A figure is followed by the number of trials that it is the median of (for accuracy: "
            "of documents asked) and, in brackets, by the number of its record in the list at the "
            "end. Step time is one over the engine's steps per second. The newest record counts."
        )
    return (
        f"Written by `{source.command}` from the records in `{source.folder}/`; not edited by "
        f"hand. {held}"
    )


def _part(part: Evidence, numbered: Mapping[str, int]) -> Iterator[str]:
    level = "##"
    if part.testbed is not None:
        yield f"## {escape(part.testbed.id)}"
        yield escape(_facts(part.testbed))
        level = "###"
    if rows := [row for row in part.rows if _has_figures(row)]:
        yield f"{level} Figures"
        heads = ("scenario", "engine", *(quantity.name for quantity in QUANTITIES))
        yield render_table(heads, (_row(row, numbered) for row in rows))
    if answers := list(_answers(part.controls, numbered)):
        yield f"{level} Controls"
        yield render_table(("scenario", "release", "control", "answer"), answers)
    if missing := list(_missing(part)):
        yield f"{level} Not measured"
        yield (
            "Owed, or not possible: the release does not come up, or the fix cannot be put into it."
        )
        yield render_table(("scenario", "owed", "not possible"), missing)


def _has_figures(row: FindingRow) -> bool:
    return any(row.figures.values())


def _missing(part: Evidence) -> Iterator[tuple[str, str, str]]:
    """Give scenarios with the engines and controls of which nothing is known."""
    owed: dict[str, list[str]] = {}
    impossible: dict[str, list[str]] = {}
    for row in part.rows:
        if not _has_figures(row):
            kind = owed if row.figures else impossible
            kind.setdefault(row.scenario.id, []).append(row.wanted.name)
    for judged in part.controls:
        if judged.control is None:
            kind = owed if judged.possible else impossible
            control = f"{judged.wanted.release} {_CONTROLS[judged.wanted.kind]}"
            kind.setdefault(judged.scenario.id, []).append(control)
    alike: dict[tuple[str, str], list[str]] = {}
    for scenario in sorted({**owed, **impossible}):
        lists = (", ".join(kind.get(scenario, ())) for kind in (owed, impossible))
        alike.setdefault((next(lists), next(lists)), []).append(f"`{scenario}`")
    for (missing, never), scenarios in alike.items():
        yield ", ".join(scenarios), missing, never


def _facts(testbed: Testbed) -> str:
    gpus = ", ".join(testbed.gpus) or "no GPU"
    memory = ", ".join(f"{size / 1024**3:.0f} GiB" for size in testbed.gpu_memory_bytes)
    facts = (
        gpus,
        f"with {memory}" if memory else "",
        f"driver {testbed.driver} (CUDA {testbed.cuda})" if testbed.driver else "",
        f"{testbed.cpu_model}, {plural(testbed.cores, 'core')}",
        f"kernel {testbed.kernel}",
    )
    return "; ".join(fact for fact in facts if fact)


def _row(row: FindingRow, numbered: Mapping[str, int]) -> tuple[str, ...]:
    cells = (_cell(row.figures.get(one.name), one, numbered) for one in QUANTITIES)
    return (f"`{row.scenario.id}`", row.wanted.name, *cells)


def _cell(
    figures: Sequence[GpuFigure] | None, quantity: Quantity, numbered: Mapping[str, int]
) -> str:
    if figures is None:
        return numbers.ABSENT
    return "<br>".join(_figure(one, quantity, numbered) for one in figures) or _OWED


def _figure(figure: GpuFigure, quantity: Quantity, numbered: Mapping[str, int]) -> str:
    shown = (
        numbers.duration(figure.value)
        if quantity.inverse
        else numbers.value(figure.value, figure.metric)
    )
    if figure.metric.kind is Kind.PROPORTION:
        shown = f"{figure.metric.id.partition('.')[2]} {shown}"
    return f"{escape(shown)} ({figure.n}) [{numbered[figure.record]}]"


def _answers(
    controls: Sequence[JudgedFinding], numbered: Mapping[str, int]
) -> Iterator[tuple[str, ...]]:
    for judged in controls:
        if (result := judged.control) is not None:
            detail = f": {escape(result.detail)}" if result.detail else ""
            yield (
                f"`{judged.scenario.id}`",
                judged.wanted.release,
                _CONTROLS[judged.wanted.kind],
                f"{'yes' if result.ok else '**no**'}{detail} [{numbered[judged.record]}]",
            )


def _costs(costs: Sequence[Cost], folder: str) -> Iterator[str]:
    yield "## What things cost"
    if not costs:
        yield f"Fixes, probe, one read of a flag on the device: {_OWED}."
        return
    yield (
        "Step time of one form by that of another, measured in turn in one engine: median over "
        "rounds and its 95 % interval (engine/README.md)."
    )
    heads = ("device", "what", "batch", "forms", "step time", "besides", "file")
    yield render_table(heads, (_cost(cost, folder) for cost in costs))


def _cost(cost: Cost, folder: str) -> tuple[str, ...]:
    ratio = cost.step_time
    return (
        escape(cost.device),
        escape(cost.subject),
        str(cost.batch),
        escape(cost.forms),
        f"{ratio.value:.4f} ({ratio.low:.4f} to {ratio.high:.4f})",
        escape(cost.remark),
        f"<code>{escape(folder)}/{escape(cost.source)}</code>",
    )


def _owed(found: Sequence[Evidence], commands: Sequence[str]) -> Iterator[str]:
    owed = min((part.owed for part in found), default=0)
    if owed:
        yield "## What is owed"
        yield (
            f"{plural(owed, 'answer')}, figures and controls together. These commands make them on "
            "a machine with a GPU; a scenario's id in place of the group makes its own. What a "
            "release cannot start stays owed; `run ID --build BUILD` measures the other alone:"
        )
        yield "\n".join(("```bash", *commands, "```"))


def _write_list(
    numbered: Mapping[str, int], remarks: Mapping[str, Sequence[str]], folder: str
) -> Iterator[str]:
    if numbered:
        yield "## Records"
        lines = []
        for record, at in numbered.items():
            lines.append(f"{at}. {as_code(f'{folder}/{record}')}")
            lines += [f"   {as_item(remark)}" for remark in remarks.get(record, ())]
        yield "\n".join(lines)


def _records(found: Sequence[Evidence]) -> Iterator[str]:
    for part in found:
        for row in part.rows:
            yield from (one.record for figures in row.figures.values() for one in figures)
        yield from (judged.record for judged in part.controls if judged.control is not None)
