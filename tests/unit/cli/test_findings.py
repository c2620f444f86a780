"""The page of figures, on made-up records of a GPU: each figure is of a record and names it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from statistics import fmean, median

import pytest

from hybridwatch.records.identity import EngineBuild, FixState, ScenarioRef, Testbed
from hybridwatch.records.run import GpuState, MachineState, Phase, Run, Sample, Trial
from hybridwatch.records.store import write_run
from hybridwatch.scenarios.load import digest, load_scenario
from tests.checkout import make_checkout
from tests.command_line import run_verb
from tests.store_builders import FIX, STARTED, Plan, run

CHECKOUT = Path(__file__).parents[3]
PAGE = CHECKOUT / "lab" / "docs" / "findings-gpu.md"
GPU = Testbed(
    id="nvidia-h200-x1-16c-0f1e2d",
    cpu_model="Intel Xeon",
    cores=16,
    memory_bytes=128 * 1024**3,
    kernel="6.1.0",
    gpus=("NVIDIA H200",),
    driver="570.133.20",
    cuda="12.8",
    gpu_memory_bytes=(141 * 1024**3,),
)


RELEASES = ("0.21.0", "0.33.0")
PATCHED = f"""
[builds."cuda-0.21.0-patched"]
like = "tiny-1.0"

[builds."cuda-0.21.0-patched".fixes]
{FIX} = "apply"

[builds."cuda-0.33.0-patched"]
like = "tiny-1.0"
"""


def page(checkout: Path, *words: str) -> str:
    results = str(checkout / "results")
    done = run_verb("findings", "--results", results, *words, status=0)
    return done.stdout


def cells(text: str, *begins: str) -> list[str]:
    """The rest of the one row that begins so."""
    lead = "| " + " | ".join(begins) + " | "
    (row,) = [line for line in text.splitlines() if line.startswith(lead)]
    return row.removeprefix(lead).removesuffix(" |").split(" | ")


def missing(text: str) -> tuple[set[str], set[str]]:
    """What is owed, and what is not possible, of the one scenario."""
    owed, impossible = cells(text.partition(" Not measured\n")[2], "`gpu/padded`")
    return set(owed.split(", ")), set(impossible.split(", "))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_checkout(tmp_path, "gpu/padded")
    builds = tmp_path / "engine" / "builds.toml"
    builds.write_text(builds.read_text() + PATCHED)
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(tmp_path))
    return tmp_path


def build(made: EngineBuild, release: str, state: FixState, switch: str = "") -> EngineBuild:
    name = f"cuda-{release}"
    return replace(
        made,
        label=f"{name}{switch}",
        name=name,
        release=release,
        accelerator="cuda",
        distribution="vllm",
        fixes={FIX: state},
    )


def kept(
    checkout: Path,
    release: str,
    sides: tuple[tuple[FixState, str], tuple[FixState, str]],
    **plan: object,
) -> tuple[Run, str]:
    """A run on the GPU in the store, and its record's path as the page must name it."""
    scenario = load_scenario(checkout / "scenarios/gpu/padded.toml", checkout / "scenarios")
    ref = ScenarioRef(scenario.id, scenario.version, digest(scenario), scenario.fix)
    made = run(Plan(scenario=ref, testbed=GPU, **plan))  # type: ignore[arg-type]
    builds = tuple(build(one, release, *side) for one, side in zip(made.builds, sides, strict=True))
    stepping = tuple(
        replace(t, samples=(*t.samples, Sample("engine_step_rate", (250.0 - 50.0 * t.side,))))
        if t.phase is Phase.PERFORMANCE
        else t
        for t in made.trials
    )
    whole = replace(made, builds=builds, trials=stepping)
    return whole, write_run(checkout / "results", whole).relative_to(checkout).as_posix()


def of_patched(checkout: Path, **changes: object) -> tuple[Run, str]:
    """0.21.0 with the fix against 0.21.0 as released, which lacks it."""
    told: Mapping[str, object] = {"accuracy": (0.97, 0.5), "flagged_rows": (0, 41), "seed": 3}
    sides = (FixState.APPLIED, f"+{FIX}"), (FixState.LACKING, "")
    return kept(checkout, "0.21.0", sides, **{**told, **changes})


def values(one: Run, side: int, metric: str) -> list[float]:
    return [
        value
        for trial in one.measured(side)
        for sample in trial.samples
        if sample.metric == metric
        for value in sample.values
    ]


def test_a_store_without_a_record_of_a_gpu_says_what_is_owed(checkout: Path) -> None:
    write_run(checkout / "results", run())  # on a processor
    text = page(checkout)
    assert "There is no record of these scenarios yet" in text
    engines = {f"{one} {fix}" for one in RELEASES for fix in ("as released", "with the fix")}
    controls = {"0.21.0 known-bad told apart", "0.33.0 known-bad told apart", "0.33.0 A/A clean"}
    assert missing(text) == (engines | controls, {""})
    assert "19 answers, figures and controls together" in text
    assert "hybridwatch run gpu --build cuda-0.21.0 --known-bad" in text
    assert "## Records" not in text
    assert not re.search(r"\d (tok/s|ms|%)", text)


def test_every_figure_is_that_of_its_record(checkout: Path) -> None:
    made, record = of_patched(checkout)
    text = page(checkout)
    (listed,) = re.findall(r"^(\d+)\. <code>(.*)</code>$", text, flags=re.MULTILINE)
    assert listed == ("1", record)
    for side, engine in ((0, "0.21.0 with the fix"), (1, "0.21.0 as released")):
        right = values(made, side, "accuracy.recall")
        rates = values(made, side, "output_throughput")
        assert cells(text, "`gpu/padded`", engine) == [
            f"recall {100 * fmean(right):.1f} % ({len(right)}) [1]",
            f"{median(rates):.0f} tok/s (7) [1]",
            "4 (3) [1]",
            f"{'4.00' if side == 0 else '5.00'} ms (7) [1]",
        ]
    assert "0.33.0 as released" in missing(text)[0]
    assert not {"0.21.0 as released", "0.21.0 with the fix"} & missing(text)[0]
    assert "## nvidia-h200-x1-16c-0f1e2d" in text
    assert "NVIDIA H200; with 141 GiB; driver 570.133.20 (CUDA 12.8); Intel Xeon, 16 cores" in text


def test_controls_are_judged_and_traced(checkout: Path) -> None:
    _, bad = of_patched(checkout)
    healthy = (FixState.PRESENT, "")
    _, same = kept(checkout, "0.33.0", (healthy, healthy), accuracy=(1.0, 1.0))
    text = page(checkout)
    numbers = {path: at for at, path in re.findall(r"^(\d+)\. <code>(.*)</code>$", text, re.M)}
    (told,) = cells(text, "`gpu/padded`", "0.21.0", "known-bad told apart")
    assert told.startswith("yes: contract.padded\\_rows\\_prefilling 0 -&gt; 41, 2 of 2 seeds")
    assert told.endswith(f"[{numbers[bad]}]")
    (calm,) = cells(text, "`gpu/padded`", "0.33.0", "A/A clean")
    assert calm.startswith("yes: nothing differs: 4 contract trials, 120 paired answers")
    assert calm.endswith(f"[{numbers[same]}]")
    assert missing(text) == ({"0.33.0 known-bad told apart"}, {""})
    assert "1 answer, figures and controls together" in text


def test_a_fix_that_is_put_in_by_its_whole_is_there_in_its_parts(checkout: Path) -> None:
    for name in ("engine/builds.toml", "scenarios/gpu/padded.toml"):
        file = checkout / name
        file.write_text(file.read_text().replace(FIX, "draft-max-seq-len", 1))
    assert "0.21.0 with the fix" in missing(page(checkout))[0]


def test_a_fix_that_no_patched_build_has_is_not_owed(checkout: Path) -> None:
    own = checkout / "scenarios" / "gpu" / "padded.toml"
    own.write_text(own.read_text().replace(FIX, "single-token-extend", 1))
    text = page(checkout)
    owed, impossible = missing(text)
    assert {"0.21.0 as released", "0.33.0 with the fix"} <= owed
    assert impossible == {"0.21.0 with the fix", "0.21.0 known-bad told apart"}


def test_a_control_that_sees_nothing_is_reported_in_bold(checkout: Path) -> None:
    of_patched(checkout, accuracy=(0.97, 0.97), flagged_rows=(0, 0))
    (told,) = cells(page(checkout), "`gpu/padded`", "0.21.0", "known-bad told apart")
    assert told.startswith("**no**: no contract is broken in every seed without the fix")


def test_the_newest_record_counts(checkout: Path) -> None:
    of_patched(checkout)
    made, record = of_patched(checkout, seed=9, started_at=STARTED + timedelta(days=1))
    text = page(checkout)
    assert re.findall(r"<code>(.*)</code>", text) == [record]
    rate = median(values(made, 0, "output_throughput"))
    assert cells(text, "`gpu/padded`", "0.21.0 with the fix")[1] == f"{rate:.0f} tok/s (7) [1]"


def test_what_was_not_asked_so_or_was_spoilt_does_not_count(checkout: Path) -> None:
    """Another version of the scenario, an engine on the processor, a planted fault."""
    made, record = of_patched(checkout)
    (checkout / record).unlink()
    older = replace(made, scenario=replace(made.scenario, digest="0" * 64))
    processor = replace(made, builds=tuple(replace(b, accelerator="cpu") for b in made.builds))
    planted = tuple(replace(b, flags={"planted": "slow-step"}) for b in made.builds)
    for at, one in enumerate((older, processor, replace(made, builds=planted))):
        write_run(checkout / "results", replace(one, id=f"0000000{at}"))
    text = page(checkout)
    assert {"0.21.0 with the fix", "0.21.0 known-bad told apart"} <= missing(text)[0]


def test_a_record_of_a_throttled_gpu_says_so(checkout: Path) -> None:
    made, _ = of_patched(checkout)

    def hot(trial: Trial) -> Trial:
        gpus = (GpuState(0, 12, throttled={"hardware-thermal": 0.5}),)
        return replace(trial, surroundings=MachineState(0.01, 0.01, gpus=gpus))

    trials = tuple(hot(t) if t.phase is Phase.PERFORMANCE else t for t in made.trials)
    later = made.started_at + timedelta(hours=1)
    write_run(checkout / "results", replace(made, id="00000001", started_at=later, trials=trials))
    assert "</code>\n   - The GPU was throttled in 14 of 14 trials (heat, by the hardware)" in page(
        checkout
    )


def test_a_record_of_another_layout_says_so(checkout: Path) -> None:
    made, _ = of_patched(checkout)
    layout = "one GPU: two engines with 0.45 of its memory each"
    builds = tuple(replace(build, flags={"stand_in": layout}) for build in made.builds)
    later = made.started_at + timedelta(hours=1)
    write_run(checkout / "results", replace(made, id="00000001", started_at=later, builds=builds))
    assert f"</code>\n   - Not laid out as the scenario says, but {layout}.\n" in page(checkout)


def test_two_machines_are_two_parts(checkout: Path) -> None:
    made, _ = of_patched(checkout)
    other = replace(GPU, id="nvidia-l4-x1-4c-111111", gpus=("NVIDIA L4",))
    write_run(checkout / "results", replace(made, id="00000001", testbed=other))
    text = page(checkout)
    assert text.count("### Figures") == text.count("### Controls") == 2
    assert text.index("## nvidia-h200") < text.index("## nvidia-l4")


def test_the_page_is_written_to_a_file(checkout: Path) -> None:
    page(checkout, "--out", str(checkout / "page.md"))
    assert (checkout / "page.md").read_text() == page(checkout)


def test_the_page_of_this_repository_is_what_its_records_give(monkeypatch) -> None:
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(CHECKOUT))
    told = page(CHECKOUT, "--results", str(CHECKOUT / "results" / "gpu"))
    assert told == PAGE.read_text(), (
        "hybridwatch findings --results results/gpu --out lab/docs/findings-gpu.md"
    )
