"""The wheel of this checkout, installed where nothing of the checkout is."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[1]


LAB = ROOT / "lab"


def build_wheel(folder: Path, source: Path = ROOT) -> Path:
    """Build it without a network, and without leaving anything in the checkout."""
    config = folder / "build.cfg"
    config.write_text(
        f"[build]\nbuild_base = {folder / 'build'}\n[egg_info]\negg_base = {folder}\n"
    )
    options = ("--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", str(folder))
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, str(source)],
        env={**os.environ, "DIST_EXTRA_CONFIG": str(config)},
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def install_wheel(environment: Path, *wheels: Path) -> Path:
    """Install them in a new environment, which shares our packages but not our checkout.

    A line of a ``.pth`` file adds a folder and does not read the ``.pth`` files in it, so the
    editable installation that the tests run from stays out.

    Returns:
        The command of that environment.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    options = ("--no-deps", "--no-index", "--quiet")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", *options, *wheels],
        check=True,
    )
    share_packages(environment, Path(sysconfig.get_path("purelib")))
    return environment / "bin" / "hybridwatch"


def share_packages(environment: Path, site: Path) -> None:
    """Have an environment see the packages of another one behind its own."""
    (own,) = (environment / "lib").glob("python3*/site-packages")
    (own / "shared.pth").write_text(f"{site}\n")
