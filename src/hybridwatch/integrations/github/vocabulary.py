"""What a comment may name: whatever exists on the default branch and in the results folder."""

from dataclasses import dataclass
from pathlib import Path

from hybridwatch.engines.builds import label_words, load_builds
from hybridwatch.metrics import METRICS, Kind, find_metric
from hybridwatch.orchestration.bisect.question import ALIVE, STARTS
from hybridwatch.records.store import list_records, list_verdicts
from hybridwatch.records.store.layout import read_run_id
from hybridwatch.scenarios.load import survey
from hybridwatch.system.home import home


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Every name that there is.

    Attributes:
        releases: Of the builds.
        fixes: What a label switches.
        faults: What a label plants.
        metrics: Ids of those that are measured everywhere, and of those that a scenario expects.
        searchable: Of these, what a search can look for; and whether the engine lives.
    """

    scenarios: frozenset[str]
    groups: frozenset[str]
    builds: frozenset[str]
    releases: frozenset[str]
    fixes: frozenset[str]
    faults: frozenset[str]
    metrics: frozenset[str]
    searchable: frozenset[str]
    runs: frozenset[str]
    verdicts: frozenset[str]


def build_vocabulary(results: Path) -> Vocabulary:
    """Read what there is; a file that names something and cannot be read is an error."""
    scenarios = survey(home() / "scenarios").scenarios
    expected = {name for one in scenarios for name in (*one.expect.exactly, *one.expect.at_least)}
    metrics = {find_metric(name) for name in expected | {metric.id for metric in METRICS}}
    specs = load_builds()
    words = label_words()
    searched = {metric.id for metric in metrics if metric.kind is not Kind.PROPORTION}
    return Vocabulary(
        scenarios=frozenset(one.id for one in scenarios),
        groups=frozenset(one.id.partition("/")[0] for one in scenarios),
        builds=frozenset(specs),
        releases=frozenset(spec.release for spec in specs.values()),
        fixes=frozenset(words.fixes),
        faults=frozenset(words.added),
        metrics=frozenset(metric.id for metric in metrics),
        searchable=frozenset(searched | {STARTS, ALIVE}),
        runs=frozenset(map(read_run_id, list_records(results))),
        verdicts=frozenset(map(read_run_id, list_verdicts(results))),
    )
