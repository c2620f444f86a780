"""Searches releases, then commits, files and fixes: each list lies within the last step found."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hybridwatch.analysis.subject import find_phase
from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import check_build
from hybridwatch.engines.code_tree import PACKAGE, common_ancestor
from hybridwatch.errors import BuildError, EngineError, LateEngineError, LostProbeError
from hybridwatch.metrics import find_metric
from hybridwatch.orchestration.bisect.candidates import (
    BuildFactory,
    Candidate,
    CandidateList,
    Ends,
    list_builds,
    list_commits,
    list_files,
    list_releases,
    release_tag,
)
from hybridwatch.orchestration.bisect.measurer import (
    parse_contracts,
    render_timed,
    render_value,
    timed_outcome,
)
from hybridwatch.orchestration.bisect.question import (
    ExactQuestion,
    ProbeAnswer,
    ProbeOutcome,
    ProbeState,
    is_of_life,
)
from hybridwatch.orchestration.bisect.search import (
    BisectSearch,
    SearchResult,
    TimedQuestion,
    end_blocks,
)
from hybridwatch.records.run import Phase, Run
from hybridwatch.scenarios.fixes import catalogue


def switches_between(first: str, last: str) -> Iterator[tuple[str, str, bool]]:
    """Yield fixes that one build alone has: fix, switched label, whether it is the earlier one."""
    states = [check_build(parse_label(label).spec).fixes for label in (first, last)]
    for name, fix in catalogue().items():
        found = {one[name].state for one in states if name in one}
        if fix.parts or found != {"present", "lacking"}:
            continue
        for label, state, is_first in ((first, states[0], True), (last, states[1], False)):
            way, mark = ("revert", "~") if state[name].state == "present" else ("apply", "+")
            if way in fix.ways:
                yield name, f"{label}{mark}{name}", is_first


_OK = (ProbeAnswer.UNCHANGED, ProbeAnswer.CHANGED)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The pair, measured again; ``labels`` are the builds, as their engines reported them.

    ``record`` is where the run is, empty of an engine that gave none; ``ratios`` are log ratios of
    its blocks, of times.
    """

    holds: bool
    text: str
    labels: tuple[str, str]
    record: str
    ratios: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class FixTrial:
    """A fix in the build ``label``; ``holds`` if that behaves as the pair's other build."""

    fix: str
    label: str
    holds: bool


@dataclass(slots=True)
class BisectResult:
    """All that a search found; the last of ``findings`` names the answer."""

    findings: list[SearchResult] = field(default_factory=list)
    confirmation: Confirmation | None = None
    files: SearchResult | None = None
    fix_trials: list[FixTrial] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def answer(self) -> SearchResult:
        """The deepest finding that knows what changed, or else the first."""
        known = [finding for finding in self.findings if finding.question is not None]
        return known[-1] if known else self.findings[0]

    @property
    def culprit(self) -> Candidate | None:
        """The one candidate that is the change; of skipped commits one that changes the file."""
        suspects = self.answer.suspects
        if self.answer.question is None or not self.answer.is_exhausted:
            return None
        if len(suspects) > 1 and self.files is not None and self.files.is_found:
            path = f"{PACKAGE}/{self.files.suspects[0].title}"
            suspects = tuple(one for one in suspects if one.commit and path in one.commit.paths)
        return suspects[0] if len(suspects) == 1 else None

    @property
    def is_confirmed(self) -> bool:
        """Whether one candidate is the change, and its pair was found to differ again."""
        sure = self.confirmation
        return sure is not None and sure.holds and self.culprit is not None


@dataclass(slots=True)
class Bisector:
    """Searches list after list, each within the answer before; ``keep`` stores run and verdict."""

    ends: Ends
    factory: BuildFactory
    search: BisectSearch
    keep: Callable[[Run], Path]
    say: Callable[[str], None]

    def run(self) -> BisectResult:
        """Search list after list."""
        found = BisectResult()
        try:
            self._run_bisector(found)
        except LostProbeError:
            if not found.findings:
                raise
        if self.search.lost:
            found.notes.append(f"the search ended early: {self.search.lost}")
        return found

    def _run_bisector(self, found: BisectResult) -> None:
        for candidates in self._lists(found):
            if not found.findings:
                self.factory.require(candidates)
            self.say(f"{candidates.name}: {candidates.last} between {_span(candidates.ends)}")
            try:
                finding = self.search.search(candidates)
            except BuildError as error:
                if not found.findings:
                    raise
                found.notes.append(f"no {candidates.name} were searched: {error}")
                continue
            if found.findings and finding.question is None:
                found.notes.append(
                    f"{candidates.name} between {_span(candidates.ends)}: {finding.why_not}"
                )
            found.findings.append(finding)
        self._confirm(found)
        question = found.answer.question
        is_sure = found.confirmation is not None and found.confirmation.holds
        if question is not None and is_sure and self.search.may_go_on():
            self._look_closer(found, question, *found.answer.pair)

    def _confirm(self, found: BisectResult) -> None:
        """Measure the pair side by side; by times search on while it does not hold."""
        while (answer := found.answer).question is not None and answer.is_exhausted:
            sure = self._measured_again(answer.question, answer.pair)
            found.confirmation = sure
            if sure.holds or not sure.ratios or not self.search.may_go_on():
                return
            self.say(f"  {_span(answer.pair)}, side by side: {sure.text}; the search goes on")
            at = found.findings.index(answer)
            found.findings[at] = self.search.reconsider(answer, sure.ratios)
        found.confirmation = None

    def _measured_again(
        self, question: ExactQuestion | TimedQuestion, pair: tuple[Candidate, Candidate]
    ) -> Confirmation:
        """Measure again the last candidate before the change and the first behind it."""
        labels = pair[0].make(), pair[1].make()
        if isinstance(question, TimedQuestion):
            return self._times_again(question, labels)
        if is_of_life(question.metric):
            ends, record = self._measured_apart(labels)
        else:
            run = self.search.measurer.session(labels, {Phase.CONTRACT})
            ends = [parse_contracts(run, side, 0.0) for side in (0, 1)]
            record = str(self.keep(run))
        answers = tuple(map(question.answer, ends))
        values = " -> ".join(render_value(question.metric, one) for one in ends)
        named = (ends[0].label or labels[0], ends[1].label or labels[1])
        return Confirmation(answers == _OK, values, named, record)

    def _measured_apart(self, labels: tuple[str, str]) -> tuple[list[ProbeOutcome], str]:
        """Measure one by one: the engine that dies must not take the other's run with it."""
        ends, record = [], ""
        for label in labels:
            try:
                run = self.search.measurer.session((label,), {Phase.CONTRACT})
            except LateEngineError as error:
                ends.append(ProbeOutcome(state=ProbeState.NOT_HAD, reason=str(error), label=label))
            except EngineError:
                ends.append(ProbeOutcome(state=ProbeState.NOT_UP, label=label))
            else:
                ends.append(parse_contracts(run, 0, 0.0))
                record = str(self.keep(run))
        return ends, record

    def _times_again(self, question: TimedQuestion, labels: tuple[str, str]) -> Confirmation:
        metric = find_metric(question.metric)
        run = self.search.measurer.session(labels, {find_phase(metric)}, end_blocks(metric.id))
        outcome = timed_outcome(run, metric, 0.0)
        record = str(self.keep(run))
        named = run.builds[0].label, run.builds[1].label
        if outcome.state is not ProbeState.MEASURED:
            return Confirmation(False, outcome.reason, named, record)
        holds = question.effect.is_changed(outcome.ratios)
        return Confirmation(holds, render_timed(outcome), named, record, outcome.ratios)

    def _lists(self, found: BisectResult) -> Iterator[CandidateList]:
        """Give the first list, then the commits between two releases if there is a clone."""
        ends, repo = self.ends, self.factory.repo
        if ends.commits is not None:
            yield list_commits(self.factory, *ends.commits)
            return
        if ends.releases is None:
            yield list_builds(self.factory, *ends.labels)
            return
        yield list_releases(self.factory, *ends.releases)
        if repo is None or not found.answer.is_found or not self.search.may_go_on():
            return
        releases = [parse_label(one.key).spec.release for one in found.answer.pair]
        try:
            tags = [release_tag(repo, release) for release in releases]
            # A release has a branch of its own; the way to the next one begins where that parted.
            yield list_commits(self.factory, common_ancestor(repo, *tags), tags[1])
        except BuildError as error:
            found.notes.append(f"no commits were searched: {error}")

    def _look_closer(
        self,
        found: BisectResult,
        question: ExactQuestion | TimedQuestion,
        first: Candidate,
        last: Candidate,
    ) -> None:
        if not self.factory.has_code:
            found.notes.append("files and fixes were not looked at: the builds are on other hosts")
            return
        try:
            candidates = list_files(self.factory, first, last)
            if candidates is not None:
                self.say(f"files: {candidates.last} differ between {first.title} and {last.title}")
                found.files = self.search.search(candidates)
            switches = list(switches_between(first.make(), last.make()))
        except BuildError as error:
            found.notes.append(str(error))
            return
        for fix, label, is_first in switches:
            if not self.search.may_go_on():
                found.notes.append("the time was spent before every fix was switched")
                return
            key = f"{(first if is_first else last).key} {label}"
            candidate = Candidate(key, label, partial(str, label))
            answer = self.search.answer(question, first, candidate)
            if answer is ProbeAnswer.SKIPPED:
                found.notes.append(f"{label} could not be measured")
                continue
            became = ProbeAnswer.CHANGED if is_first else ProbeAnswer.UNCHANGED
            found.fix_trials.append(FixTrial(fix, label, answer is became))


def _span(pair: tuple[Candidate, Candidate]) -> str:
    first, last = pair
    return f"{first.title} and {last.title}"
