"""The entry of a new build, made from that of the newest."""

import difflib
import tomllib
from pathlib import Path

import pytest

from hybridwatch.errors import BuildError
from hybridwatch_lab.releases.tables import BUILDS_FILE, newest_build, with_build

TEXT = (Path(__file__).parents[4] / BUILDS_FILE).read_text()


def without(text, build):
    """The file before a build was added, whose tables are the last of its accelerator."""
    start = text.index(f'[builds."{build}"]')
    after = text.find("\n# ", text.rindex(f'[builds."{build}')) + 1
    return text[:start] + text[after:]


@pytest.mark.parametrize("accelerator", ["cpu", "cuda"])
def test_entry_is_the_one_that_a_person_wrote(accelerator):
    newest = newest_build(TEXT, accelerator)
    before = without(TEXT, newest.name)
    older = newest_build(before, accelerator)
    assert older.release < newest.release
    assert with_build(before, older, newest.release, newest.torch) == TEXT


@pytest.mark.parametrize("accelerator", ["cpu", "cuda"])
def test_lines_are_added_in_one_place_and_none_is_taken_away(accelerator):
    new = with_build(TEXT, newest_build(TEXT, accelerator), "7.8.9", "torch==9.9")
    changes = list(difflib.ndiff(TEXT.splitlines(), new.splitlines()))
    assert not [line for line in changes if line.startswith("-")]
    added = [n for n, line in enumerate(changes) if line.startswith("+")]
    assert added == list(range(added[0], added[-1] + 1))
    before, after = (tomllib.loads(text)["builds"] for text in (TEXT, new))
    names = (
        {"cpu-7.8.9"}
        if accelerator == "cpu"
        else {f"cuda-7.8.9{kind}" for kind in ("", "-patched", "-reverted")}
    )
    assert after.keys() - before.keys() == names
    entry = after[f"{accelerator}-7.8.9"]
    assert (entry["release"], entry["torch"]) == ("7.8.9", "torch==9.9")
    assert entry["lock"] == f"locks/{accelerator}-7.8.9.txt"
    assert newest_build(new, accelerator).name == f"{accelerator}-7.8.9"


def test_torch_is_written_where_it_differs_and_goes_on_from_there():
    newest = newest_build(TEXT, "cpu")
    first = with_build(TEXT, newest, "7.8.9", "torch==9.9")
    second = with_build(first, newest_build(first, "cpu"), "7.9.0", "torch==9.9")
    builds = tomllib.loads(second)["builds"]
    assert builds["cpu-7.9.0"] == {
        "like": builds[newest.name]["like"],
        "release": "7.9.0",
        "torch": "torch==9.9",
        "lock": "locks/cpu-7.9.0.txt",
    }


def test_numbers_that_only_hold_the_release_stay():
    text = """\
[builds."cpu-1.0"]
# 1.0 is the first
release = "1.0"
torch = "torch==2.1.0"
lock = "locks/cpu-1.0.txt"
env = { LEVEL = "1.0.5" }

# end
"""
    new = with_build(text, newest_build(text, "cpu"), "1.1", "torch==2.1.0")
    assert new.count("# 1.0 is the first") == 2
    assert tomllib.loads(new)["builds"]["cpu-1.1"] == {
        "release": "1.1",
        "torch": "torch==2.1.0",
        "lock": "locks/cpu-1.1.txt",
        "env": {"LEVEL": "1.0.5"},
    }
    assert new.endswith("\n\n# end\n")


def test_file_without_a_build_for_the_accelerator_is_refused():
    text = TEXT[: TEXT.index("# CUDA builds")]
    match = r"^engine/builds\.toml: expected a build called cuda-RELEASE, found none$"
    with pytest.raises(BuildError, match=match):
        newest_build(text, "cuda")
