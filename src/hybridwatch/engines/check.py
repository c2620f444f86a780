"""Checks which fixes an installed build's code has, in its own Python, and labels it by them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from hybridwatch.engines.builds import BuildRequest, BuildSpec, parse_label
from hybridwatch.engines.code_tree import PACKAGE, require_syntax
from hybridwatch.engines.install import InstallState, state
from hybridwatch.engines.launch import own_variables
from hybridwatch.engines.other_python import output_of
from hybridwatch.engines.preflight import require_gpu
from hybridwatch.errors import BuildError
from hybridwatch.scenarios.fixes import CATALOGUE, NO_FIX

CHECK_TIMEOUT_S: Final = 60.0
"""The probes read source files and take under a second; a cold disk takes longer."""


@dataclass(frozen=True, slots=True)
class BuildFinding:
    """One fix in one release: its state, and a digest of the code that the probe read, if any."""

    state: str
    evidence: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class BuildCheck:
    """What an environment really holds; ``faults`` are what can be planted, and what each does.

    Attributes:
        wheel_digest: SHA-256 of the list of its files.
        code_digest: SHA-256 over vLLM's Python files, patched or not; an old plugin gives ``None``.
        changed_files: Those that are not as the wheel lists them; ``None`` where that is unknown.
        diff_digest: SHA-256 of what differs from the commit ``revision``.
    """

    distribution: str
    release: str
    wheel_digest: str
    fixes: Mapping[str, BuildFinding]
    faults: Mapping[str, str]
    code_digest: str | None = None
    changed_files: Sequence[str] | None = None
    revision: str | None = None
    diff_digest: str | None = None

    def as_in(self, fix: str) -> tuple[str, ...]:
        """Name the releases in which the code that decides about a fix is the same."""
        known = CATALOGUE[fix].sources if fix in CATALOGUE else {}
        return tuple(one for one, source in known.items() if source == self.fixes[fix].source)

    def is_changed(self, fix: str) -> bool:
        """Whether no known release has the code that decides about a fix.

        What a probe says of it was never seen. Of a user's own fix no release is known.
        """
        is_known = fix in CATALOGUE and self.fixes[fix].source is not None
        return is_known and not self.as_in(fix)


_CHECK: Final = TypeAdapter(BuildCheck)


def require_installed(build: BuildSpec) -> None:
    """Refuse a build of which no engine can be started here."""
    require_gpu(build)
    _require_environment(build)


def require_code(request: BuildRequest) -> None:
    """Refuse a label that names other code than the build has now: its tree was edited since."""
    if request.code:
        request.build_label(check_build(request.spec).code_digest, changed=True)


def _require_environment(build: BuildSpec) -> None:
    found = state(build)
    if found is not InstallState.INSTALLED:
        raise BuildError(f"the environment of {build.name} is {found.value}; run: {build.made_by}")


def check_build(build: BuildSpec, *, timeout_s: float = CHECK_TIMEOUT_S) -> BuildCheck:
    """Probe the code of an installed build."""
    _require_environment(build)  # reading code takes no GPU
    words = ("hybridwatch_engine.check",)
    output = output_of(
        build.interpreter, words, f"{build.name}: the check", timeout_s, variables=own_variables()
    )
    return _read(build, output)


def require_readable(name: str, python: Path, folder: Path, plugin: Path | None = None) -> None:
    """Refuse code below ``folder`` that the probes of ``plugin``, if not installed, cannot read."""
    words = ("hybridwatch_engine.check", str(folder))
    variables = own_variables() | ({"PYTHONPATH": str(plugin)} if plugin else {})
    try:
        output_of(python, words, f"{name}: the check", CHECK_TIMEOUT_S, variables=variables)
    except BuildError:
        for path in sorted((folder / PACKAGE).rglob("*.py")):
            require_syntax(str(path.relative_to(folder)), path.read_bytes())
        raise


def _read(build: BuildSpec, text: str) -> BuildCheck:
    try:
        return _CHECK.validate_json(text)
    except ValidationError as error:
        shown = text.strip()[:200]
        raise BuildError(f"{build.name}: the check answered no report: {shown!r}") from error


def healthy_label(build: str, fix: str, requires: Sequence[str] = ()) -> str:
    """The build with a fix: as it is when its release has it, else with the fix put in.

    ``fix`` may be ``NO_FIX``. The fixes of ``requires`` that the release knows must be in, too.
    """
    if fix == NO_FIX:
        return equipped_label(build, requires)
    request = parse_label(build)
    found = check_build(request.spec).fixes
    if found[fix].state == "not-applicable":
        raise BuildError(f"{build}: fix {fix} does not apply to vLLM {request.spec.release}")
    own = f"+{fix}" if found[fix].state == "lacking" else ""
    return f"{build}{own}{_added(request, found, requires)}"


def known_bad_label(build: str, fix: str, requires: Sequence[str] = ()) -> str:
    """The build without a fix, and with everything else that its ``healthy_label`` has."""
    return f"{equipped_label(build, requires)}~{fix}"


def equipped_label(build: str, requires: Sequence[str]) -> str:
    """The build as it is, with the fixes that a scenario requires on every side."""
    if not requires:
        return build
    request = parse_label(build)
    return f"{build}{_added(request, check_build(request.spec).fixes, requires)}"


def _added(
    request: BuildRequest, found: Mapping[str, BuildFinding], requires: Sequence[str]
) -> str:
    """Switches for the required fixes that the release lacks and the label does not name."""
    lacking = (fix for fix in requires if found[fix].state == "lacking")
    return "".join(f"+{fix}" for fix in lacking if fix not in request.switches)
