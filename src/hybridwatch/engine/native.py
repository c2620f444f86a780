"""Which labels stand for "with the fix" and "without it" of a build, whatever its release has."""

from hybridwatch.engine.builds import parse_label
from hybridwatch.engine.check import check_build
from hybridwatch.errors import BuildError


def healthy_label(build: str, fix: str) -> str:
    """The build with a fix: as it is when its release has it, else with the fix put in.

    Args:
        build: A label; switches of it stay.
        fix: Id of a fix.

    Raises:
        BuildError: The build cannot be probed, or the fix means nothing to its release.
    """
    request = parse_label(build)
    state = check_build(request.spec).fixes[fix].state
    if state == "not-applicable":
        raise BuildError(f"{build}: fix {fix} does not apply to vLLM {request.spec.release}")
    return build if state == "present" else f"{build}+{fix}"


def known_bad_label(build: str, fix: str) -> str:
    """The build without a fix."""
    return f"{build}~{fix}"
