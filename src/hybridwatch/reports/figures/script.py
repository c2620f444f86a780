"""The script that draws figures in a browser, for a page that brings its own."""

from plotly.offline import get_plotlyjs


def plotly_script() -> str:
    """Give plotly's JavaScript, about 4 MB."""
    return str(get_plotlyjs())
