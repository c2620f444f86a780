"""What the host does in a step: reads by call site, phases, and records that tell of neither."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hybridwatch.database.queries import open_index
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Chart,
    Command,
    Document,
    Link,
    Notice,
    Paragraph,
    Table,
    build_cell,
    plain,
)
from hybridwatch.pages.html import csv_of_table
from hybridwatch.pages.screens import ScreenSource, open_view
from hybridwatch.records.run import CallSite, HostWork, Phase, Run, StepPhase
from hybridwatch.records.store import read_run, write_run
from tests.dashboard.parity import words_of
from tests.store_builders import STARTED, TESTBED, Plan, records_of_two_sides, run, scenario
from tests.unit.pages.suite_stores import choices, of_kind, one_side

NOW = datetime(2026, 11, 22, tzinfo=UTC)
COMMITTED = Path(__file__).parents[3] / "results"
RUNNER = "vllm/v1/worker/gpu_model_runner.py:GPUModelRunner"
SAMPLE, PREPARE = f"{RUNNER}._sample:3701", f"{RUNNER}._prepare_inputs:2051"
HOSTILE = "<b>x</b>.py:=1+1:9"


def work(*sites: CallSite, metadata: float = 0.0004) -> HostWork:
    phases = StepPhase("prepare", 0.001), StepPhase("metadata", metadata)
    return HostWork(sites, (*phases, StepPhase("forward", 0.006)))


def watched(made: Run, *works: HostWork | None) -> Run:
    """Give the host-sync trials of each side what they saw; a trial makes 3 steps of 4 reads."""
    trials = tuple(
        replace(trial, host_work=works[trial.side]) if trial.phase is Phase.HOST_SYNC else trial
        for trial in made.trials
    )
    return replace(made, trials=trials)


OLD = work(CallSite(PREPARE, 12, 0.003))
NEW = work(CallSite(SAMPLE, 6, 0.006), CallSite(PREPARE, 3, 0.003), metadata=0.0006)


def without_host_sync(made: Run) -> Run:
    kept = [trial for trial in made.trials if trial.phase is not Phase.HOST_SYNC]
    return replace(made, trials=tuple(replace(t, index=at) for at, t in enumerate(kept)))


def view(results: Path, **parameters: str) -> Document:
    source = ScreenSource(results, open_index(results), NOW)
    return open_view(source, address("sync", **parameters))


def sites(document: Document) -> list[list[str]]:
    (found,) = (t for t in of_kind(document, Table) if t.caption.startswith("Reads per step"))
    return [[plain(build_cell(cell).content) for cell in row] for row in found.rows]


def chart(document: Document, title: str) -> Chart:
    found: list[Chart] = [c for c in of_kind(document, Chart) if c.title == title]
    assert len(found) == 1
    return found[0]


def test_an_empty_store_says_what_to_do(tmp_path):
    assert [c.text for c in of_kind(view(tmp_path), Command)] == ["make run"]


def test_runs_that_counted_no_reads_are_not_offered(tmp_path):
    write_run(tmp_path, without_host_sync(run()))
    document = view(tmp_path)
    assert "No run counted host reads." in plain(of_kind(document, Paragraph)[0].line)
    later = Plan(started_at=STARTED + timedelta(hours=-1), scenario=scenario("smoke/other"))
    write_run(tmp_path, run(later))
    assert list(choices(view(tmp_path))["scenario"].options) == ["smoke/other"]


def test_waits_for_a_device_are_reported_with_their_kind(tmp_path):
    sample = replace(NEW.sites[0], kind="event")
    released = CallSite("(allocator)", 1, 0.0, "allocator")
    write_run(tmp_path, watched(run(), OLD, work(sample, released)))
    (table,) = (t for t in of_kind(view(tmp_path), Table) if t.caption.startswith("Reads per step"))
    notes = {build_cell(row[1]).raw: plain(build_cell(row[1]).under) for row in table.rows}
    file = SAMPLE.partition(":")[0]
    assert notes[SAMPLE] == f"event, {file}:3701"
    assert notes["(allocator)"] == "allocator"
    assert notes[PREPARE] == f"{file}:2051"


def test_reads_are_reported_per_step_by_place_the_largest_change_first(tmp_path):
    write_run(tmp_path, watched(run(), OLD, NEW))
    document = view(tmp_path)
    # 3 trials a side, each of 3 steps.
    assert sites(document) == [
        ["-3.00", "GPUModelRunner._prepare_inputs", "4.00", "1.00", "1.00 ms", "1.00 ms"],
        ["+2.00", "GPUModelRunner._sample", "0.00", "2.00", "-", "2.00 ms"],
    ]
    (table,) = (t for t in of_kind(document, Table) if t.caption.startswith("Reads per step"))
    assert PREPARE in csv_of_table(table)
    told = "Places beyond the busiest of each trial read 0.00 and 1.00 times a step; not listed."
    assert told in words_of(document)


def test_phases_of_both_builds_are_drawn_and_told(tmp_path):
    write_run(tmp_path, watched(run(), OLD, NEW))
    found = chart(view(tmp_path), "Phases of a step")
    assert found.data["phase"] == ["prepare", "metadata", "forward"] * 2
    assert found.data["seconds"] == [0.001, 0.0004, 0.006, 0.001, 0.0006, 0.006]
    assert "metadata 400 \u00b5s" in found.description
    assert "metadata 600 \u00b5s" in found.description
    bars = [(trace.y[0], trace.base[0], trace.x[0]) for trace in found.figure.data]
    assert bars[1:3] == [(0, 0.001, 0.0004), (0, 0.0014, 0.006)]
    assert [trace.name for trace in found.figure.data if trace.showlegend] == [
        "prepare",
        "metadata",
        "forward",
    ]


def test_steps_are_reported_one_by_one(tmp_path):
    write_run(tmp_path, watched(run(), OLD, NEW))
    document = view(tmp_path)
    reads = chart(document, "Host reads, step by step")
    assert reads.data["host_syncs_per_step"] == [4.0] * 6
    assert len(chart(document, "Building metadata, step by step").data["step"]) == 40


def test_an_older_record_says_that_it_tells_of_no_places(tmp_path):
    write_run(tmp_path, run())
    document = view(tmp_path)
    (notice,) = of_kind(document, Notice)
    assert notice.title == "This record was measured before call sites and phases were kept"
    assert [c.title for c in of_kind(document, Chart)] == [
        "Host reads, step by step",
        "Building metadata, step by step",
    ]


def test_one_older_side_leaves_its_columns_open(tmp_path):
    write_run(tmp_path, watched(run(), None, NEW))
    document = view(tmp_path)
    (notice,) = of_kind(document, Notice)
    assert notice.title.startswith("This record of the baseline was measured before")
    assert sites(document)[0] == [
        "-", "GPUModelRunner._sample", "-", "2.00", "-", "2.00 ms",
    ]  # fmt: skip
    assert set(chart(document, "Phases of a step").data["side"]) == {"contender: cpu-0.27.1"}


def test_a_side_alone_still_tells_of_itself(tmp_path):
    write_run(tmp_path, one_side(watched(run(), OLD, None)))
    document = view(tmp_path)
    assert of_kind(document, Notice)[0].title == "Both sides are the same"
    assert sites(document) == [["GPUModelRunner._prepare_inputs", "4.00", "1.00 ms"]]


def test_machines_are_laid_next_to_each_other_only_when_the_reader_chooses_so(tmp_path):
    old, new = one_side(run()), replace(one_side(run(Plan(seed=8))), id="0badcafe")
    new = replace(new, testbed=replace(TESTBED, id="xeon-8c"), started_at=NOW)
    for each in (old, new):
        write_run(tmp_path, each)
    refused = view(tmp_path)
    assert not of_kind(refused, Chart)
    assert "testbed id: epyc-9654-2c-linux -> xeon-8c" in of_kind(refused, Notice)[0].lines
    assert of_kind(view(tmp_path, testbeds="compare"), Chart)


def test_hostile_places_stay_text(tmp_path):
    hostile = work(CallSite(HOSTILE, 12, 0.003), CallSite("<script>", 1, 0.0))
    write_run(tmp_path, watched(run(), hostile, hostile))
    document = view(tmp_path)
    assert {row[1] for row in sites(document)} == {"=1+1", "<script>"}
    named = work()
    named = replace(named, phases=(StepPhase("<b>x</b>", 0.001),))
    write_run(tmp_path, watched(replace(run(Plan(seed=3)), id="0badcafe"), named, named))
    figure = chart(view(tmp_path, contender="0badcafe#1"), "Phases of a step").figure
    assert "<b>x" not in figure.to_json().replace("\\u003c", "<").replace("&lt;", "")


def test_the_same_two_sides_are_a_click_from_every_metric(tmp_path):
    made = run()
    write_run(tmp_path, made)
    links = [
        piece.to
        for block in of_kind(view(tmp_path), Paragraph)
        if isinstance(block.line, tuple)
        for piece in block.line
        if isinstance(piece, Link)
    ]
    assert links == [
        address(
            "compare", scenario=made.scenario.id, contender=f"{made.id}#1", baseline=f"{made.id}#0"
        )
    ]


def check_steps(record: Path) -> None:
    made = read_run(record)
    document = view(COMMITTED, contender=f"{made.id}#1", baseline=f"{made.id}#0")
    assert not document.complaints
    first = next(t for t in made.measured(0) if t.phase is Phase.HOST_SYNC)
    reads = next(s.values for s in first.samples if s.metric == "host_syncs_per_step")
    shown = chart(document, "Host reads, step by step").data["host_syncs_per_step"]
    assert shown[: len(reads)] == list(reads)


def test_committed_records_are_shown_step_by_step(subtests):
    for record in records_of_two_sides(COMMITTED):
        with subtests.test(record.stem):
            check_steps(record)
