"""Whether the times of a run are to be measured again before a change is reported.

Of the reports on an unchanged engine 1 in 20 is red by chance, so of nights with six scenarios
every fourth. A change counts only if trials on new engines show it too (``analysis/judge.py``).
"""

from collections.abc import Iterable

from hybridwatch.analysis.gate import consequence
from hybridwatch.analysis.judge import FIRST_LEVEL
from hybridwatch.analysis.one_side import list_sides
from hybridwatch.analysis.policy import STRICT, Action, Policy
from hybridwatch.analysis.report import Terms, report_between
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.labels import name_of
from hybridwatch.records.run import Run


def find_reason(run: Run, policies: Iterable[Policy] = (STRICT,)) -> str:
    """Say which time, rate or count of a whole run of two builds is to be measured again.

    Empty where none is a change of a first look, by any of the policies, or where something else is
    bad news that stops: to measure again would change nothing.
    """
    for policy in policies:
        report = report_between(*list_sides(run), Terms(level=FIRST_LEVEL, policy=policy))
        changed = [
            one
            for one in report.comparisons
            if one.verdict in {Verdict.REGRESSION, Verdict.IMPROVEMENT}
            and one.metric.kind.has_noise
            and one.p_value is not None
        ]
        others = (consequence(c, report, policy) for c in report.comparisons if c not in changed)
        if changed and not report.failures and Action.BLOCK not in others:
            clearest = min(changed, key=lambda one: one.p_adjusted or 0.0)
            word = "worse" if clearest.verdict is Verdict.REGRESSION else "better"
            return f"{name_of(clearest)} {numbers.change(clearest)} ({word})"
    return ""
