"""The one word for what came of a run."""

from pathlib import Path

from hybridwatch.analysis.report import build_report
from hybridwatch.cli.outcome import RunOutcome
from hybridwatch.scenarios.load import find
from tests.builders import a_comparison, noisy

SCENARIOS = Path(__file__).parents[3] / "scenarios"


def test_a_run_of_which_one_comparison_is_open_is_not_called_equivalent() -> None:
    (scenario,) = find(SCENARIOS, ("smoke/padded-graph-rows",))
    old, new = (
        {"host_syncs_per_step": (3.0,) * 7, "tpot": noisy(1.0, 5, 0.1, seed)} for seed in (1, 2)
    )
    run = a_comparison(old, new)
    outcome = RunOutcome(scenario, run, Path("record.json"), build_report(run))
    word, _, by = outcome.summary()
    assert (word, by) == ("inconclusive", "1 comparison")
