"""Named builds and the labels that switch fixes on them."""

import random
import shutil
from pathlib import Path

import pytest

from hybridwatch.engines.builds import FAULTS, RUNNERS, load_builds, named_build, parse_label
from hybridwatch.engines.install import requirements_alone
from hybridwatch.errors import BuildError
from hybridwatch.scenarios.fixes import FIXES
from hybridwatch.system.home import home
from tests.checkout import BUILDS as TINY
from tests.mistakes import read_mistakes

CHECKOUT = Path(__file__).parents[3]
KNOWN = (*RUNNERS, *FIXES, *FAULTS)

BUILDS = (
    TINY
    + """\
fixes = { stale-block-table = "apply", single-token-extend = "revert" }
env = { OMP_NUM_THREADS = "1" }
"""
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "engine" / "locks").mkdir(parents=True)
    (tmp_path / "engine" / "locks" / "tiny.txt").write_text("six==1.17.0\n")
    (tmp_path / "engine" / "builds.toml").write_text(BUILDS)
    return tmp_path


def test_the_shipped_builds_load_and_their_locks_pin_everything():
    for build in load_builds(CHECKOUT).values():
        if build.origin:  # the user's own, on this machine
            continue
        lines = requirements_alone(build.lock_file.read_text()).splitlines()
        pins = [line for line in lines if line and not line.startswith("#")]
        assert f"{build.distribution}=={build.release}" in pins
        assert build.torch in pins
        for pin in pins:
            pinned, _, excluded = pin.partition(" ;")[0].partition(",!=")
            name, _, version = pinned.partition("==")
            assert name, pin
            assert version, pin
            assert "+" not in version, f"{pin}: a local version exists on one index only"
            assert excluded in {"", f"{version}+cpu"}, pin


def test_a_build_has_paths_switches_and_variables(checkout):
    build = named_build("tiny-1.0", checkout)
    assert build.environment == checkout / ".engines" / "tiny-1.0"
    assert build.interpreter == checkout / ".engines" / "tiny-1.0" / "bin" / "python"
    assert build.switches == {"stale-block-table": True, "single-token-extend": False}
    assert build.env == {"OMP_NUM_THREADS": "1"}
    assert build.flags == {}


def stale(whole: bool, vacated: bool) -> dict[str, bool]:
    """The parts of the fix that is switched by its parts, one of them by itself."""
    return {
        "stale-block-table-finished-rows": whole,
        "stale-block-table-vacated-rows": vacated,
        "stale-block-table-dummy-rows": whole,
    }


@pytest.mark.parametrize(
    ("text", "label", "switches"),
    [
        ("tiny-1.0", "tiny-1.0", {**stale(True, True), "single-token-extend": False}),
        (
            "tiny-1.0~padded-rows-prefilling",
            "tiny-1.0~padded-rows-prefilling",
            {
                **stale(True, True),
                "single-token-extend": False,
                "padded-rows-prefilling": False,
            },
        ),
        (
            "tiny-1.0~stale-block-table+single-token-extend",
            "tiny-1.0+single-token-extend~stale-block-table",
            {**stale(False, False), "single-token-extend": True},
        ),
        (  # A part is named after the whole, and wins.
            "tiny-1.0~stale-block-table+stale-block-table-vacated-rows",
            "tiny-1.0~stale-block-table+stale-block-table-vacated-rows",
            {**stale(False, True), "single-token-extend": False},
        ),
    ],
)
def test_a_label_switches_fixes_and_is_spelled_one_way(checkout, text, label, switches):
    request = parse_label(text, checkout)
    assert request.label == label
    assert request.switches == switches
    assert parse_label(request.label, checkout) == request


def test_a_label_plants_a_fault_that_is_no_fix(checkout):
    request = parse_label("tiny-1.0+slow-step~padded-rows-prefilling", checkout)
    assert request.label == "tiny-1.0~padded-rows-prefilling+slow-step"
    assert request.planted == ("slow-step",)
    assert "slow-step" not in request.switches
    assert parse_label(request.label, checkout) == request
    assert parse_label("tiny-1.0", checkout).planted == ()


def test_a_label_chooses_a_model_runner_and_names_it_first(checkout):
    request = parse_label("tiny-1.0+slow-step+v2", checkout)
    assert request.label == "tiny-1.0+v2+slow-step"
    assert request.model_runner == "v2"
    assert request.planted == ("slow-step",)
    assert parse_label(request.label, checkout) == request
    assert parse_label("tiny-1.0", checkout).model_runner is None


@pytest.mark.parametrize(("text", "message"), read_mistakes("labels", known=", ".join(KNOWN)))
def test_a_wrong_label_names_what_is_known(checkout, text, message):
    with pytest.raises(BuildError) as caught:
        parse_label(text, checkout)
    assert str(caught.value) == message


@pytest.mark.parametrize(("old", "new", "line"), read_mistakes("builds"))
def test_a_wrong_file_is_reported_key_by_key(checkout, old, new, line):
    path = checkout / "engine" / "builds.toml"
    path.write_text(BUILDS.replace(old, new, 1))
    with pytest.raises(BuildError) as caught:
        load_builds(checkout)
    assert str(caught.value) == f"engine/builds.toml: {line}"


def test_no_cut_of_the_shipped_file_is_taken_for_it(checkout):
    path = checkout / "engine" / "builds.toml"
    shutil.copytree(CHECKOUT / "engine" / "locks", path.parent / "locks", dirs_exist_ok=True)
    whole = (CHECKOUT / "engine" / "builds.toml").read_text()
    path.write_text(whole)
    assert load_builds(checkout)
    lines = [at + 1 for at, char in enumerate(whole) if char == "\n"][:-1]
    for end in [*lines, *random.Random(17).sample(range(len(whole)), 100)]:
        path.write_text(whole[:end])
        with pytest.raises(BuildError, match=r"builds\.toml: ") as caught:
            load_builds(checkout)
        assert "\n" not in str(caught.value)


def test_a_file_of_its_owner_needs_no_last_line_but_a_line_end(checkout):
    path = checkout / "engine" / "builds.toml"
    path.write_text(BUILDS.rstrip())
    with pytest.raises(BuildError, match="expected a line end as its last character, found none"):
        load_builds(checkout)


def test_what_stands_below_the_last_line_is_reported(checkout):
    path = checkout / "engine" / "builds.toml"
    path.write_text(f'last_line = "# end"\n{BUILDS}# end\n')
    assert load_builds(checkout)
    path.write_text(f'last_line = "# end"\n# end\n{BUILDS}')
    with pytest.raises(
        BuildError, match=r'last_line: expected "# end" at the end of the file, fou'
    ):
        load_builds(checkout)


def test_an_unknown_fix_in_the_file_is_reported(checkout):
    path = checkout / "engine" / "builds.toml"
    path.write_text(BUILDS.replace("stale-block-table", "stale-blocks"))
    with pytest.raises(BuildError) as caught:
        load_builds(checkout)
    known = ", ".join(f'"{fix}"' for fix in FIXES)
    assert str(caught.value) == (
        'engine/builds.toml: builds."tiny-1.0".fixes.stale-blocks: '
        f'expected one of {known}, found "stale-blocks"'
    )


def test_home_is_found_upwards_or_named(checkout, monkeypatch):
    inside = checkout / "engine" / "locks"
    monkeypatch.delenv("HYBRIDWATCH_HOME", raising=False)
    monkeypatch.chdir(inside)
    assert home() == checkout
    monkeypatch.chdir("/")
    assert home() == CHECKOUT
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(checkout))
    assert home() == checkout
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(inside))
    with pytest.raises(BuildError, match="HYBRIDWATCH_HOME: expected a folder with"):
        home()


LIKE = """
[builds."tiny-1.1"]
like = "tiny-1.0"
release = "1.1"
"""


def test_a_build_like_another_says_only_what_differs(checkout):
    builds = checkout / "engine" / "builds.toml"
    builds.write_text(BUILDS + LIKE)
    first, second = load_builds(checkout).values()
    assert (second.name, second.release) == ("tiny-1.1", "1.1")
    assert (second.env, second.fixes, second.lock_file) == (first.env, first.fixes, first.lock_file)


VARIANT = """
[builds."tiny-1.0-other"]
like = "tiny-1.0"
fixes = { padded-rows-prefilling = "apply", stale-block-table = "revert" }
"""


def test_a_build_that_says_only_its_fixes_is_a_variant(checkout):
    builds = checkout / "engine" / "builds.toml"
    builds.write_text(BUILDS + VARIANT)
    plain, other = load_builds(checkout).values()
    assert (plain.variant_of, other.variant_of) == ("", "tiny-1.0")
    assert other.environment == plain.environment
    request = parse_label("tiny-1.0-other+single-token-extend", checkout)
    assert request.label == "tiny-1.0-other+single-token-extend"
    assert request.spec == plain  # one engine for both
    assert request.switches == {
        **stale(False, False),  # what the variant says goes before what its build says
        "padded-rows-prefilling": True,
        "single-token-extend": True,
    }
    builds.write_text(BUILDS + VARIANT + 'release = "1.1"\n')
    assert named_build("tiny-1.0-other", checkout).variant_of == ""


@pytest.mark.parametrize("model", ["tiny-9", "tiny-1.1"])
def test_a_build_like_none_or_like_itself_is_refused(checkout, model):
    builds = checkout / "engine" / "builds.toml"
    builds.write_text(BUILDS + LIKE.replace('like = "tiny-1.0"', f'like = "{model}"'))
    with pytest.raises(BuildError, match=r'builds\."?tiny-1\.1"?\.like: expected a build'):
        load_builds(checkout)


CODE = "1a2b3c4d" + "0" * 56


def test_code_that_no_release_has_is_part_of_the_label(checkout):
    request = parse_label("tiny-1.0~stale-block-table+slow-step", checkout)
    assert request.build_label(CODE, changed=False) == request.label
    patched = request.build_label(CODE, changed=True)
    assert patched == "tiny-1.0@1a2b3c4d~stale-block-table+slow-step"
    again = parse_label(patched, checkout)
    assert (again.spec, again.switches) == (request.spec, request.switches)
    assert again.build_label(CODE, changed=True) == patched


def test_label_with_a_code_is_refused_where_the_code_is_another(checkout):
    kept = parse_label("tiny-1.0@1a2b3c4d", checkout)
    with pytest.raises(BuildError, match="expected the code 1a2b3c4d, found ffffffff"):
        kept.build_label("f" * 64, changed=True)


@pytest.mark.parametrize("label", ["tiny-1.0@", "tiny-1.0@1a2b", "tiny-1.0@mine1234"])
def test_what_is_no_code_digest_is_refused(checkout, label):
    with pytest.raises(BuildError, match="expected 8 or more digits of a code digest after @"):
        parse_label(label, checkout)
