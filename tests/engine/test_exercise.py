"""Every switchable fix, exercised on the installed engine's functions, without an engine."""

import json
import os
import subprocess

import pytest
from hybridwatch_engine.fixes.registry import FIXES
from hybridwatch_engine_lab.exercise.trial import EXERCISES

from hybridwatch.engines.builds import load_builds, parse_label
from hybridwatch_lab.in_engine import variables
from tests.engine.conftest import BUILD

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("the plugin has changed, so each of its fixes is exercised"),
]

NATIVE = {
    fix_id: fix.header.releases[BUILD.partition("-")[2]]
    for fix_id, fix in FIXES.items()
    if fix.ways
}
"""What the release of the engine under test has."""
SEEN = [fix_id for fix_id, state in NATIVE.items() if state != "not-applicable"]
"""Fixes that mean something to it; the others are exercised on the later releases installed."""
OTHERS = [
    name
    for name, spec in load_builds().items()
    if spec.accelerator == "cpu" and not spec.variant_of and name != BUILD
]

# What spoils a fix, as Python that runs before the exercise. Each is found by what it changes.
DEFECTS = {
    "no patches": "broken = replace(fix, apply=PatchSet, revert=PatchSet)",
    "a probe that lies": (
        "broken = replace(fix, probe=lambda tree: Finding('lacking', 'a guess'))"
    ),
    "a patch too few": """
def all_but_one():
    *patches, _ = (fix.revert or fix.apply)().patches
    return PatchSet(*patches)
broken = replace(fix, apply=all_but_one, revert=all_but_one)
""",
    "patches that stay": """
class Sticky(PatchSet):
    def remove(self):
        pass
def sticky():
    return Sticky(*(fix.revert or fix.apply)().patches)
broken = replace(fix, apply=sticky, revert=sticky)
""",
    "a renamed target": """
def gone():
    raise AttributeError("no such name")
broken = replace(fix, apply=gone, revert=gone)
""",
}
ERRORS = {
    "patches that stay": "the release is not as it was before",
    "a renamed target": "AttributeError: no such name",
}
"""What is told of a defect; of the others, nothing: they are found by what the engine did."""
SPOILED = [
    *((fix, "no patches") for fix in SEEN),
    ("padded-rows-prefilling", "a probe that lies"),
    ("padded-rows-prefilling", "a patch too few"),
    ("draft-max-seq-len-target", "a patch too few"),
    ("stale-block-table-finished-rows", "a patch too few"),
    ("dummy-run-padding", "a patch too few"),
    ("prev-step-anchor", "a patch too few"),
    ("block-end-states", "a patch too few"),
    ("all-cache-spec-decode-memory", "a patch too few"),
    ("single-token-extend", "patches that stay"),
    ("dummy-run-padding", "a renamed target"),
]

# All defects in one process, since vLLM takes ten seconds to import.
SPOILER = """
import contextlib, io, json, sys
from dataclasses import replace
from hybridwatch_engine_lab.exercise import __main__ as exercise
from hybridwatch_engine.fixes.fix import Finding
from hybridwatch_engine.fixes.registry import FIXES
from hybridwatch_engine.patch import PatchSet, _SEAMS

answers = []
for fix_id, defect in json.load(sys.stdin):
    fix, said, names = FIXES[fix_id], io.StringIO(), {**globals()}
    names["fix"] = fix
    exec(defect, names)
    FIXES[fix_id] = names["broken"]
    with contextlib.redirect_stdout(said):
        status = exercise.main([fix_id])
    FIXES[fix_id] = fix
    answers.append({"status": status, **json.loads(said.getvalue())["fixes"][fix_id]})
    for seam in list(_SEAMS.values()):  # what a defect has left behind
        for patch in list(seam.patches):
            patch.remove()
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def call(sides):
    """Run the engine's Python; vLLM's talk is kept from the answer."""

    def run(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(sides[0].spec.interpreter), *words],
            env={**os.environ, **variables()},
            input=text, capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip

    return run


@pytest.fixture(scope="module")
def spoiled(call):
    """What the exercise says of every spoiled fix."""
    jobs = [(fix, DEFECTS[name]) for fix, name in SPOILED]
    done = call("-c", SPOILER, text=json.dumps(jobs))
    assert done.returncode == 0, done.stderr
    return dict(zip(SPOILED, json.loads(done.stdout), strict=True))


def test_every_switchable_fix_has_an_exercise():
    assert set(EXERCISES) == {id_ for id_, fix in FIXES.items() if fix.apply or fix.revert}


def test_every_fix_changes_what_the_engine_does_and_leaves_no_trace(call):
    done = call("-m", "hybridwatch_engine_lab.exercise")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["release"].startswith("0.27.1")
    assert {fix: outcome["native"] for fix, outcome in told["fixes"].items()} == NATIVE
    for fix, outcome in told["fixes"].items():
        assert outcome["ok"] is True
        if fix not in SEEN:
            continue
        assert outcome["with"] or outcome.get("unseen")
        assert outcome["with"] == EXERCISES[fix].with_fix
        assert outcome["without"] == EXERCISES[fix].without_fix
        assert outcome["with"] != outcome["without"]


@pytest.mark.parametrize("build", OTHERS)
def test_every_exercise_runs_on_every_other_release(build):
    """A feature of that release alone, which a stand-in has no name for, would end it."""
    spec = parse_label(build).spec
    if not spec.interpreter.exists():
        pytest.skip(f"{build} is not installed")
    words = [str(spec.interpreter), "-m", "hybridwatch_engine_lab.exercise"]
    done = subprocess.run(
        words, env={**os.environ, **variables()},
        capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["release"].startswith(spec.release)
    for fix, outcome in told["fixes"].items():
        assert outcome["native"] == FIXES[fix].header.releases[spec.release], fix
        assert outcome["with"] or outcome.get("unseen") or outcome["native"] == "not-applicable"


def test_unknown_fix_is_refused_and_the_known_are_named(call):
    done = call("-m", "hybridwatch_engine_lab.exercise", "padded-rows")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"no exercise for padded-rows; known: {', '.join(EXERCISES)}\n"


@pytest.mark.parametrize(("fix", "defect"), SPOILED)
def test_a_spoiled_fix_is_not_ok(spoiled, fix, defect):
    outcome = spoiled[fix, defect]
    assert outcome["status"] == 1
    assert outcome["ok"] is False
    assert outcome.get("error", "") == ERRORS.get(defect, "")


@pytest.mark.parametrize("fix", SEEN)
def test_a_fix_that_switches_nothing_is_the_same_on_both_sides(spoiled, fix):
    outcome = spoiled[fix, "no patches"]
    assert outcome["with"] == outcome["without"]


def test_what_could_not_be_seen_is_left_out(spoiled):
    gone = spoiled["dummy-run-padding", "a renamed target"]
    assert (gone["with"], gone["without"]) == (None, None)


def test_a_hit_has_a_wrong_column_where_some_group_has_smaller_blocks(call):
    """vllm#53142: 0.27.1 divides by the smallest block and not by Mamba's."""
    done = call("-m", "hybridwatch_engine_lab.studies.state_column")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["right"] == told["columns"]["equal blocks"] == 45
    assert told["columns"]["a group of smaller blocks"] == 781
