"""The candidates of a search: its ends, and releases, commits or files between them."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from packaging.version import InvalidVersion, Version

from hybridwatch.engines.builds import BuildSpec, load_builds, parse_label
from hybridwatch.engines.check import check_build
from hybridwatch.engines.code_tree import (
    COMPILED,
    PACKAGE,
    Commit,
    commits_between,
    common_ancestor,
    files_below,
    find_sha,
    python_changes,
    require_syntax,
)
from hybridwatch.engines.install import InstallState, install, state
from hybridwatch.engines.other_python import look_at
from hybridwatch.engines.own_builds import add_source, remove_build
from hybridwatch.errors import BuildError
from hybridwatch.orchestration.bisect.question import ChangeDirection


def changed_files(first: BuildSpec, last: BuildSpec) -> tuple[Path, ...]:
    """List the files of the package in which two builds differ, compiled ones left out."""
    old, new = (look_at(build.interpreter).package for build in (first, last))
    paths = {path for package in (old, new) for path in files_below(package)}
    return tuple(
        path
        for path in sorted(paths)
        if path.suffix not in COMPILED and not _is_same(old / path, new / path)
    )


@contextmanager
def mixture(first: BuildSpec, last: BuildSpec, paths: Sequence[Path]) -> Iterator[Path]:
    """Lay out the package of a build with some files, relative to it, as another has them."""
    old, new = (look_at(build.interpreter).package for build in (first, last))
    with tempfile.TemporaryDirectory(prefix="hybridwatch-files-") as folder:
        package = Path(folder) / "vllm"
        for path in files_below(old):
            if path.suffix not in COMPILED:
                _take(old / path, package / path)
        for path in paths:
            (package / path).unlink(missing_ok=True)
            if (new / path).is_file():
                _take(new / path, package / path)
        yield Path(folder)


def _is_same(one: Path, other: Path) -> bool:
    if not (one.is_file() and other.is_file()):
        return False
    return one.samefile(other) or one.read_bytes() == other.read_bytes()


def _take(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One position of a search.

    ``key`` is the same in every call. ``make`` gives the label of its build, or raises
    ``BuildError``. ``weight`` says how likely it is to be the change, against the others; for
    times.
    """

    key: str
    title: str
    make: Callable[[], str]
    weight: float = 1.0
    commit: Commit | None = None


@dataclass(frozen=True, slots=True)
class CandidateList:
    """Two or more releases, commits, files or builds (``name``) in order, the ends included."""

    name: str
    entries: tuple[Candidate, ...]

    @property
    def ends(self) -> tuple[Candidate, Candidate]:
        """The earlier and the later end."""
        return self.entries[0], self.entries[-1]

    @property
    def last(self) -> int:
        """Position of the later end."""
        return len(self.entries) - 1


HOT: Final = (
    "mamba",
    "v1/worker/",
    "v1/core/",
    "v1/attention/",
    "v1/engine/",
    "v1/sample/",
    "v1/spec_decode/",
)
"""What a step of a hybrid model goes through: a file whose path has one of these."""
HOT_WEIGHT: Final = 4.0
COLD_WEIGHT: Final = 0.05
"""Of a commit that changes no Python of the package."""
_PREFIX: Final = "bisect"
_SHORT: Final = 10
_OF_SEARCH: Final = 6
"""How many digits of the search the names of its builds have."""


@dataclass(slots=True)
class BuildFactory:
    """Makes the builds of a search, and removes them when it is over; ``made`` are those it added.

    ``base`` is the build that code is laid over, empty for the nearest release's. The names of
    builds have digits of ``search``: another one in this home may measure the same commit, and ends
    when it likes. It is empty where builds are shared.
    """

    has_code: ClassVar[bool] = True
    """Whether the builds' code is on this machine, to distinguish their files and fixes."""

    home: Path
    repo: Path | None
    base: str
    installs: bool
    say: Callable[[str], None]
    search: str = ""
    made: list[str] = field(default_factory=list)

    def require(self, candidates: CandidateList) -> None:
        """Have both ends of a list before anything is measured, and say what will be left out."""
        if candidates.name == "commits":
            for end in candidates.ends:
                end.make()
            return
        labels = [one.key.partition(" ")[0] for one in candidates.entries]
        specs = [parse_label(label, self.home).spec for label in labels]
        missing = {one.name: one for one in specs if state(one) is not InstallState.INSTALLED}
        ends = [name for name in missing if name in {specs[0].name, specs[-1].name}]
        made_by = "".join(f"\n  {one.made_by}" for one in missing.values())
        if ends and not self.installs:
            raise BuildError(
                f"{' and '.join(ends)}: expected both ends to be installed before anything is "
                f"measured; --install installs what is needed, or:{made_by}"
            )
        for name in ends:
            install(missing.pop(name), say=self.say)
        if missing and not self.installs:
            self.say(f"left out, since not installed; --install installs what is needed:{made_by}")

    def release(self, spec: BuildSpec) -> str:
        """Have a release, and give its label."""
        if state(spec) is not InstallState.INSTALLED:
            if not self.installs:
                raise BuildError(f"not installed; --install does, or: {spec.made_by}")
            install(spec, say=self.say)
        return spec.name

    def commit(self, sha: str, good: str) -> str:
        """Make the build of a commit; ``good`` is an earlier commit whose engine comes up."""
        assert self.repo is not None  # noqa: S101 - a commit comes with its clone
        name = self.named(sha, good)
        known = load_builds(self.home).get(name)
        if known is None or state(known) is not InstallState.INSTALLED:
            build = add_source(self.home, name, self.repo, self.base, sha)
            self.base = self.base or build.base  # all over the same one
        self.made.append(name)
        return name

    def named(self, sha: str, good: str) -> str:
        """Name the build of a commit, whose Python has to be readable."""
        assert self.repo is not None  # noqa: S101 - a commit comes with its clone
        for path, text in python_changes(self.repo, good, sha).items():
            require_syntax(path, text)
        return self._name(sha[:_SHORT])

    def files(self, first: BuildSpec, last: BuildSpec, paths: Sequence[Path]) -> str:
        """Make the build that is ``first`` but for some files, which are as ``last`` has them."""
        name = self._name(f"files-{len(paths)}")
        with mixture(first, last, paths) as folder:
            add_source(self.home, name, folder, first.base or first.name)
        self.made.append(name)
        return name

    def _name(self, what: str) -> str:
        return "-".join(filter(None, (_PREFIX, self.search[:_OF_SEARCH], what)))

    def clear(self, keep: Sequence[str] = ()) -> None:
        """Remove the builds that were made, except those of these names."""
        for name in self.made:
            if name not in keep:
                remove_build(self.home, name)
        self.made = [name for name in self.made if name in keep]


def list_releases(factory: BuildFactory, first: BuildSpec, last: BuildSpec) -> CandidateList:
    """List the builds of the releases from one to another."""
    ends = Version(first.release), Version(last.release)
    alike = [
        build
        for build in load_builds(factory.home).values()
        if (build.accelerator, build.distribution) == (first.accelerator, first.distribution)
        and not (build.origin or build.variant_of or build.fixes)
        and _is_between(build.release, ends)
    ]
    alike.sort(key=lambda build: Version(build.release))
    return CandidateList(
        "releases",
        tuple(
            Candidate(build.name, build.name, partial(factory.release, build))
            for build in (first, *alike, last)
        ),
    )


def list_commits(factory: BuildFactory, first: str, last: str) -> CandidateList:
    """List the commits from one to another; those that reach no engine are left out."""
    assert factory.repo is not None  # noqa: S101 - a commit comes with its clone
    commits = commits_between(factory.repo, first, last)
    if not commits:
        raise BuildError(
            f"{factory.repo}: no commit from {first[:12]} to {last[:12]} changes the engine"
        )

    def candidate(sha: str, title: str, commit: Commit | None = None) -> Candidate:
        weight = compute_weight(commit.paths) if commit else 1.0
        return Candidate(sha, title, partial(factory.commit, sha, first), weight, commit)

    begin = candidate(first, first[:_SHORT])
    rest = (candidate(one.sha, f"{one.sha[:_SHORT]} {one.title}", one) for one in commits)
    return CandidateList("commits", (begin, *rest))


def list_files(factory: BuildFactory, first: Candidate, last: Candidate) -> CandidateList | None:
    """List the files in which two builds over one release differ; ``None`` if fewer than two do."""
    old, new = (parse_label(one.make(), factory.home).spec for one in (first, last))
    if (old.base or old.name) != (new.base or new.name):
        return None
    paths = changed_files(old, new)
    if len(paths) < 2:
        return None
    between = tuple(
        Candidate(
            f"{first.key}..{last.key}:{number}",
            str(path),
            partial(factory.files, old, new, paths[:number]),
        )
        for number, path in enumerate(paths[:-1], start=1)
    )
    return CandidateList(
        "files", (first, *between, replace(last, title=str(paths[-1]), commit=None))
    )


def list_builds(factory: BuildFactory, first: str, last: str) -> CandidateList:
    """Take two builds with nothing between them."""
    ends = (
        Candidate(_key(label, factory.home), label, partial(str, label)) for label in (first, last)
    )
    return CandidateList("builds", tuple(ends))


def compute_weight(paths: Sequence[str]) -> float:
    """Say how likely a commit that changes these files is to change a step's time."""
    python = [path for path in paths if path.startswith(f"{PACKAGE}/") and path.endswith(".py")]
    if not python:
        return COLD_WEIGHT
    return HOT_WEIGHT if any(part in path for path in python for part in HOT) else 1.0


def release_tag(repo: Path, release: str) -> str:
    """Give the commit of a release."""
    try:
        return find_sha(repo, f"refs/tags/v{release}")
    except BuildError as error:
        raise BuildError(f"{error}; run there: git fetch --tags") from error


def _is_between(release: str, ends: tuple[Version, Version]) -> bool:
    try:
        return ends[0] < Version(release) < ends[1]
    except InvalidVersion:
        return False


def _key(label: str, home: Path) -> str:
    spec = parse_label(label, home).spec
    if not spec.origin:
        return label
    return f"{label} {check_build(spec).code_digest}"


@dataclass(frozen=True, slots=True)
class Ends:
    """Labels of builds or commits, the earlier first; ``releases`` if both are without switches."""

    labels: tuple[str, str] = ("", "")
    releases: tuple[BuildSpec, BuildSpec] | None = None
    commits: tuple[str, str] | None = None

    @property
    def key(self) -> str:
        """What distinguishes this search from others."""
        return " ".join(self.commits or self.labels)


def find_ends(
    good: str, bad: str, wanted: ChangeDirection, repo: Path | None, accelerator: str, home: Path
) -> Ends:
    """Find the builds, or commits of the clone ``repo``, that two words name.

    Of a fix the two may be in any order, if it is known which is later.
    """
    labels = [_read_label(word, accelerator, home) for word in (good, bad)]
    if all(labels):
        return _of_builds(labels[0], labels[1], wanted, home)
    if repo is None:
        word = (good, bad)[labels.index("")]
        raise BuildError(
            f"{word}: expected a build, a release with a build, or with --repo a commit; "
            f"known builds: {', '.join(load_builds(home))}"
        )
    first, last = (
        _find_commit(word, label, repo, home)
        for word, label in zip((good, bad), labels, strict=True)
    )
    if common_ancestor(repo, first, last) != last:
        return Ends(commits=(first, last))
    if wanted is ChangeDirection.REGRESSION:
        raise _reversed(first[:12], last[:12])
    return Ends(commits=(last, first))


def _read_label(word: str, accelerator: str, home: Path) -> str:
    builds = load_builds(home)
    named = [
        name
        for name, build in builds.items()
        if build.release == word.removeprefix("v")
        and build.accelerator == accelerator
        and not (build.origin or build.variant_of or build.fixes)
    ]
    if named:
        return named[0]
    name = word.partition("@")[0].partition("~")[0].partition("+")[0]
    return parse_label(word, home).label if name in builds else ""


def _of_builds(good: str, bad: str, wanted: ChangeDirection, home: Path) -> Ends:
    specs = [parse_label(label, home).spec for label in (good, bad)]
    plain = all(not spec.origin for spec in specs) and [s.name for s in specs] == [good, bad]
    if plain and specs[0].release != specs[1].release:
        ordered = sorted(specs, key=lambda spec: Version(spec.release))
        if wanted is ChangeDirection.REGRESSION and ordered[0] is not specs[0]:
            raise _reversed(good, bad)
        first, last = ordered
        return Ends((first.name, last.name), (first, last))
    return Ends((bad, good) if wanted is ChangeDirection.FIX else (good, bad))


def _find_commit(word: str, label: str, repo: Path, home: Path) -> str:
    if not label:
        return find_sha(repo, word)
    spec = parse_label(label, home).spec
    if spec.name != label or spec.origin:
        raise BuildError(f"{word}: expected a commit or a release, as the other end is a commit")
    return release_tag(repo, spec.release)


def _reversed(good: str, bad: str) -> BuildError:
    return BuildError(
        f"--good {good}: expected to be earlier than --bad {bad}; --find fix looks for where "
        "something got better"
    )
