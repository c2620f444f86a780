"""What became of the runs of a list, in a sentence each, without reading a record."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pandas as pd

from hybridwatch.analysis.cause import CausePart, find_causes
from hybridwatch.analysis.policy import STRICT, Action
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.analysis.wording.cause_text import cause_sentence
from hybridwatch.database.queries import Index
from hybridwatch.history.runs import RunRow
from hybridwatch.reports.sentence import summary

_READ: Final = ("scenario", "metric", "statistic", "verdict", "effect", "gate")


def build_headlines(rows: Sequence[RunRow], index: Index) -> Mapping[str, str]:
    """Say what became of each run, or why nothing did, by its record.

    The page of a run says it with all that its record has, such as why an engine died.
    """
    verdicts = index.verdicts(records=[row.record for row in rows])
    found = dict(iter(verdicts.groupby("record", sort=False)))
    return {row.record: row.trouble or _said(found.get(row.record, verdicts[:0])) for row in rows}


def _said(verdicts: pd.DataFrame) -> str:
    causes = [cause_sentence(cause) for cause in find_causes(_parts(verdicts))]
    doubts = " ".join(filter(None, dict.fromkeys(verdicts["doubt"])))
    return summary(causes, [Verdict(one) for one in verdicts["verdict"]], doubts)


def _parts(verdicts: pd.DataFrame) -> Iterator[CausePart]:
    """Take what matters to a gate without a policy."""
    columns = (verdicts[name].tolist() for name in _READ)
    for scenario, metric, statistic, word, effect, gate in zip(*columns, strict=True):
        verdict, action = Verdict(word), Action(gate)
        if verdict is Verdict.IMPROVEMENT:
            action = STRICT.rule_for(scenario, metric).action
        if action is not Action.WATCH:
            yield CausePart(metric, statistic, verdict, None if pd.isna(effect) else effect, action)
