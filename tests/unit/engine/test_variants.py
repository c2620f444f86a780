"""The variants of the CUDA builds switch what their releases have: no more, no less.

``engine/releases.json`` says what the code of each release has; ``locks/fixes.py`` writes it.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hybridwatch_engine.fixes.registry import FIXES

from hybridwatch.engine.builds import load_builds, parse_label

CHECKOUT = Path(__file__).parents[3]
RELEASES = json.loads((CHECKOUT / "engine" / "releases.json").read_text())
CUDA = [name for name, build in load_builds(CHECKOUT).items() if name == f"cuda-{build.release}"]
FIVE = (
    "padded-rows-prefilling",
    "single-token-extend",
    "draft-max-seq-len",
    "all-cache-spec-decode",
    "stale-block-table-finished-rows",
)


def wanted(states: Mapping[str, str], kind: str) -> dict[str, bool]:
    """What a variant of a release switches, by part."""
    patched = kind == "patched"
    return {
        fix_id: patched
        for fix_id, fix in FIXES.items()
        if states[fix_id] == ("lacking" if patched else "present")
        and (fix.apply if patched else fix.revert) is not None
        and not fix.parts
        and not fix_id.startswith("cpu-")  # its kernel serves no GPU
    }


def misfits(checkout: Path) -> Iterator[str]:
    """Yield what the variants do not switch as they should."""
    for name in CUDA:
        release = name.removeprefix("cuda-")
        for kind in ("patched", "reverted"):
            found = parse_label(f"{name}-{kind}", checkout).switches
            for fix, on in found.items() ^ wanted(RELEASES[release], kind).items():
                yield f"{name}-{kind}: {fix}: {on}"


def test_variants_switch_what_their_releases_have():
    assert set(CUDA) == {f"cuda-{release}" for release in RELEASES}
    for release, states in RELEASES.items():
        asked = f"python locks/fixes.py {release}"
        assert list(states) == list(FIXES), f"the fixes have changed; run {asked}"
    assert list(misfits(CHECKOUT)) == []


@pytest.mark.parametrize(
    ("old", "new", "misfit"),
    [
        ('accepted-counts = "apply"\n', "", "cuda-0.21.0-patched: accepted-counts: True"),
        (
            'draft-model-cache-group = "apply"',
            'conv-anchor = "apply"\ndraft-model-cache-group = "apply"',
            "cuda-0.21.0-patched: conv-anchor: True",
        ),
        (
            'stale-block-table-finished-rows = "revert"',
            'stale-block-table = "revert"',
            "cuda-0.21.0-reverted: stale-block-table-vacated-rows: False",
        ),
    ],
)
def test_a_variant_that_switches_too_little_or_too_much_is_found(tmp_path, old, new, misfit):
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "locks").symlink_to(CHECKOUT / "engine" / "locks")
    text = (CHECKOUT / "engine" / "builds.toml").read_text()
    assert old in text
    (tmp_path / "engine" / "builds.toml").write_text(text.replace(old, new, 1))
    assert list(misfits(tmp_path)) == [misfit]


@pytest.mark.parametrize(
    ("release", "lacking"),
    [
        ("0.21.0", FIVE[:4]),
        ("0.22.1", ("draft-max-seq-len",)),
        ("0.23.0", ()),
    ],
)
def test_the_releases_around_the_five_fixes_are_what_they_are_known_for(release, lacking):
    found = tuple(fix for fix in FIVE if RELEASES[release][fix] == "lacking")
    assert found == lacking


def test_a_variant_is_its_build_with_other_fixes():
    plain, patched = (
        parse_label(label, CHECKOUT) for label in ("cuda-0.21.0", "cuda-0.21.0-patched")
    )
    assert patched.spec == plain.spec
    assert (plain.label, patched.label) == ("cuda-0.21.0", "cuda-0.21.0-patched")
    assert plain.switches == {}
    without = parse_label("cuda-0.21.0-patched~single-token-extend", CHECKOUT)
    assert without.switches == {**patched.switches, "single-token-extend": False}
    assert without.label == "cuda-0.21.0-patched~single-token-extend"
    builds = load_builds(CHECKOUT)
    environments = {builds[name].environment for name in builds if "0.21.0" in name}
    assert environments == {CHECKOUT / ".engines" / "cuda-0.21.0"}


def test_no_cuda_build_has_what_the_cpu_profile_needs():
    builds = load_builds(CHECKOUT)
    cpu = builds["cpu-0.27.1"].env.keys()
    assert cpu
    for name, build in builds.items():
        if build.accelerator == "cuda":
            assert not cpu & build.env.keys(), name
            assert build.distribution == "vllm"
