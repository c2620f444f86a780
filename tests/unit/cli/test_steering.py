"""Whatever a file's name or a text in it would do to a display is shown instead, everywhere."""

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from unicodedata import category

import pytest
from click.testing import Result

from hybridwatch.pages.screens import SCREENS
from hybridwatch.records.run import Run
from hybridwatch.records.store import write_run
from tests.command_line import run_verb
from tests.store_builders import REGRESSED, run, scenario

STEERING: Final = "\x1b[2J\x07\u202egnp\u2066\x9b31m"
SHOWN: Final = r"\x1b[2J\x07\u202egnp\u2066\x9b31m"
FORMULA: Final = "-2+3+cmd|' /C calc'!A0"


def hostile(text: str = STEERING) -> Run:
    made = run(replace(REGRESSED, text=text, scenario=scenario(f"smoke/{text}"), failed_trials=1))
    builds = tuple(
        replace(build, label=f"{text}{build.label}", flags={text: text}) for build in made.builds
    )
    testbed = replace(made.testbed, cpu_model=text, kernel=text)
    return replace(made, builds=builds, testbed=testbed)


def invoke(*words: str | Path) -> Result:
    done = run_verb(*words)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def steers(text: str) -> list[str]:
    """Everything that steers a display; styles of a terminal would be told as well."""
    return [mark for mark in text if mark not in "\t\n" and category(mark) in {"Cc", "Cf", "Cs"}]


class Texts(HTMLParser):
    """All that a browser would show or read out, the texts of figures too."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._kind = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self._kind = (told.get("type") or "script") if tag == "script" else tag
        self.parts += [
            told.get(name) or "" for name in ("title", "aria-label", "data-label", "alt")
        ]
        self.parts += [told.get("download") or "", told.get("href") or ""]

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 (its signature)
        self._kind = ""

    def handle_data(self, data: str) -> None:
        if self._kind == "application/json":
            self.parts += _strings(json.loads(data))
        elif self._kind not in {"script", "style"}:
            self.parts.append(data)


def _strings(found: Any) -> list[str]:
    if isinstance(found, dict):
        told = (value for key, value in found.items() if key != "legendgroup")  # not shown
        return [text for value in told for text in _strings(value)]
    if isinstance(found, list):
        return [text for value in found for text in _strings(value)]
    return [found] if isinstance(found, str) else []


@pytest.fixture
def _unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a text goes as it is wherever it was made visible."""
    for name in (
        "cli.terminal",
        "cli.main",
        "reports.escape",
        "pages.html",
        "reports.figures.base",
    ):
        monkeypatch.setattr(f"hybridwatch.{name}.visible", lambda text: text)
    monkeypatch.setattr("hybridwatch.system.plain_text._text_cell", lambda text: text)


@pytest.mark.parametrize("screen", SCREENS)
def test_nothing_in_a_saved_page_steers_a_display(tmp_path, screen) -> None:
    write_run(tmp_path / "results", hostile())
    out = tmp_path / "page.html"
    invoke("page", screen, "--results", tmp_path / "results", "--out", out)
    parts = Texts(out.read_text()).parts
    assert [part for part in parts if steers(part)] == []
    if screen in {"runs", "run"}:  # the others need not speak of this run
        assert any(SHOWN in part for part in parts)


@pytest.mark.parametrize(
    "words",
    [
        ("records",),
        ("compare", "latest"),
        ("gate", "latest"),
        ("comment", "--dry-run", "latest"),
        ("index",),
        ("compare", "latest", "--metric", "ttft"),
        ("compare", "gone\x1b[2J"),
        ("explain", "gone\x1b[2J"),
        ("export", "--to", "csv", "gone\x1b[2J"),
        ("records", "--no\x1b[2J"),
        ("records", "gone\x1b[2J"),
    ],
)
def test_nothing_on_the_terminal_steers_it(tmp_path, words) -> None:
    results = tmp_path / "re\x1b[2Jsults"
    path = write_run(results, hostile())
    (path.parent / "bro\x1b[2J\u202eken.json").write_text('{"a\x1b": "\u202e"}')
    (path.parent / "half\x07.json").write_text("{")
    done = invoke(*words, "--results", results)
    # The comment's own zero-width spaces keep GitHub from waking people.
    assert steers(done.output.replace("\u200b", "")) == []


def test_files_that_are_ingested_cannot_steer_the_terminal(tmp_path) -> None:
    (tmp_path / "a\x1b[2J.json").write_text('{"key\x1b": 1}')
    (tmp_path / "b\nadded: 9.json").write_text("[")
    done = invoke("ingest", tmp_path, "--results", tmp_path / "results")
    assert steers(done.output) == []
    assert r"a\x1b[2J.json" in done.output
    assert r"b\x0aadded: 9.json" in done.output


def test_an_exported_csv_holds_no_formula_and_nothing_that_steers(tmp_path) -> None:
    made = hostile(STEERING)
    builds = tuple(replace(build, label=f"{FORMULA} {build.label}") for build in made.builds)
    write_run(tmp_path, replace(made, builds=builds))
    done = invoke("export", "--to", "csv", "--results", tmp_path)
    assert steers(done.stdout) == []
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["build"][: len(FORMULA) + 1] for row in rows} == {f"'{FORMULA}"}
    assert not [cell for row in rows for cell in row.values() if re.match(r"[=+@]|-\D", cell)]


def test_an_honest_export_is_what_it_was_and_is_read_again(tmp_path) -> None:
    write_run(tmp_path / "results", run(REGRESSED))
    out = tmp_path / "out.csv"
    invoke("export", "--to", "csv", "--metric", "ttft", "--results", tmp_path / "results",
           "--out", out)  # fmt: skip
    assert "'" not in out.read_text()
    told = json.loads(invoke("detect", out, "--json").stdout)
    names = {row["series"] for row in csv.DictReader(io.StringIO(out.read_text()))}
    assert {series["series"] for series in told["series"]} == names


@pytest.mark.usefixtures("_unguarded")
def test_a_page_a_terminal_and_a_csv_without_guard_would_be_seen(tmp_path) -> None:
    made = hostile()
    builds = tuple(replace(build, label=f"{FORMULA} {build.label}") for build in made.builds)
    write_run(tmp_path / "results", replace(made, builds=builds))
    out = tmp_path / "page.html"
    invoke("page", "run", "--results", tmp_path / "results", "--out", out)
    assert any(map(steers, Texts(out.read_text()).parts))
    for words in (["records"], ["gate", "latest"], ["compare", "latest"]):
        assert steers(invoke(*words, "--results", tmp_path / "results").output), words
    assert steers(invoke("records", "--results", tmp_path / "no\x1b").output)
    told = invoke("export", "--to", "csv", "--results", tmp_path / "results").stdout
    assert steers(told)
    assert f",{FORMULA} " in told
