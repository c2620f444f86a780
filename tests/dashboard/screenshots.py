"""Pictures of the main screens for README and docs, of the committed records.

::

    python -m tests.dashboard.screenshots
"""

import io
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click
from PIL import Image
from playwright.sync_api import Browser

from tests.dashboard.looking import settle
from tests.dashboard.server import chromium, serving
from tests.shipped import ROOT

FOLDER: Final = ROOT / "docs" / "screenshots"

SCREENS: Final = {
    "scenario": ("scenario?scenario=smoke%2Fpadded-graph-rows&version=2&along=release", 1340),
    "compare": ("compare?contender=c3a4a83b%231", 1000),
    "sync": ("sync?contender=c3a4a83b%231", 900),
    "sees": ("sees", 900),
}
"""The views that are shown, by the name of their picture, and how many pixels of their height.

No alert is open in the committed records, and they are old: alerts and overview would say little.
"""

_WIDTH: Final = 1280


def take(browser: Browser, address: str, height: int) -> bytes:
    """Take a picture of a view as it opens, in light colours; PNG."""
    context = browser.new_context(
        viewport={"width": _WIDTH, "height": height}, color_scheme="light", timezone_id="UTC"
    )
    try:
        page = context.new_page()
        page.goto(address)
        settle(page)
        page.wait_for_timeout(500)  # plotly fades its figures in
        return page.screenshot(animations="disabled")
    finally:
        context.close()


def shrunk(picture: bytes) -> bytes:
    """Write a picture in as few bytes as it takes, without a change."""
    out = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").save(out, "png", optimize=True)
    return out.getvalue()


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=FOLDER,
    help="Folder to write to.",
)
def command(out: Path) -> None:
    """Take a picture of every main screen."""
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="hybridwatch-") as place:
        # A copy, so that nobody's own runs and answers are in the pictures.
        results = Path(place) / "results"
        shutil.copytree(ROOT / "results" / "records", results / "records")
        with serving(results) as server, chromium() as browser:
            for name, (view, height) in SCREENS.items():
                path = out / f"{name}.png"
                path.write_bytes(shrunk(take(browser, f"{server.address}/{view}", height)))
                click.echo(f"{path}: {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    command()
