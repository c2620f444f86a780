"""A new release becomes a build: lock, fixes, entry, a first look, and a branch with all of it."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from packaging.version import Version

from hybridwatch.engines.code_tree import git
from hybridwatch.engines.install import requirements_alone
from hybridwatch.errors import BuildError, GpuError, HybridwatchError
from hybridwatch.system import nvidia
from hybridwatch_lab.releases import tables
from hybridwatch_lab.releases.first_look import FirstLook
from hybridwatch_lab.releases.locks import PYTHONS, LockProgress, find_lock, make_lock
from hybridwatch_lab.releases.published import DISTRIBUTIONS, published
from hybridwatch_lab.releases.tables import Probed, probe_release, with_release


class TrackOutcome(Enum):
    """How a step ended."""

    DONE = "done"
    FAILED = "failed"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class TrackStep:
    """One step."""

    name: str
    outcome: TrackOutcome
    says: str


@dataclass(frozen=True, slots=True)
class Tracked:
    """What came of a release; without a branch ``commit`` is empty."""

    build: str
    branch: str
    commit: str
    steps: tuple[TrackStep, ...]

    @property
    def failed(self) -> bool:
        """Whether a step failed."""
        return any(step.outcome is TrackOutcome.FAILED for step in self.steps)

    def to_json(self) -> Mapping[str, Any]:
        """As docs/json.md has it."""
        return {
            "build": self.build,
            "branch": self.branch if self.commit else None,
            "commit": self.commit or None,
            "steps": [
                {"step": step.name, "outcome": step.outcome.value, "says": step.says}
                for step in self.steps
            ],
        }


class Repository:
    """A git repository, whole and with a commit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        top = Path(git(folder, "rev-parse", "--show-toplevel").rstrip("\n"))
        if top != folder.resolve():
            raise BuildError(f"{folder}: expected the top of a git repository, which is {top}")
        self.head = self.resolve_commit("HEAD")

    def resolve_commit(self, name: str) -> str:
        """Give the commit that a name stands for."""
        return git(self._folder, "rev-parse", "--verify", f"{name}^{{commit}}").strip()

    def has_branch(self, name: str) -> bool:
        """Whether there is a branch of this name."""
        return bool(git(self._folder, "branch", "--list", name).strip())

    def text_at(self, commit: str, path: Path) -> str:
        """Read a file as a commit has it."""
        return git(self._folder, "show", f"{commit}:./{path.as_posix()}")

    @contextmanager
    def checked_out(self, commit: str) -> Iterator[Path]:
        """Check a commit out into a temporary folder, which is gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="hybridwatch-track-") as name:
            folder = Path(name) / "checkout"
            git(self._folder, "worktree", "add", "--quiet", "--detach", str(folder), commit)
            try:
                yield folder
            finally:
                git(self._folder, "worktree", "remove", "--force", str(folder))


def commit_as(folder: Path, branch: str, paths: Sequence[Path], message: str) -> None:
    """Commit files of a checked-out folder, and give the commit a branch."""
    git(folder, "add", "--", *map(str, paths))
    git(folder, "commit", "--quiet", "--no-verify", "--message", message)
    git(folder, "branch", branch)


Say = Callable[[str], None]

_BRANCHES: Final = "track"
_TITLES: Final = {"cpu": "on a CPU", "cuda": "for CUDA"}


def newer_releases(home: Path, accelerator: str) -> tuple[str, list[str]]:
    """Find the newest build that is committed, and the releases newer than it, oldest first."""
    repository = Repository(home)
    newest = tables.newest_build(
        repository.text_at(repository.head, tables.BUILDS_FILE), accelerator
    )
    known = Version(newest.release)
    found = [one.release for one in published(accelerator) if Version(one.release) > known]
    return newest.name, found


def track(home: Path, accelerator: str, releases: Sequence[str], say: Say) -> list[Tracked]:
    """Make a branch for each release, each upon the one before."""
    repository = Repository(home)
    if repository.has_branch(_BRANCHES):
        raise BuildError(
            f"{home}: expected no branch {_BRANCHES}, beside which git takes none called "
            f"{_BRANCHES}/BUILD; rename it: git branch -m {_BRANCHES} NAME"
        )
    base, done = repository.head, []
    for release in releases:
        build = f"{accelerator}-{release}"
        branch = f"{_BRANCHES}/{build}"
        if repository.has_branch(branch):
            steps: Sequence[TrackStep] = [
                TrackStep("branch", TrackOutcome.LEFT_OUT, f"{branch} is there already")
            ]
        else:
            with repository.checked_out(base) as checkout:
                steps = _Release(checkout, accelerator, release, say).make(branch)
        commit = repository.resolve_commit(branch) if repository.has_branch(branch) else ""
        base = commit or base
        done.append(Tracked(build, branch, commit, tuple(steps)))
    return done


class _Release:
    """One release on its way to a branch."""

    def __init__(self, checkout: Path, accelerator: str, release: str, say: Say) -> None:
        self._checkout = checkout
        self._accelerator = accelerator
        self._release = release
        self._build = f"{accelerator}-{release}"
        self._say = say
        self._newest = tables.newest_build(
            (checkout / tables.BUILDS_FILE).read_text(encoding="utf-8"), accelerator
        )
        self._probed: dict[str, Probed] = {}
        self._steps: list[TrackStep] = []

    def make(self, branch: str) -> list[TrackStep]:
        """Take every step; one that fails ends those that need it."""
        needed = (("lock", self._lock), ("fixes", self._fixes), ("entry", self._entry))
        if all(self._take(name, do) for name, do in needed):
            self._look()
            self._take("branch", lambda: self._commit(branch))
        return self._steps

    def _take(self, name: str, do: Callable[[], str]) -> bool:
        self._say(f"{self._build}: {name}")
        try:
            says, outcome = do(), TrackOutcome.DONE
        except HybridwatchError as error:
            says, outcome = str(error), TrackOutcome.FAILED
        self._steps.append(TrackStep(name, outcome, says))
        return outcome is TrackOutcome.DONE

    def _leave_out(self, why: str, *names: str) -> None:
        self._steps += [TrackStep(name, TrackOutcome.LEFT_OUT, why) for name in names]

    def _lock(self) -> str:
        lock = find_lock(self._build)
        text = make_lock(self._accelerator, self._release, self._progress())
        (self._checkout / lock).write_text(text, encoding="utf-8")
        return f"{len(_pins(text))} packages in {lock}"

    def _progress(self) -> LockProgress:
        """Count what pip looks at: for CUDA every package once more for each Python."""
        pins = _pins((self._checkout / find_lock(self._newest.name)).read_text(encoding="utf-8"))
        times = 1 if self._accelerator == "cpu" else 1 + len(PYTHONS)
        return LockProgress(self._say, f"{self._build}: lock", times * len(pins))

    def _fixes(self) -> str:
        distribution = DISTRIBUTIONS[self._accelerator]
        self._probed = probe_release(self._checkout, distribution, self._release)
        file = self._checkout / tables.FIXES_FILE
        text = with_release(file.read_text(encoding="utf-8"), self._release, self._probed)
        file.write_text(text, encoding="utf-8")
        moved = tables.moved(text, self._newest.release, self._release)
        since = "; ".join(moved) or "none"
        return f"{len(self._probed)} asked; other than in {self._newest.release}: {since}"

    def _entry(self) -> str:
        lock = (self._checkout / find_lock(self._build)).read_text(encoding="utf-8")
        torch = next((line for line in _pins(lock) if line.startswith("torch==")), "")
        if not torch:
            raise BuildError(f"{find_lock(self._build)}: expected torch in it, found none")
        file = self._checkout / tables.BUILDS_FILE
        text = file.read_text(encoding="utf-8")
        changed = tables.with_build(text, self._newest, self._release, torch)
        file.write_text(changed, encoding="utf-8")
        other = "" if torch == self._newest.torch else f", but with {torch}"
        return f"as {self._newest.name}{other}"

    def _look(self) -> None:
        if reason := _unfit(self._accelerator):
            self._leave_out(reason, "install", "check", "contracts")
            return
        look = FirstLook(self._checkout, self._build, self._say)
        if not self._take("install", look.install):
            self._leave_out("not installed", "check", "contracts")
            return
        self._take("check", lambda: look.check(self._release, self._probed))
        self._take("contracts", lambda: look.contracts(self._accelerator, self._release))

    def _commit(self, branch: str) -> str:
        title = f"Build {self._build}: vLLM {self._release} {_TITLES[self._accelerator]}"
        lines = [f"{step.name}, {step.outcome.value}: {step.says}" for step in self._steps]
        message = "\n".join([title, "", "Made by hybridwatch engine track.", "", *lines])
        paths = (find_lock(self._build), tables.BUILDS_FILE, tables.FIXES_FILE)
        commit_as(self._checkout, branch, paths, message)
        return branch


def _pins(lock: str) -> list[str]:
    lines = requirements_alone(lock).splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _unfit(accelerator: str) -> str:
    """Say why no engine can be started here; empty if one can."""
    if accelerator == "cpu":
        return ""
    try:
        return "" if nvidia.devices() else "the driver shows no GPU to this process"
    except GpuError as error:
        return str(error)
