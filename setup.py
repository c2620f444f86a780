"""Puts what is shipped beside the code into the wheel; everything else is in pyproject.toml.

The folders lie at the top of the repository and have names that no package may have, so no setting
of setuptools maps them. An editable installation uses them where they lie
(hybridwatch/system/home.py).
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
DATA = Path("hybridwatch") / "data"
SHIPPED = (
    *("scenarios", "oracles", "models", "dashboard", "ci/gate.toml", "docs/calibration.json"),
    *("engine/builds.toml", "engine/campaign.toml", "engine/fixes.toml", "engine/pack.toml"),
    *("engine/locks", "engine/MANIFEST.in", "engine/pyproject.toml"),
    *("engine/README.md", "engine/src"),
)
# What trains a model is of no use without the repository; passwords are nobody else's.
LEFT_OUT = ("__pycache__", "*.egg-info", "secrets.toml")
OF_RECIPES = ("*.py", "drafting", "memory", "recipe")


class WithWhatIsShipped(build_py):
    """Also copies what is shipped, following links: a wheel has none."""

    def run(self) -> None:
        """Copy the package, then what lies beside it."""
        super().run()
        if self.editable_mode:
            return
        into = Path(self.build_lib) / DATA
        shutil.rmtree(into, ignore_errors=True)  # what an earlier build has left
        for name in SHIPPED:
            self._copy(HERE / name, into / name)

    @staticmethod
    def _copy(source: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_file():
            shutil.copyfile(source, target)
            return
        recipes = OF_RECIPES if source.name == "models" else ()
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*LEFT_OUT, *recipes))


setup(cmdclass={"build_py": WithWhatIsShipped})
