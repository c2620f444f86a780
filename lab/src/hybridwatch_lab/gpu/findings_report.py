"""The page of figures: Markdown of what ``findings_analysis`` gathered.

Every text that comes from a record passes through ``escape``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hybridwatch.analysis.control import ControlKind
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.labels import plural
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
_IMPOSSIBLE: Final = "none: this release does not come up, or the fix cannot be put into it"
_CONTROLS: Final = {ControlKind.KNOWN_BAD: "known-bad told apart", ControlKind.A_A: "A/A clean"}


@dataclass(frozen=True, slots=True)
class FindingSource:
    """What a page is made of.

    Attributes:
        folder: The results folder, as it is named on the page.
        command: What writes the page.
        commands: What measures the figures that are owed, in order.
    """

    folder: str
    command: str
    commands: Sequence[str]


def render_evidence(
    title: str, source: FindingSource, found: Sequence[Evidence], costs: Sequence[Cost] = ()
) -> str:
    """Write the page.

    Returns:
        Markdown, ending in a newline. The same records give the same page.
    """
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
            "The number in brackets after a figure is that of its record in the list at the end; "
            "the one in parentheses says of how many trials it is the median, accuracy of how many "
            "documents the share that was right. Step time is one over the engine's steps per "
            "second. Each figure is from the newest record that has it."
        )
    return (
        f"Written by `{source.command}` from the records in `{source.folder}/` and from nothing "
        f"else; not edited by hand. {held}"
    )


def _part(part: Evidence, numbered: Mapping[str, int]) -> Iterator[str]:
    if part.testbed is not None:
        yield f"## {escape(part.testbed.id)}"
        yield escape(_facts(part.testbed))
        yield "### Figures"
    else:
        yield "## Figures"
    yield render_table(
        ("scenario", "engine", *(quantity.name for quantity in QUANTITIES)),
        # What is owed comes last.
        (_row(row, numbered) for row in sorted(part.rows, key=_has_no_figure)),
    )
    if part.controls:
        yield "### Controls" if part.testbed is not None else "## Controls"
        yield render_table(
            ("scenario", "release", "control", "answer"),
            (
                _control(judged, numbered)
                for judged in sorted(part.controls, key=lambda judged: judged.control is None)
            ),
        )


def _has_no_figure(row: FindingRow) -> bool:
    return not any(row.figures.values())


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


def _control(judged: JudgedFinding, numbered: Mapping[str, int]) -> tuple[str, ...]:
    result = judged.control
    if result is None:
        answer = _OWED if judged.possible else _IMPOSSIBLE
    else:
        detail = f": {escape(result.detail)}" if result.detail else ""
        answer = f"{'yes' if result.ok else '**no**'}{detail} [{numbered[judged.record]}]"
    return (
        f"`{judged.scenario.id}`",
        judged.wanted.release,
        _CONTROLS[judged.wanted.kind],
        answer,
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
            f"{plural(owed, 'answer')} of the tables above. On a machine with a GPU these commands "
            "make them; one scenario's id in place of the group makes those of one scenario. What "
            "a release cannot start stays owed; `run ID --build BUILD` measures the other alone:"
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
