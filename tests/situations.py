"""Reports as people meet them: what every view is checked against."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from hybridwatch.analysis.report import Terms, build_report, report_between
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Report
from hybridwatch.records.identity import Expected
from hybridwatch.records.run import Phase
from tests.builders import CONTENDER, Trials, a_run, noisy, with_failures

HOSTILE: Final = (
    "</code></details><script>alert(1)</script> | a | `b` **c** [d](http://evil) @everyone #1\n"
    "# heading \u202ereversed\x1b[31m"
)


def _side(speed: float = 1.0, breaches: float = 0.0, seed: int = 1) -> dict[str, Trials]:
    return {
        "contract.padded_rows_prefilling": (breaches,) * 3,
        "accuracy.recall": "1" * 190 + "0" * 10,
        "output_throughput": noisy(812.0 / speed, 7, 0.01, seed),
        "engine_step_rate": noisy(217.0 / speed, 7, 0.01, seed),
        "batch_occupancy": noisy(3.4, 7, 0.001, seed + 30),
        "ttft": noisy(0.0413 * speed, 7, 0.01, seed + 10),
        "metadata_build_time": noisy(0.00031, 7, 0.2, seed + 20),
        "host_syncs_per_step": (3.0,) * 7,
    }


def regression() -> Report:
    worse = {**_side(1.2, 12.0, seed=2), "accuracy.recall": "1" * 170 + "0" * 30}
    return build_report(a_run(_side(), worse))


def improvement() -> Report:
    return build_report(a_run(_side(1.2, 12.0), _side(seed=2)))


def broken() -> Report:
    """Both sides give ten wrong answers and too few right ones; another contract is kept again."""
    half: dict[str, Trials] = {
        "contract.wrong_answers": (10.0,) * 3,
        "accuracy.recall": "1" * 100 + "0" * 100,
    }
    old = {**half, "contract.padded_rows_prefilling": (12.0,) * 3}
    new = {**half, "contract.padded_rows_prefilling": (0.0,) * 3}
    return build_report(a_run(old, new, expected=Expected({}, {"accuracy.recall": 0.95})))


def unsure() -> Report:
    """Three tasks that each lost as many answers as p 0.03 tells: red, but a gate only warns."""
    tasks = ("accuracy.recall", "accuracy.lookup", "accuracy.chain")
    right, wrong = "1" * 200, "0" * 5 + "1" * 195
    return build_report(a_run(dict.fromkeys(tasks, right), dict.fromkeys(tasks, wrong)))


def worse_within() -> Report:
    """Few answers lost and none won, and a little slower: worse for sure, by less than allowed."""
    old: dict[str, Trials] = {"accuracy.recall": "1" * 600, "ttft": noisy(0.0413, 12, 0.003, 1)}
    new: dict[str, Trials] = {
        "accuracy.recall": "0" * 5 + "1" * 595,
        "ttft": noisy(0.0418, 12, 0.003, 2),
    }
    return build_report(a_run(old, new))


def other_run() -> Report:
    """Two runs of builds whose earlier runs scatter by more than the change."""
    base, cont = (a_run({"tpot": noisy(level, 10, 0.003)}) for level in (0.04, 0.042))
    sides = OneSide(base, 0), OneSide(replace(cont, id="22222222"), 0)
    return report_between(*sides, Terms(noise={("tpot", "median"): 0.031}))


def equivalent() -> Report:
    quiet = ("contract.padded_rows_prefilling", "accuracy.recall", "host_syncs_per_step")
    side = {name: values for name, values in _side().items() if name in quiet}
    return build_report(a_run(side, side))


def inconclusive() -> Report:
    return build_report(
        a_run({"tpot": noisy(1.0, 5, 0.1)}, {"tpot": noisy(1.0, 5, 0.1, 2), "itl": ()})
    )


def failed() -> Report:
    contender = {"contract.padded_rows_prefilling": (0.0,), "ttft": noisy(0.04)}
    run = with_failures(a_run(_side(), contender), 1, Phase.ACCURACY, 1, "the engine hung for 60 s")
    return build_report(run)


def other_testbed() -> Report:
    left = a_run(_side())
    right = replace(left, id="22222222", testbed=replace(left.testbed, id="xeon-8c", cores=8))
    return report_between(OneSide(left, 0), OneSide(right, 0))


def nothing() -> Report:
    return build_report(a_run({}, {}))


def hostile() -> Report:
    run = a_run({"accuracy.recall": "1"}, {"accuracy.recall": "0"})
    run = with_failures(run, 1, Phase.PERFORMANCE, 1, HOSTILE)
    trials = tuple(
        replace(t, answers=tuple(replace(a, prompt=HOSTILE, response=HOSTILE) for a in t.answers))
        for t in run.trials
    )
    builds = (run.builds[0], replace(CONTENDER, label=f"x```{HOSTILE}", flags={"f": HOSTILE}))
    scenario = replace(run.scenario, id=HOSTILE)
    return build_report(replace(run, trials=trials, builds=builds, scenario=scenario))


SITUATIONS: Final[dict[str, Callable[[], Report]]] = {
    situation.__name__: situation
    for situation in (
        regression,
        improvement,
        broken,
        unsure,
        worse_within,
        other_run,
        equivalent,
        inconclusive,
        failed,
        other_testbed,
        nothing,
        hostile,
    )
}
