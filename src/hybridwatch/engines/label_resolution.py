"""Which labels stand for "with the fix" and "without it" of a build, whatever its release has."""

from collections.abc import Mapping, Sequence

from hybridwatch.engines.builds import BuildRequest, parse_label
from hybridwatch.engines.check import BuildFinding, check_build
from hybridwatch.errors import BuildError
from hybridwatch.scenarios.fixes import NO_FIX


def healthy_label(build: str, fix: str, requires: Sequence[str] = ()) -> str:
    """The build with a fix: as it is when its release has it, else with the fix put in.

    Switches of ``build`` stay. ``fix`` may be ``NO_FIX``. The fixes of ``requires`` must be in too,
    where they mean something to the release.

    Raises:
        BuildError: The build cannot be probed, or the fix means nothing to its release.
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
    """The build without a fix, and with everything else that its healthy one has.

    Arguments as for ``healthy_label``.
    """
    request = parse_label(build)
    added = _added(request, check_build(request.spec).fixes, requires) if requires else ""
    return f"{build}{added}~{fix}"


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
