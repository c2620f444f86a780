"""What lies between two ends, and the builds that are made of it."""

from functools import partial

import pytest

from hybridwatch.engines.builds import load_builds, named_build
from hybridwatch.engines.check import check_build
from hybridwatch.engines.code_tree import find_sha
from hybridwatch.engines.own_builds import add_source
from hybridwatch.errors import BuildError
from hybridwatch.orchestration.bisect.candidates import (
    COLD_WEIGHT,
    HOT_WEIGHT,
    BuildFactory,
    Candidate,
    changed_files,
    compute_weight,
    find_ends,
    list_builds,
    list_commits,
    list_files,
    list_releases,
    mixture,
)
from hybridwatch.orchestration.bisect.question import ChangeDirection
from tests.checkout import a_clone, a_copy, commit, make_home

LATER = """
[builds."tiny-{0}"]
like = "tiny-1.0"
release = "{0}"
"""


@pytest.fixture
def home(tmp_path):
    """Builds of three releases, of which the first is installed."""
    root = make_home(tmp_path / "home")
    file = root / "engine" / "builds.toml"
    file.write_text(file.read_text() + LATER.format("1.1") + LATER.format("1.10"))
    return root


@pytest.fixture
def clone(tmp_path):
    """A clone with five commits after the release."""
    folder = a_clone(tmp_path / "clone")
    commit(folder, "Two rows (#1)", {"vllm/v1/worker.py": "rows = 2\n"})
    commit(folder, "Break it (#2)", {"vllm/v1/worker.py": "rows = = 2\n"})
    commit(folder, "Mend it (#3)", {"vllm/v1/worker.py": "rows = 3\n"})
    commit(folder, "Kernel (#4)", {"csrc/a.cpp": "int b;"})
    commit(folder, "Four rows (#5)", {"vllm/v1/worker.py": "rows = 4\n"})
    return folder


def a_factory(home, repo=None, **options):
    named = {"search": options.get("search", "")}
    return BuildFactory(home, repo, "", options.get("installs", False), print, **named)


def test_releases_between_two_are_in_their_order_and_must_be_installed(home):
    builds = load_builds(home)
    candidates = list_releases(a_factory(home), builds["tiny-1.0"], builds["tiny-1.10"])
    assert [one.key for one in candidates.entries] == ["tiny-1.0", "tiny-1.1", "tiny-1.10"]
    assert candidates.entries[0].make() == "tiny-1.0"
    with pytest.raises(BuildError, match=r"--install does, or: .* tiny-1\.1"):
        candidates.entries[1].make()


def test_commits_are_made_only_when_their_turn_comes_and_removed_at_the_end(home, clone):
    factory = a_factory(home, clone)
    candidates = list_commits(factory, find_sha(clone, "v1.0"), find_sha(clone, "HEAD"))
    assert [one.title[11:] for one in candidates.entries[1:]] == [
        *("Two rows (#1)", "Break it (#2)", "Mend it (#3)", "Kernel (#4)", "Four rows (#5)")
    ]
    assert list(load_builds(home)) == ["tiny-1.0", "tiny-1.1", "tiny-1.10"]
    first, third = candidates.entries[1].make(), candidates.entries[3].make()
    assert check_build(named_build(first, home)).revision == candidates.entries[1].key
    with pytest.raises(BuildError, match=r"vllm/v1/worker\.py:1: Python cannot read it"):
        candidates.entries[2].make()
    with pytest.raises(BuildError, match=r"refused, as the compiled parts.*\n  csrc/a\.cpp"):
        candidates.entries[4].make()
    factory.clear(keep=(first,))
    assert first in load_builds(home)
    assert third not in load_builds(home)


def test_search_that_ends_takes_no_build_from_another(home, clone):
    first, last = find_sha(clone, "v1.0"), find_sha(clone, "HEAD")
    searches = [a_factory(home, clone, search=name * 10) for name in "ab"]
    made = [list_commits(one, first, last).entries[1].make() for one in searches]
    sha = find_sha(clone, "HEAD~4")[:10]
    assert made == [f"bisect-aaaaaa-{sha}", f"bisect-bbbbbb-{sha}"]
    searches[0].clear()
    assert set(made) & set(load_builds(home)) == {made[1]}


def test_clone_without_a_change_between_the_ends_is_refused(home, clone):
    head = find_sha(clone, "HEAD")
    with pytest.raises(BuildError, match=r"no commit from .* changes the engine"):
        list_commits(a_factory(home, clone), head, head)


@pytest.mark.parametrize(
    ("paths", "weight"),
    [
        (["vllm/v1/worker/gpu_model_runner.py", "docs/a.md"], HOT_WEIGHT),
        (["vllm/model_executor/layers/mamba/ops/ssd.py"], HOT_WEIGHT),
        (["vllm/config/model.py"], 1.0),
        (["vllm/model_executor/layers/fused_moe/configs/mamba.json", "csrc/a.cpp"], COLD_WEIGHT),
    ],
)
def test_commits_weigh_by_what_they_touch(paths, weight):
    assert compute_weight(paths) == weight


def test_files_are_taken_over_one_after_the_other(home, tmp_path):
    old = add_source(home, "old", a_copy(tmp_path / "a", one="x = 1\n", gone="y = 1\n"))
    new = add_source(home, "new", a_copy(tmp_path / "b", one="x = 2\n", two="z = 1\n"))
    factory = a_factory(home)
    ends = [Candidate(name, name, partial(str, name)) for name in ("old", "new")]
    candidates = list_files(factory, *ends)
    assert candidates is not None
    assert [one.title for one in candidates.entries] == [
        "old",
        "v1/gone.py",
        "v1/one.py",
        "v1/two.py",
    ]
    made = named_build(candidates.entries[2].make(), home)
    with mixture(old, new, changed_files(old, new)[:2]) as folder:
        code = folder / "vllm" / "v1"
        assert (code / "one.py").read_text() == "x = 2\n"
        assert not (code / "gone.py").exists()
        assert not (code / "two.py").exists()
    assert changed_files(old, made) == changed_files(old, new)[:2]
    assert changed_files(made, new) == changed_files(old, new)[2:]
    factory.clear()
    assert list(load_builds(home))[-2:] == ["old", "new"]


def test_files_of_two_searches_are_builds_of_their_own(home, tmp_path):
    for name, x in (("old", 1), ("new", 2), ("newer", 3)):
        add_source(home, name, a_copy(tmp_path / name, one=f"x = {x}\n", two=f"y = {x}\n"))
    made = []
    for search, last in (("a", "new"), ("b", "newer")):
        ends = [Candidate(name, name, partial(str, name)) for name in ("old", last)]
        candidates = list_files(a_factory(home, search=search), *ends)
        assert candidates is not None
        made.append(candidates.entries[1].make())
    codes = {name: check_build(named_build(name, home)).code_digest for name in made}
    assert len(set(codes.values())) == 2


def test_pair_that_differs_in_one_file_has_no_files_to_tell_apart(home, tmp_path):
    add_source(home, "old", a_copy(tmp_path / "a"))
    add_source(home, "new", a_copy(tmp_path / "b", worker="rows = 2\n"))
    ends = [Candidate(name, name, partial(str, name)) for name in ("old", "new")]
    assert list_files(a_factory(home), *ends) is None


def test_own_build_is_another_candidate_after_an_edit(home, tmp_path):
    add_source(home, "mine", a_copy(tmp_path / "a"))
    before = list_builds(a_factory(home), "tiny-1.0", "mine").entries
    add_source(home, "mine", a_copy(tmp_path / "a", worker="rows = 2\n"))
    after = list_builds(a_factory(home), "tiny-1.0", "mine").entries
    assert before[0].key == after[0].key == "tiny-1.0"
    assert before[1].key != after[1].key


def ends(good, bad, home, repo=None, wanted=ChangeDirection.REGRESSION):
    return find_ends(good, bad, wanted, repo, "cpu", home)


def test_ends_are_releases_by_version_or_by_build(home):
    for good, bad in (("1.0", "1.10"), ("tiny-1.0", "v1.10")):
        found = ends(good, bad, home)
        assert [one.name for one in found.releases] == ["tiny-1.0", "tiny-1.10"]
    fix = ends("1.10", "1.0", home, wanted=ChangeDirection.FIX)
    assert [one.name for one in fix.releases] == ["tiny-1.0", "tiny-1.10"]
    with pytest.raises(BuildError, match=r"earlier than --bad tiny-1\.0; --find fix"):
        ends("1.10", "1.0", home)


def test_ends_are_commits_where_one_of_them_is(home, clone):
    found = ends("1.0", "HEAD", home, clone)
    assert found.commits == (find_sha(clone, "v1.0"), find_sha(clone, "HEAD"))
    assert ends("HEAD", "v1.0", home, clone, ChangeDirection.FIX).commits == found.commits
    with pytest.raises(BuildError, match="--find fix looks for"):
        ends("HEAD", "1.0", home, clone)
    with pytest.raises(BuildError, match=r"found none 'refs/tags/v1\.1'"):
        ends("1.1", "HEAD", home, clone)


def test_ends_of_one_release_are_two_builds(home):
    found = ends("tiny-1.0", "tiny-1.0+slow-step", home)
    assert found.labels == ("tiny-1.0", "tiny-1.0+slow-step")
    assert (found.releases, found.commits) == (None, None)
    fix = ends("tiny-1.0", "tiny-1.0+slow-step", home, wanted=ChangeDirection.FIX)
    assert fix.labels == ("tiny-1.0+slow-step", "tiny-1.0")


def test_word_that_names_nothing_is_refused(home):
    with pytest.raises(BuildError, match=r"2\.0: expected a build, a release"):
        ends("1.0", "2.0", home)
