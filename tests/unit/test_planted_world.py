"""The planted world: that it is what its truth says, and what the product tells of it."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Final

import pytest
from click.testing import CliRunner

from hybridwatch.analysis.alerts import Alert
from hybridwatch.database.queries import open_index
from hybridwatch.history.alerts import find_alerts, find_groups
from hybridwatch.records.codec import decode, encode
from hybridwatch.records.run import Phase, Run
from tests.planted_world.__main__ import command
from tests.planted_world.needs import SOON, Short
from tests.planted_world.plan import (
    BATCH,
    CHAT,
    DRAFT,
    NOTHING,
    PREFIX,
    PROMPT,
    SHORTEST,
    A,
    B,
    C,
    Fault,
    Kind,
    World,
    morning,
    plan_nothing,
    plan_world,
    read_truth,
)
from tests.planted_world.records import runs_of, write_world
from tests.planted_world.replay import CHECKOUT, Replay, cut_off, replay
from tests.planted_world.score import MESSAGES, Score, score, score_of

NIGHTS: Final = 40
"""Of the world in an ordinary run of the tests; the whole one has 90."""
WORLD: Final = plan_world(seed=1, nights=NIGHTS)
CLOSE: Final = 0.012
"""How near means over ten nights and more come to what is planted."""

Nights = Mapping[int, Run]


def nightlies(scenario: str, testbed: str, world: World = WORLD) -> Nights:
    """The nightly runs of one cell of a world, by their nights."""
    cell = replace(world, scenarios=(scenario,), testbeds=(testbed,))
    runs = runs_of(cell)
    return {world.night_of(r.started_at): r for r in runs if r.builds[1].label.startswith("night")}


def level(run: Run, side: int, metric: str = "tpot") -> float:
    """The median over a side's trials of the median of what each saw."""
    return median(
        median(sample.values)
        for trial in run.measured(side)
        for sample in trial.samples
        if sample.metric == metric
    )


def effect(run: Run, metric: str = "tpot") -> float:
    """How much slower the contender is."""
    return level(run, 1, metric) / level(run, 0, metric) - 1


def mean_effect(runs: Nights, first: int, end: int) -> float:
    """How much slower contenders are, over some nights."""
    return fmean(effect(run) for night, run in runs.items() if first <= night < end)


def baseline_step(runs: Nights, night: int) -> float:
    """By how much the unchanged baseline is slower from a night on."""
    before = [level(run, 0) for at, run in runs.items() if at < night]
    after = [level(run, 0) for at, run in runs.items() if at >= night]
    return median(after) / median(before) - 1


def broken_rules(run: Run) -> float:
    """How often the contender broke a rule, all trials together."""
    contracts = [trial for trial in run.measured(1) if trial.phase is Phase.CONTRACT]
    return sum(value for trial in contracts for one in trial.samples for value in one.values)


def spread_of_trials(run: Run) -> float:
    """Deviation of the baseline's trials from each other, relative."""
    levels = [median(t.samples[-1].values) for t in run.measured(0) if t.surroundings is not None]
    return pstdev(levels) / fmean(levels)


def of(kind: Kind) -> Fault:
    return WORLD.of(kind)


def test_one_fault_of_every_kind_is_planted_and_lies_in_the_world() -> None:
    assert {fault.kind for fault in WORLD.faults} == set(Kind)
    for fault in WORLD.faults:
        assert 0 <= fault.first <= fault.last < NIGHTS
        assert not fault.commit or fault.commit in WORLD.commits[fault.first]


def test_a_world_too_short_for_its_faults_is_refused() -> None:
    with pytest.raises(ValueError, match="expected at least 30, found 29"):
        plan_world(seed=1, nights=SHORTEST - 1)


def test_each_night_has_one_to_five_commits_and_the_newest_is_measured() -> None:
    assert {len(night) for night in WORLD.commits} == {1, 2, 3, 4, 5}
    for night, run in nightlies(CHAT, A).items():
        old, new = run.builds
        assert (old.label, new.label) == ("cpu-0.27.1", f"nightly-{run.started_at:%Y%m%d}")
        assert new.revision == WORLD.commits[night][-1]
        assert new.release.endswith(f"+g{new.revision[:9]}")


def test_sides_are_measured_in_blocks() -> None:
    run = nightlies(CHAT, A)[0]
    timed = [trial.side for trial in run.trials if trial.phase is Phase.PERFORMANCE]
    assert timed == [0, 1, 1, 0] * 5


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        (Kind.STEP, (CHAT, A)),
        (Kind.COMMON_STEP, ("planted/decode", A)),
        (Kind.COMMON_STEP, ("planted/decode", B)),
        (Kind.COMMON_STEP, ("planted/decode", C)),
        (Kind.IMPROVEMENT, (PREFIX, B)),
    ],
)
def test_a_step_begins_on_its_night_and_has_its_size(kind: Kind, place: tuple[str, str]) -> None:
    fault, runs = of(kind), nightlies(*place)
    assert mean_effect(runs, 0, fault.first) == pytest.approx(0, abs=CLOSE)
    assert mean_effect(runs, fault.first, NIGHTS) == pytest.approx(fault.size, abs=CLOSE)
    assert effect(runs[fault.first]) == pytest.approx(fault.size, abs=3 * CLOSE)


def test_a_drift_grows_night_by_night() -> None:
    fault, runs = of(Kind.DRIFT), nightlies(BATCH, B)
    middle = (fault.first + fault.last) // 2
    assert mean_effect(runs, 0, fault.first) == pytest.approx(0, abs=CLOSE)
    assert mean_effect(runs, middle - 3, middle + 4) == pytest.approx(fault.size / 2, abs=CLOSE)
    assert mean_effect(runs, fault.last, NIGHTS) == pytest.approx(fault.size, abs=CLOSE)


def test_a_new_machine_moves_both_sides_and_its_facts_say_so() -> None:
    fault, runs = of(Kind.MACHINE), nightlies(PROMPT, C)
    assert baseline_step(runs, fault.first) == pytest.approx(fault.size, abs=0.03)
    assert mean_effect(runs, fault.first, NIGHTS) == pytest.approx(0, abs=CLOSE)
    facts = {night: (r.testbed.kernel, r.testbed.driver, r.testbed.id) for night, r in runs.items()}
    assert facts[fault.first - 1] == ("6.8.0-45", "550.90.07", C)
    assert facts[fault.first] == ("6.8.0-60", "570.86.15", C)


def test_new_facts_of_a_machine_alone_move_nothing() -> None:
    fault, runs = of(Kind.FACTS), nightlies(PROMPT, A)
    assert runs[fault.first - 1].testbed.kernel != runs[fault.first].testbed.kernel
    assert baseline_step(runs, fault.first) == pytest.approx(0, abs=0.03)


def test_another_load_is_another_digest_and_another_level() -> None:
    fault, runs = of(Kind.LOAD), nightlies(CHAT, C)
    assert baseline_step(runs, fault.first) == pytest.approx(fault.size, rel=0.1)
    digests = [run.scenario.digest for run in runs.values()]
    assert len(set(digests[: fault.first])) == len(set(digests[fault.first :])) == 1
    assert digests[0] != digests[-1]


def test_nothing_was_measured_in_the_gap() -> None:
    fault = of(Kind.GAP)
    away = set(range(fault.first, fault.last + 1))
    assert len(away) == 7
    assert set(range(NIGHTS)) - set(nightlies(CHAT, B)) == away
    assert set(nightlies(CHAT, A)) == set(range(NIGHTS))


def test_the_engine_is_dead_for_its_nights_and_lives_again() -> None:
    fault, runs = of(Kind.DEAD), nightlies(DRAFT, A)
    dead = [night for night, run in runs.items() if any(run.failed(1))]
    assert dead == list(range(fault.first, fault.last + 1))
    assert not any(any(run.measured(1)) for night, run in runs.items() if night in dead)
    assert not any(any(run.failed(0)) for run in runs.values())


def test_answers_are_lost_from_their_night_on() -> None:
    fault, runs = of(Kind.ANSWERS), nightlies(PROMPT, B)

    def lost(run: Run) -> float:
        right = [fmean(a.correct for t in run.measured(side) for a in t.answers) for side in (0, 1)]
        return right[0] - right[1]

    losses = {night: lost(run) for night, run in runs.items()}
    assert max(abs(losses[night]) for night in losses if night < fault.first) < 0.04
    after = fmean(losses[night] for night in losses if night >= fault.first)
    assert after == pytest.approx(fault.size, abs=0.03)


def test_what_is_bad_on_one_night_is_bad_on_no_other() -> None:
    broken, once = of(Kind.CONTRACT), of(Kind.ONCE)
    counts = {night: broken_rules(run) for night, run in nightlies(PROMPT, A).items()}
    red = nightlies(PROMPT, C)
    assert effect(red[once.first], "ttft") == pytest.approx(once.size, abs=2 * CLOSE)
    assert effect(red[once.first], "tpot") == pytest.approx(0, abs=2 * CLOSE)
    assert max(effect(run, "ttft") for night, run in red.items() if night != once.first) < 0.03
    assert {night: count for night, count in counts.items() if count} == {broken.first: 2 * 7.0}


def test_modes_and_luck_scatter_as_they_are_planted() -> None:
    def over_nights(place: tuple[str, str]) -> float:
        return pstdev(effect(run) for run in nightlies(*place).values())

    def within(place: tuple[str, str]) -> float:
        return median(spread_of_trials(run) for run in nightlies(*place).values())

    calm = over_nights((PREFIX, C))
    assert calm < CLOSE
    assert over_nights((PREFIX, A)) > 2.5 * calm
    assert over_nights((DRAFT, B)) > 2.5 * calm
    assert within((BATCH, A)) > 1.5 * within((BATCH, C))


def test_release_pairs_are_measured_once() -> None:
    cell = replace(WORLD, scenarios=(PROMPT,), testbeds=(A,))
    pairs = {
        tuple(build.label for build in run.builds): run
        for run in runs_of(cell)
        if not run.builds[1].label.startswith("nightly")
    }
    assert list(pairs) == [("cpu-0.27.1", "cpu-0.28.0"), ("cpu-0.28.0", "cpu-0.29.0")]
    for run in pairs.values():
        assert effect(run) == pytest.approx(of(Kind.RELEASE).size, abs=2 * CLOSE)


def test_records_come_back_as_they_were_written() -> None:
    for runs in (nightlies(PROMPT, B), nightlies(DRAFT, A)):
        run = runs[of(Kind.DEAD).first]
        encoded = encode(run)
        assert decode(encoded.record, encoded.bulk) == run


def test_equal_seeds_give_equal_bytes(tmp_path: Path) -> None:
    def written(name: str, seed: int) -> dict[str, bytes]:
        world = plan_nothing(seed, SHORTEST, NOTHING["usual"], (CHAT,), (A,))
        write_world(tmp_path / name, world)
        files = (path for path in (tmp_path / name).rglob("*") if path.is_file())
        return {path.relative_to(tmp_path / name).as_posix(): path.read_bytes() for path in files}

    first = written("first", 7)
    assert len(first) == 2 * SHORTEST + 1
    assert written("again", 7) == first
    assert written("other", 8) != first


def test_the_command_writes_a_world_and_says_what_is_in_it(tmp_path, monkeypatch) -> None:
    planned: list[World] = []

    def write(_: Path, world: World) -> int:
        planned.append(world)
        return 1582

    monkeypatch.setattr("tests.planted_world.__main__.write_world", write)
    call = partial(CliRunner().invoke, command, catch_exceptions=False)
    said = call(["--out", str(tmp_path), "--seed", "3"]).output.splitlines()
    assert said[:-1] == [fault.line for fault in plan_world(seed=3).faults]
    assert said[-1] == f"1582 records, {len(said) - 1} planted faults: {tmp_path}"
    call(["--out", str(tmp_path), "--nights", "30", "--nothing", "slow-nights"])
    assert planned == [plan_world(3), plan_nothing(1, 30, NOTHING["slow-nights"])]
    shown = call(["--help"]).output
    assert all(kind in shown for kind in NOTHING)


def test_the_command_wants_an_empty_folder(tmp_path: Path) -> None:
    call = partial(CliRunner().invoke, command, catch_exceptions=False)
    (tmp_path / "mine").touch()
    assert "expected a new or empty folder" in call(["--out", str(tmp_path)]).output
    assert "--out is missing" in call([]).output


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Replay:
    """The nights of a world with faults."""
    folder = tmp_path_factory.mktemp("planted")
    write_world(folder, WORLD)
    assert read_truth(folder) == WORLD
    return replay(folder)


@pytest.fixture(scope="module")
def told(whole: Replay) -> Score:
    """What the product tells of it."""
    return score_of(whole)


BEFORE_AND_AFTER: Final = (Short.NEVER, Short.LATE, Short.SEVERAL)
COMMITS: Final = (Short.NO_COMMITS, Short.MANY_COMMITS, Short.WRONG_COMMITS)
AS_STEP: Final = (Short.NO_STEP, Short.STEP_ELSEWHERE, Short.CALLED_DRIFT)
LASTING: Final = (*BEFORE_AND_AFTER, *COMMITS, *AS_STEP, Short.ENDED_EARLY)
PASSING: Final = (*BEFORE_AND_AFTER, *COMMITS, Short.NOT_OVER)

NEEDED: Final[Mapping[Kind, tuple[Short, ...]]] = {
    Kind.STEP: LASTING,
    Kind.COMMON_STEP: (*LASTING, Short.NOT_JOINED),
    Kind.IMPROVEMENT: (Short.NOT_BETTER, Short.NO_STEP),
    Kind.ANSWERS: LASTING,
    Kind.DEAD: PASSING,
    Kind.DRIFT: (*BEFORE_AND_AFTER, Short.NOT_A_DRIFT, Short.CALLED_STEP, Short.BLAMED),
    Kind.MACHINE: (Short.NO_MACHINE, Short.NO_KERNEL, Short.BLAMED),
    Kind.FACTS: (Short.NO_KERNEL,),
    Kind.START_MODES: (Short.NO_MODES, Short.LEFT_OPEN),
    Kind.TRIAL_MODES: (Short.NO_MODES, Short.LEFT_OPEN),
    Kind.START_LUCK: (Short.LEFT_OPEN,),
    Kind.GAP: (Short.NOT_AWAY, Short.NOT_BACK, Short.NO_MARK),
    Kind.LOAD: (Short.CALLED_STEP, Short.NO_MARK),
    Kind.RELEASE: (Short.LEFT_OPEN,),
    Kind.CONTRACT: PASSING,
    Kind.ONCE: (Short.NOT_OVER,),
}
"""In what each kind must not fall short."""


def statements() -> list[object]:
    """Each of ``NEEDED``."""
    return [
        pytest.param(kind, short, id=f"{kind.name.lower()}-{short.name.lower()}")
        for kind, all_short in NEEDED.items()
        for short in all_short
    ]


@pytest.mark.parametrize(("kind", "short"), statements())
def test_a_planted_fault_is_reported_right(kind: Kind, short: Short, told: Score) -> None:
    answers = told.of(kind)
    assert answers
    assert [answer.line for answer in answers if short in answer.short] == []


def test_nothing_is_found_missing_that_no_statement_names(told: Score) -> None:
    found = {(answer.fault.kind, short) for answer in told.answers for short in answer.short}
    assert found <= {(kind, short) for kind, all_short in NEEDED.items() for short in all_short}


def test_a_truth_that_is_not_so_is_seen(whole: Replay, told: Score) -> None:
    """Faults that lie elsewhere, begin earlier or have another culprit: nothing fits them."""
    step, gap, better = of(Kind.STEP), of(Kind.GAP), of(Kind.IMPROVEMENT)
    wrong = (
        replace(step, first=step.first - 10, commit=WORLD.commits[step.first - 10][0]),
        replace(of(Kind.ANSWERS), testbeds=(C,)),
        replace(gap, first=gap.first + 12, last=gap.last + 12),
        replace(better, testbeds=(C,)),
        replace(of(Kind.CONTRACT), last=NIGHTS - 1),
    )
    world = replace(whole.world, faults=wrong)
    found = score_of(Replay(world, whole.mornings))
    expected: tuple[set[Short], ...] = (
        {Short.LATE, Short.WRONG_COMMITS},
        {Short.NEVER, Short.ENDED_EARLY},
        {Short.NOT_AWAY, Short.NOT_BACK},
        {Short.NOT_BETTER},
        set(),
    )
    for answer, short in zip(found.answers, expected, strict=True):
        assert short <= set(answer.short), answer.line
    assert told.without_cause == ()
    assert {line.split()[1] for line in found.without_cause} >= {
        f"{place}:" for place in (of(Kind.COMMON_STEP).first, of(Kind.DEAD).first)
    }


@pytest.mark.parametrize(
    "holds",
    [
        pytest.param(lambda s: s.open == s.lasting, id="open-alerts-are-causes"),
        pytest.param(lambda s: s.without_cause == (), id="no-alert-without-a-cause"),
        pytest.param(lambda s: s.messages <= MESSAGES * s.causes, id="messages"),
        pytest.param(lambda s: s.gate_without_cause == (), id="gate"),
        pytest.param(lambda s: s.rows == 18, id="a-row-for-each-cell"),
    ],
)
def test_a_world_is_reported_in_few_words(holds: Callable[[Score], bool], told: Score) -> None:
    assert holds(told), told.line


@pytest.mark.parametrize("noise", NOTHING)
def test_noise_alone_opens_no_alert(noise: str, tmp_path: Path) -> None:
    assert alerts_of(plan_nothing(1, SHORTEST, NOTHING[noise], (CHAT,), (A,)), tmp_path) == ()


def alerts_of(world: World, folder: Path) -> tuple[Alert, ...]:
    """Write a world, and give every alert that it ever had, closed ones too."""
    write_world(folder, world)
    return find_alerts(folder, open_index(folder), CHECKOUT, morning(world.nights - 1))


def test_a_morning_of_the_replay_is_what_the_folder_said_then(tmp_path: Path) -> None:
    whole, night = tmp_path / "whole", of(Kind.STEP).first
    write_world(whole, replace(WORLD, scenarios=(CHAT,), testbeds=(A,)))
    then = cut_off(whole, night, tmp_path / "then")
    index = open_index(then)
    alerts = find_groups(then, index, CHECKOUT, morning(night))
    replayed = replay(whole).mornings[night]
    assert alerts
    assert replayed.alerts == alerts
    assert replayed.source.index.counts == index.counts
    assert replayed.source.index.runs().equals(index.runs())


@pytest.mark.hours
@pytest.mark.parametrize(
    "kind",
    [Kind.STEP, Kind.COMMON_STEP, Kind.ANSWERS, Kind.DEAD, Kind.CONTRACT],
    ids=lambda kind: kind.name.lower(),
)
def test_the_culprit_is_among_the_commits(kind: Kind, tmp_path: Path) -> None:
    fell_short = [
        one.line
        for seed in range(100)
        for one in score_of_one(plan_world(seed), kind, tmp_path / str(seed)).of(kind)
        if set(one.short) & {Short.NEVER, *COMMITS}
    ]
    assert len(fell_short) <= 5, "\n".join(fell_short)


def score_of_one(world: World, kind: Kind, folder: Path) -> Score:
    """Score one fault by the cells that it lies in, and remove their records.

    The world ends ``SOON`` nights after the fault, and only mornings since then are looked at.
    """
    fault = world.of(kind)
    places = set(fault.scenarios), set(fault.testbeds)
    beside = [f for f in world.faults if places[0] & {*f.scenarios} and places[1] & {*f.testbeds}]
    end = fault.first + SOON + 1
    cells = replace(
        world,
        nights=end,
        commits=world.commits[:end],
        scenarios=fault.scenarios,
        testbeds=fault.testbeds,
        faults=tuple(f for f in beside if f.first < end),
    )
    write_world(folder, cells)
    found = score(folder, since=fault.first)
    shutil.rmtree(folder)
    return found


@pytest.mark.hours
@pytest.mark.parametrize("noise", NOTHING)
def test_noise_alone_opens_no_alert_in_twenty_worlds(noise, tmp_path_factory) -> None:
    folders = tmp_path_factory
    planned = (plan_nothing(seed, 90, NOTHING[noise]) for seed in range(20))
    assert [len(alerts_of(world, folders.mktemp("world"))) for world in planned] == [0] * 20
