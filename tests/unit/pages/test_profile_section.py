"""Where the time went, on the page of an alert: in words and drawn, or why it cannot be read."""

from pathlib import Path

from hybridwatch.analysis.cause import Area
from hybridwatch.pages.document import Chart, Notice, Paragraph
from hybridwatch.records.store import list_records, read_run
from hybridwatch.reports.figures.curve import draw_flames
from tests.broken_engines import slow_contender
from tests.stacks import BUSY, SHARES, put_profile
from tests.unit.pages.test_alert_page import keep, page_of, section, titles

TITLE = "Where the time went"
PLANTED = "loop (core.py) > step (core.py) > busy (model.py)"


def slow_run(results: Path):
    keep(results, 1, slow_contender(1.2))
    (record,) = list_records(results)
    return read_run(record)


def test_the_alert_of_a_profiled_run_names_what_grew_and_draws_it(tmp_path: Path) -> None:
    run = slow_run(tmp_path)
    assert TITLE not in titles(page_of(tmp_path, Area.SPEED))
    put_profile(tmp_path, run)
    words, chart = section(page_of(tmp_path, Area.SPEED), TITLE)
    assert isinstance(words, Paragraph)
    assert "% of engine time in busy (model.py:10), called by step (core.py)" in str(words.line)
    assert isinstance(chart, Chart)
    assert "busy" in chart.figure.data[0].labels
    assert len(chart.data["share"]) == len(chart.figure.data[0].labels)


def test_a_later_bad_run_shows_the_profile_of_the_first(tmp_path: Path) -> None:
    put_profile(tmp_path, slow_run(tmp_path))
    keep(tmp_path, 2, slow_contender(1.2))
    assert TITLE in titles(page_of(tmp_path, Area.SPEED))


def test_a_damaged_profile_is_named_and_the_page_stands(tmp_path: Path) -> None:
    put_profile(tmp_path, slow_run(tmp_path)).write_bytes(b"no gzip")
    document = page_of(tmp_path, Area.SPEED)
    (notice,) = (b for b in document.blocks if isinstance(b, Notice))
    assert notice.title == "The profile could not be read"
    assert "Evidence" in titles(document)


def own_changes(data) -> dict[str, float]:
    own = zip(data["own baseline"], data["own contender"], strict=True)
    names = (path.rpartition(" > ")[2] for path in data["function"])
    return dict(zip(names, (new - old for old, new in own), strict=True))


def test_the_planted_function_alone_is_red() -> None:
    figure, data = draw_flames(*BUSY)
    grown = own_changes(data)
    assert grown.pop("busy (model.py)") > 0.05
    assert all(change < 0.02 for change in grown.values())
    assert list(figure.data[0].marker.colors)[data["function"].index(PLANTED)] > 0.05


def test_the_outer_functions_that_all_samples_share_are_one_root() -> None:
    figure, data = draw_flames(*BUSY)
    assert data["function"][0] == "loop (core.py) > step (core.py)"
    assert len(data["function"]) == len(SHARES) + 2
    assert set(figure.data[0].parents) == {"", "0"}


def test_a_function_put_around_others_does_not_turn_them_red() -> None:
    around = [
        {(*stack[:-1], "wrap (new.py:1)", stack[-1]): n for stack, n in one.items()}
        for one in BUSY[0]
    ]
    assert set(own_changes(draw_flames(BUSY[0], around)[1]).values()) == {0.0}


def test_names_from_an_engine_are_harmless() -> None:
    stack: tuple[str, ...] = ("<b>x</b> (a.py:1)",)
    evil = [{stack: 10} for _ in range(8)]
    trace = draw_flames(evil, evil)[0].data[0]
    assert trace.labels == ("&lt;b&gt;x&lt;/b&gt;",)
    assert "<b>x</b>" not in trace.hovertext[0]


def test_an_empty_side_is_drawn_as_nothing_known() -> None:
    assert set(draw_flames([], BUSY[1])[1]["own baseline"]) == {0.0}
    assert draw_flames(BUSY[0], [])[1]["function"] == []
