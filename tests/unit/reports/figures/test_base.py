import plotly.graph_objects as go
import pytest

from hybridwatch.reports.figures.base import base_figure, escaped, faint, figure_on

TRACE = {"type": "scatter", "x": [1, 2], "y": [3, 4]}


def test_a_figure_says_nothing_of_defaults_nor_of_revisions() -> None:
    layout = base_figure([TRACE], xaxis={}, yaxis={}).to_dict()["layout"]
    # By an equal revision plotly would leave numbers out of sight that have changed.
    assert not {"template", "datarevision"} & layout.keys()
    assert "template" in go.Figure([TRACE]).to_dict()["layout"]


def test_a_figure_leaves_the_colours_of_words_and_ground_to_the_page() -> None:
    layout = base_figure([TRACE], xaxis={}, yaxis={}).to_dict()["layout"]
    assert "color" not in layout["font"]
    assert not {"paper_bgcolor", "plot_bgcolor"} & layout.keys()


def test_what_a_figure_says_of_its_axes_holds() -> None:
    figure = base_figure(
        [TRACE], xaxis={"gridcolor": "#123456"}, yaxis={"range": [0, 1]}, height=99
    )
    assert figure.layout.xaxis.gridcolor == "#123456"
    assert figure.layout.yaxis.range == (0, 1)
    assert figure.layout.yaxis.gridcolor is not None
    assert figure.layout.height == 99


def test_a_title_is_harmless_and_none_leaves_no_room() -> None:
    figure = base_figure([TRACE], xaxis={}, yaxis={}, title="<b>x</b> & y")
    assert figure.layout.title.text == escaped("<b>x</b> & y") == "&lt;b&gt;x&lt;/b&gt; &amp; y"
    assert base_figure([TRACE], xaxis={}, yaxis={}).layout.title.text is None


@pytest.mark.parametrize(("alpha", "told"), [(1, "rgba(255,0,16,1)"), (0.5, "rgba(255,0,16,0.5)")])
def test_faint_keeps_the_colour(alpha: float, told: str) -> None:
    assert faint("#ff0010", alpha) == told


def test_a_figure_on_a_page_has_its_colours_and_is_the_same_to_plotly_when_it_comes_again() -> None:
    figure = base_figure([TRACE], xaxis={}, yaxis={}, title="x")
    before = figure.to_dict()
    drawn = figure_on(figure, "#111111", "#eeeeee").to_dict()
    layout = drawn["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "#111111"
    assert layout["font"]["color"] == "#eeeeee"
    # Plotly takes any template, and arrays without a revision, for new ones: it would draw again.
    assert "template" not in layout
    assert "datarevision" in layout
    kept = {key: value for key, value in layout.items() if key in before["layout"]}
    assert kept == {**before["layout"], "font": layout["font"]}
    assert figure.to_dict() == before
    assert drawn["data"] == before["data"]
