"""The variants of the CUDA builds switch what their releases have: no more, no less.

``engine/fixes.toml`` says what the code of each release has.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hybridwatch_engine.fixes.registry import FIXES

from hybridwatch.engines.builds import load_builds, parse_label
from hybridwatch.errors import BuildError
from hybridwatch.scenarios.fixes import CATALOGUE
from tests.shipped import ROOT

NAMED = dict.fromkeys(release for fix in CATALOGUE.values() for release in fix.releases)
RELEASES = {
    release: {fix_id: fix.releases[release] for fix_id, fix in CATALOGUE.items()}
    for release in NAMED
}
CUDA = [name for name, build in load_builds(ROOT).items() if name == f"cuda-{build.release}"]
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
        and CATALOGUE[fix_id].accelerator != "cpu"
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
    assert CUDA
    assert set(CUDA) <= {f"cuda-{release}" for release in RELEASES}
    assert list(misfits(ROOT)) == []


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "locks").symlink_to(ROOT / "engine" / "locks")
    (tmp_path / "engine" / "builds.toml").write_bytes(
        (ROOT / "engine" / "builds.toml").read_bytes()
    )
    return tmp_path


def rewrite(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_a_fix_is_named_whole_where_every_part_is_switched():
    builds = load_builds(ROOT)
    assert builds["cuda-0.32.0-reverted"].switches == {
        "padded-rows-prefilling": False,
        "single-token-extend": False,
        "draft-max-seq-len": False,
        "stale-block-table": False,
        "stale-padded-rows": False,
        "decode-graph-by-shape": False,
        "mamba-lookup-margin": False,
        "resumed-block-split": False,
        "replay-boundary": False,
        "connector-hits": False,
        "external-hits": False,
    }
    assert builds["cuda-0.21.0-reverted"].switches == {
        "stale-block-table-finished-rows": False,
        "stale-padded-rows": False,
        "resumed-block-split": False,
    }


def test_a_variant_of_a_release_that_was_not_probed_is_refused(checkout):
    rewrite(checkout / "engine" / "builds.toml", 'release = "0.32.0"', 'release = "0.99.0"')
    match = (
        r'^engine/builds.toml: builds."cuda-0.32.0-patched".fixes: patched: expected a release of '
        r'which engine/fixes.toml says what fixes it has, found "0.99.0", which is unknown to '
        r"padded-rows-prefilling, .*; python locks/fixes.py 0.99.0 asks its wheel$"
    )
    with pytest.raises(BuildError, match=match):
        load_builds(checkout)


def test_another_word_than_patched_or_reverted_is_refused(checkout):
    rewrite(checkout / "engine" / "builds.toml", 'fixes = "patched"', 'fixes = "mended"')
    match = (
        r'^engine/builds.toml: builds."cuda-0.21.0-patched".fixes: expected a table, "patched" or '
        r'"reverted", found "mended"$'
    )
    with pytest.raises(BuildError, match=match):
        load_builds(checkout)


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
    plain, patched = (parse_label(label, ROOT) for label in ("cuda-0.21.0", "cuda-0.21.0-patched"))
    assert patched.spec == plain.spec
    assert (plain.label, patched.label) == ("cuda-0.21.0", "cuda-0.21.0-patched")
    assert plain.switches == {}
    without = parse_label("cuda-0.21.0-patched~single-token-extend", ROOT)
    assert without.switches == {**patched.switches, "single-token-extend": False}
    assert without.label == "cuda-0.21.0-patched~single-token-extend"
    builds = load_builds(ROOT)
    environments = {builds[name].environment for name in builds if "0.21.0" in name}
    assert environments == {ROOT / ".engines" / "cuda-0.21.0"}


def test_no_cuda_build_has_what_the_cpu_profile_needs():
    builds = load_builds(ROOT)
    cpu = builds["cpu-0.27.1"].env.keys()
    assert cpu
    for name, build in builds.items():
        if build.accelerator == "cuda":
            assert not cpu & build.env.keys(), name
            assert build.distribution == "vllm"
