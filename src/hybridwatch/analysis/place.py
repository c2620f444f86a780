"""What a report is called among others: enough words to tell it from them, and no more."""

from collections import Counter
from collections.abc import Collection, Sequence

from hybridwatch.analysis.verdict import Report


def list_names(reports: Sequence[Report], testbeds: Collection[str] = ()) -> tuple[str, ...]:
    """Name reports by their scenario; by testbed and builds too where that does not suffice.

    ``testbeds`` has ids of machines that are spoken of besides those of the reports. Names are in
    the order of the reports.
    """
    several = len({*testbeds, *(report.contender.testbed.id for report in reports)}) > 1
    names = [
        f"{report.scenario.id} on {report.contender.testbed.id}" if several else report.scenario.id
        for report in reports
    ]
    often = Counter(names)
    return tuple(
        f"{name} ({report.contender.build.label} against {report.baseline.build.label})"
        if often[name] > 1
        else name
        for name, report in zip(names, reports, strict=True)
    )
