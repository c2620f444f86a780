"""The stages that ship, filled in for builds, and plans that say something wrong."""

import re

import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.errors import CampaignError
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from hybridwatch_lab.gpu.campaign.plan import PLAN_FILE, CampaignSubject, load_plan
from tests.command_line import run_verb


def a_subject(tmp_path, build="cuda-0.33.0", older="cuda-0.21.0", slowdown=1.0):
    labels = parse_label(build), parse_label(older)
    return CampaignSubject(*labels, tmp_path, home() / "models", ("hybridwatch",), slowdown)


def shipped(subject):
    return load_plan(home() / PLAN_FILE, subject)


def written(tmp_path, text):
    path = tmp_path / "campaign.toml"
    path.write_text(text)
    return load_plan(path, a_subject(tmp_path))


def test_shipped_plan_fits_25_minutes_by_its_own_limits(tmp_path):
    assert shipped(a_subject(tmp_path)).limit_s <= 25 * 60


@pytest.mark.parametrize(("build", "older"), [("cuda-0.33.0", "cuda-0.21.0"), ("cpu-0.27.1",) * 2])
def test_shipped_plan_names_scenarios_that_the_builds_can_run(tmp_path, build, older):
    subject = a_subject(tmp_path, build, older)
    named = [word for one in shipped(subject).stages for word in one.command if "/" in word]
    ids = [word for word in named if re.fullmatch(r"(gpu|smoke)/[a-z0-9-]+", word)]
    assert len(ids) >= 8
    for one in find(home() / "scenarios", ids):
        assert one.fits(subject.accelerator)


def test_shipped_plan_labels_are_builds(tmp_path):
    for stage in shipped(a_subject(tmp_path)).stages:
        for word, after in zip(stage.command, stage.command[1:], strict=False):
            if word == "--build":
                assert parse_label(after).spec.accelerator == "cuda"


def test_stages_for_a_gpu_are_left_out_on_a_cpu_with_the_reason(tmp_path):
    plan = shipped(a_subject(tmp_path, "cpu-0.27.1", "cpu-0.27.1", slowdown=4.0))
    assert plan.left_out["sync-check"] == "only on cuda"
    assert "sync-check" not in [one.id for one in plan.stages]
    assert plan.stages[0].limit_s == 4 * shipped(a_subject(tmp_path)).stages[0].limit_s


def test_study_runs_in_the_python_of_its_build(tmp_path):
    (stage,) = written(
        tmp_path, '[[stages]]\nid = "a"\nwhy = "b"\nlimit_s = 5\nstudy = ["x"]\nbuild = "{older}"\n'
    ).stages
    assert stage.command[0].endswith(".engines/cuda-0.21.0/bin/python")
    assert stage.command[1:] == ("-P", "-m", "hybridwatch_engine_lab.studies.x")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", r"stages: missing; expected a non-empty list of tables"),
        ('[[stages]]\nid = "a"\nwhy = "b"\nlimit_s = 0\nrun = ["x"]', r"stages\[0\]\.limit_s"),
        (
            '[[stages]]\nid = "a"\nwhy = "b"\nlimit_s = 1',
            r"stages\[0\]\.run: expected either run or study",
        ),
        ('[[stages]]\nid = "a"\nwhy = "b"\nlimit_s = 1\nrun = ["{who}"]', r"braces, found 'who'"),
        ("[[stages]", r"not TOML"),
    ],
)
def test_wrong_plan_is_refused_with_file_and_key(tmp_path, text, says):
    with pytest.raises(CampaignError, match=says) as error:
        written(tmp_path, text)
    assert "campaign.toml" in str(error.value)


def test_stage_named_twice_is_refused(tmp_path):
    stage = '[[stages]]\nid = "a"\nwhy = "b"\nlimit_s = 1\nrun = ["x"]\n'
    with pytest.raises(CampaignError, match='stages: "a" stands there twice'):
        written(tmp_path, stage * 2)


def test_builds_of_two_accelerators_are_refused(tmp_path):
    with pytest.raises(CampaignError, match=r"cpu-0\.27\.1 computes on cpu"):
        shipped(a_subject(tmp_path, older="cpu-0.27.1"))


def test_unknown_stage_names_the_nearest():
    result = run_verb("gpu", "campaign", "--list", "--stage", "fixcost", status=2)
    assert 'did you mean "fix-cost"?' in result.output


def test_list_names_every_stage_and_what_they_take():
    result = run_verb("gpu", "campaign", "--list", status=0)
    assert result.output.startswith("facts ")
    assert result.output.rstrip().endswith("min by their limits")
