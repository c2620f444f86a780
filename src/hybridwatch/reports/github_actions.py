"""A gate's answer for a job of GitHub Actions: annotations, and text that cannot become a command.

A line that begins with ``::name`` is a command of the job, and so is ``##[name]`` anywhere in it.
Text from records is printed while commands are stopped, and escaped inside a command.
"""

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from hybridwatch.analysis.change_review import ChangeReview
from hybridwatch.analysis.detection import complaints_about
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.wording.cause_text import cause_sentence
from hybridwatch.reports.escape import one_line
from hybridwatch.reports.pull_request import render_title
from hybridwatch.reports.sentence import headline

MOST: Final = 10
"""Annotations of one level that GitHub shows for a step; what comes after them it drops."""
_LONGEST: Final = 1000
_TITLE: Final = "hybridwatch"
_ERROR: Final = "error"
_WARNING: Final = "warning"
_DATA: Final = {"%": "%25"}
"""What the runner undoes in a text, but for line ends, of which ``one_line`` leaves none."""
_PROPERTY: Final = {**_DATA, ":": "%3A", ",": "%2C"}


@dataclass(frozen=True, slots=True)
class _Annotation:
    level: str
    place: str
    text: str


def annotations(findings: ChangeReview) -> list[str]:
    """Write an annotation for each cause and each thing that is missing, errors first.

    There is an error exactly where the gate stops, and the last one of ``MOST`` counts the others.
    """
    found = list(_annotations(findings))
    if not findings.gate.passed and all(one.level != _ERROR for one in found):
        found.append(_Annotation(_ERROR, "", render_title(findings)))
    levels = ([one for one in found if one.level == level] for level in (_ERROR, _WARNING))
    return [_command(one) for level in levels for one in _bounded(level)]


def without_commands(lines: Iterable[str]) -> Iterator[str]:
    """Put a stop to commands before lines that hold text from records, and lift it behind them."""
    token = secrets.token_hex(16)  # that no record can know
    yield f"::stop-commands::{token}"
    yield from lines
    yield f"::{token}::"


def _annotations(findings: ChangeReview) -> Iterator[_Annotation]:
    for absent in findings.absent:
        yield _Annotation(_ERROR, absent.place, absent.reason)
    for control in findings.controls:
        for complaint in complaints_about(control):
            yield _Annotation(_ERROR, control.scenario, complaint)
    for report in findings.incomparable:
        yield _Annotation(_ERROR, findings.name_of(report), headline(report))
    for found in findings.causes:
        if not found.cause.is_better and found.cause.action is not Action.WATCH:
            level = _ERROR if found.cause.action is Action.BLOCK else _WARNING
            yield _Annotation(level, found.place, cause_sentence(found.cause, found.report))
    for left_out in findings.left_out:
        yield _Annotation(_WARNING, left_out.place, left_out.reason)


def _bounded(found: list[_Annotation]) -> list[_Annotation]:
    if len(found) <= MOST:
        return found
    more = len(found) - MOST + 1
    return [*found[: MOST - 1], _Annotation(found[0].level, "", f"and {more} more")]


def _command(one: _Annotation) -> str:
    title = f"{_TITLE}: {one.place}" if one.place else _TITLE
    return f"::{one.level} title={_escaped(title, _PROPERTY)}::{_escaped(one.text, _DATA)}"


def _escaped(text: str, marks: dict[str, str]) -> str:
    return "".join(marks.get(mark, mark) for mark in one_line(text)[:_LONGEST])
