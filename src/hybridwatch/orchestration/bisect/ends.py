"""The ends of a search, as ``--good`` and ``--bad`` name them, and which of them is earlier."""

from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from hybridwatch.engines.builds import BuildSpec, load_builds, parse_label
from hybridwatch.engines.commits import common_ancestor, find_sha
from hybridwatch.errors import BuildError
from hybridwatch.orchestration.bisect.candidates import release_tag
from hybridwatch.orchestration.bisect.question import ChangeDirection


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
