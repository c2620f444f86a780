"""The answer of a search as text and as JSON."""

import math
from collections.abc import Iterator
from typing import Any, Final

from hybridwatch.orchestration.bisect.bisector import BisectResult
from hybridwatch.orchestration.bisect.candidates import Candidate
from hybridwatch.orchestration.bisect.measurer import first_line
from hybridwatch.orchestration.bisect.question import ProbeState
from hybridwatch.orchestration.bisect.search import SearchResult, TimedQuestion

_BAR: Final = 40
_MOST_BARS: Final = 12
_LEAST_SHOWN: Final = 0.005


def result_lines(found: BisectResult, repeat: str) -> Iterator[str]:
    """Say what came of a search; ``repeat`` is the command that measures the answer again."""
    answer = found.answer
    if answer.question is None:
        yield f"the change is not there: {answer.why_not}"
        return
    culprit = found.culprit
    if culprit is not None:
        yield from _place(answer, culprit)
    else:
        good, bad = answer.pair
        yield f"{answer.question.metric} changed between {good.title} and {bad.title}:"
        yield f"{len(answer.suspects)} {answer.candidates.name} that could not be distinguished"
    yield from skipped_lines(answer)
    yield from posterior_lines(answer)
    yield from doubt_lines(answer)
    if (sure := found.confirmation) is not None:
        word = "confirmed" if sure.holds else "NOT confirmed"
        yield f"measured again, {word}: {sure.text} ({sure.labels[0]} -> {sure.labels[1]})"
        if sure.record:
            yield f"record:  {sure.record}"
    if found.files is not None and found.files.question is not None:
        files = ", ".join(one.title for one in found.files.suspects)
        yield f"{'file' if found.files.is_found else 'one of the files'}: {files}"
    for trial in found.fix_trials:
        result = "is the cause" if trial.holds else "is not the cause by itself"
        yield f"fix {trial.fix} {result}: {trial.label}"
    yield from found.notes
    if culprit is not None:
        yield f"repeat:  {repeat}"


def skipped_lines(finding: SearchResult) -> Iterator[str]:
    """Name the candidates that said nothing."""
    for one in finding.measured:
        if one.at in finding.place.skipped:
            why = f"{one.outcome.state.value}: {first_line(one.outcome.reason)}"
            yield f"skipped: {finding.candidates.entries[one.at].title} ({why})"


def doubt_lines(finding: SearchResult) -> Iterator[str]:
    """Say what is held against the machine, where times decided."""
    doubted = [one.outcome.doubts for one in finding.measured if one.outcome.doubts]
    if doubted:
        yield f"doubt:   {len(doubted)} of {len(finding.measured)} sessions: {doubted[0][0]}"


def posterior_lines(finding: SearchResult) -> Iterator[str]:
    """Draw how likely each candidate is to be the change."""
    if finding.belief is None:
        return
    masses = [float(one) for one in finding.belief.masses]
    likely = sorted(range(len(masses)), key=lambda at: -masses[at])[:_MOST_BARS]
    for at in sorted(at for at in likely if masses[at] >= _LEAST_SHOWN):
        bar = "#" * max(1, round(_BAR * masses[at]))
        yield f"{masses[at]:6.1%} {bar} {finding.candidates.entries[at + 1].title}"


def to_json(scenario: str, found: BisectResult, repeat: str, minutes: float) -> dict[str, Any]:
    """As docs/json.md has it."""
    answer = found.answer
    sure = found.confirmation
    return {
        "schema_version": 1,
        "scenario": scenario,
        "found": found.culprit is not None,
        "confirmed": found.is_confirmed,
        "minutes": round(minutes, 2),
        "searches": [_search(finding) for finding in found.findings],
        "answer": None if answer.question is None else _answer(answer, found.culprit),
        "confirmation": None
        if sure is None
        else {
            "holds": sure.holds,
            "seen": sure.text,
            "builds": list(sure.labels),
            "record": sure.record or None,
        },
        "files": None if found.files is None else _search(found.files),
        "fixes": [
            {"fix": trial.fix, "build": trial.label, "is_cause": trial.holds}
            for trial in found.fix_trials
        ],
        "notes": list(found.notes),
        "repeat": repeat if found.culprit is not None else None,
    }


def _place(finding: SearchResult, culprit: Candidate) -> Iterator[str]:
    assert finding.question is not None  # noqa: S101 - it was found
    yield f"{finding.question.metric} changed with {culprit.title}"
    if (commit := culprit.commit) is not None:
        yield f"commit:  {commit.sha}"
        yield f"author:  {commit.author}"
        yield f"title:   {commit.title}"
        if commit.pull_request is not None:
            yield f"pull request: #{commit.pull_request}"
    yield f"before:  {finding.pair[0].title}"
    if finding.belief is not None:
        yield f"sure:    {finding.belief.best().mass:.1%}"


def _answer(finding: SearchResult, culprit: Candidate | None) -> dict[str, Any]:
    question = finding.question
    assert question is not None  # noqa: S101 - the caller looked
    effect = question.effect if isinstance(question, TimedQuestion) else None
    return {
        "metric": question.metric,
        "find": question.wanted.value,
        "effect": None if effect is None else math.expm1(effect.size),
        "interval": None if effect is None else [math.expm1(one) for one in effect.interval],
        "certainty": None if finding.belief is None else finding.belief.best().mass,
        "good": finding.pair[0].key,
        "bad": finding.pair[1].key,
        "culprit": None if culprit is None else _candidate(culprit),
        "suspects": [_candidate(one) for one in finding.suspects],
    }


def _search(finding: SearchResult) -> dict[str, Any]:
    masses = None if finding.belief is None else [float(one) for one in finding.belief.masses]
    states = [one.outcome.state for one in finding.measured]
    return {
        "of": finding.candidates.name,
        "candidates": finding.candidates.last,
        "why_not": finding.why_not or None,
        "measured": len(finding.measured) - states.count(ProbeState.NOT_HAD),
        "skipped": [finding.candidates.entries[at].key for at in sorted(finding.place.skipped)],
        "measurements": [
            {
                "candidate": finding.candidates.entries[one.at].key,
                "answer": one.answer.value if one.answer else None,
                **one.outcome.model_dump(mode="json"),
            }
            for one in finding.measured
        ],
        "posterior": masses,
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    commit = candidate.commit
    if commit is None:
        return {"name": candidate.key}
    return {
        "name": candidate.key,
        "author": commit.author,
        "title": commit.title,
        "pull_request": commit.pull_request,
        "paths": list(commit.paths),
    }
