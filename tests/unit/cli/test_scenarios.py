"""``hybridwatch scenarios`` and ``init``, and which scenarios a command means."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from hybridwatch.cli import controls
from hybridwatch.cli import run as measuring
from hybridwatch.cli.scenarios import init_command as init_command
from hybridwatch.cli.scenarios import make_home
from hybridwatch.cli.scenarios import scenarios_command as command
from hybridwatch.cli.subjects import chosen, with_known_bad
from hybridwatch.engines.builds import DEFAULT_BUILD, load_builds, parse_label
from hybridwatch.engines.fitting import find_model_runner
from hybridwatch.errors import BuildError, ScenarioError
from hybridwatch.measurement.session_request import SessionRequest
from hybridwatch.orchestration.nightly.checkout import find_policy, load_policy
from hybridwatch.records.run import Run
from hybridwatch.scenarios.load import find, survey
from hybridwatch_lab.mutants.table import catalogue
from tests.builders import BASELINE, CONTENDER, a_run
from tests.checkout import BUILDS, EXAMPLE, make_checkout
from tests.command_line import run_verb
from tests.refusals import refusal
from tests.shipped import ROOT, SCENARIOS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "scenarios" / "smoke"
    folder.mkdir(parents=True)
    (folder / "stale-rows.toml").write_text(EXAMPLE)
    return folder.parent


def call(root: Path, *arguments: str, status: int | None = None) -> Result:
    return run_verb(*arguments, "--root", root, of=command, env={"COLUMNS": "160"}, status=status)


def test_the_list_names_id_and_fix_and_with_all_the_first_sentence(root):
    result = call(root, status=0)
    assert "smoke/stale-rows" in result.stdout
    assert "padded-rows-prefilling" in result.stdout
    assert "Rows go stale." not in result.stdout
    whole = call(root, "--all")
    assert "Rows go stale." in whole.stdout
    assert "More text." not in whole.stdout


def test_the_list_of_what_is_shipped_is_a_line_each_at_80_columns():
    result = run_verb("--root", SCENARIOS, of=command, env={"COLUMNS": "80"})
    lines = result.stdout.splitlines()
    assert len(lines) == len(list(SCENARIOS.rglob("*.toml"))) + 2
    assert "\N{HORIZONTAL ELLIPSIS}" not in result.stdout


def test_check_tells_every_bad_file_and_ends_with_2(root):
    (root / "smoke" / "bad.toml").write_text(EXAMPLE.replace("seed = 7", "seed = -1"))
    (root / "smoke" / "worse.toml").write_text("why")
    result = call(root, "--check", status=2)
    assert "valid." in result.stdout
    assert result.stderr.splitlines() == [
        (
            "ScenarioError: scenarios/smoke/bad.toml: workload.generation.seed: "
            "expected an integer >= 0, found -1"
        ),
        (
            "ScenarioError: scenarios/smoke/worse.toml: not TOML: "
            "Expected '=' after a key in a key/value pair (at end of document)"
        ),
    ]


def test_check_is_silent_about_good_files_but_for_their_number(root):
    result = call(root, "--check", status=0)
    assert result.stdout.endswith("valid.\n")
    assert result.stderr == ""


def test_json_has_scenarios_and_problems(root):
    (root / "smoke" / "bad.toml").write_text("")
    result = call(root, "--json", status=2)
    answer = json.loads(result.stdout)
    by_id = {scenario["id"]: scenario for scenario in answer["scenarios"]}
    assert by_id["smoke/stale-rows"]["fix"] == "padded-rows-prefilling"
    assert len(by_id["smoke/stale-rows"]["digest"]) == 64
    assert all(line.startswith("scenarios/smoke/bad.toml: ") for line in answer["problems"])


def test_without_root_the_checkout_is_listed(tmp_path, monkeypatch):
    monkeypatch.delenv("HYBRIDWATCH_HOME", raising=False)
    monkeypatch.chdir(SCENARIOS / "smoke")
    run_verb("--check", of=command, status=0)


@pytest.mark.parametrize(
    ("line", "wrong", "key"),
    [
        ('model = "tiny-hybrid"', 'model = "tiny-hybird"', "model"),
        (
            "[engine]",
            '[engine.speculation]\nmethod = "eagle"\ndrafts = 1\nmodel = "no-head"\n[engine]',
            "engine.speculation.model",
        ),
    ],
)
def test_a_model_that_is_not_there_is_reported_before_anything_is_measured(root, line, wrong, key):
    assert line in EXAMPLE
    text = EXAMPLE.replace(line, wrong, 1)
    (root / "smoke" / "of-nothing.toml").write_text(text)
    result = call(root, "--check", status=2)
    assert result.stdout == "1 scenario is valid.\n"
    (told,) = result.stderr.splitlines()
    assert told.startswith(f"ScenarioError: scenarios/smoke/of-nothing: {key}: expected a folder '")


CUDA = BUILDS.replace('"tiny-1.0"', '"gpu-1.0"').replace('"cpu"', '"cuda"')
MISFIT = (
    "gpu/fast needs the accelerator cuda, and tiny-1.0 is a build for cpu; "
    "see: hybridwatch engine list"
)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a scenario for any build, one for GPUs, and a build of either kind."""
    make_checkout(tmp_path, "smoke/padded")
    (tmp_path / "engine" / "builds.toml").write_text(BUILDS + CUDA)
    (tmp_path / "scenarios" / "gpu").mkdir()
    (tmp_path / "scenarios" / "gpu" / "fast.toml").write_text(f'accelerator = "cuda"\n{EXAMPLE}')
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(tmp_path))
    return tmp_path


def ids(patterns: tuple[str, ...], *labels: str) -> list[str]:
    return [scenario.id for scenario in chosen(patterns, labels)]


@pytest.mark.usefixtures("checkout")
def test_without_names_each_build_gets_what_it_can_run():
    assert ids((), "tiny-1.0") == ["smoke/padded"]
    assert ids((), "gpu-1.0") == ["gpu/fast", "smoke/padded"]
    assert ids((), "gpu-1.0", "tiny-1.0") == ["smoke/padded"]


@pytest.mark.usefixtures("checkout")
def test_what_is_named_is_taken_or_refused():
    assert ids(("gpu",), "gpu-1.0~padded-rows-prefilling") == ["gpu/fast"]
    for named in (("gpu",), ("smoke", "gpu/fast")):
        assert refusal(BuildError, ids, named, "tiny-1.0") == MISFIT
    with pytest.raises(BuildError, match="gpu/fast needs the accelerator cuda"):
        ids(("gpu",), "gpu-1.0", "tiny-1.0")


@pytest.mark.usefixtures("checkout")
def test_of_a_group_what_does_not_apply_is_left_out_aloud(checkout, capsys):
    old = checkout / "scenarios" / "smoke" / "old.toml"
    old.write_text(f'since = "0.20.0"\nuntil = "0.26.0"\n{EXAMPLE}')
    assert ids(("smoke",), "tiny-1.0") == ["smoke/padded"]
    needs = "needs vLLM 0.20.0 or newer and 0.26.0 or older, and tiny-1.0 is 1.0"
    assert capsys.readouterr().err == f"left out: smoke/old {needs}\n"
    with pytest.raises(BuildError, match=needs):
        ids(("smoke", "smoke/old"), "tiny-1.0")


@pytest.mark.usefixtures("checkout")
def test_a_name_of_nothing_is_reported_before_builds_are_asked():
    with pytest.raises(ScenarioError, match="names no scenario"):
        ids(("gpus",), "tiny-1.0")


@pytest.mark.parametrize("verb", ["run", "controls"])
@pytest.mark.usefixtures("checkout")
def test_a_gpu_scenario_on_a_cpu_build_is_one_line_and_status_2(verb, monkeypatch):
    monkeypatch.setattr(
        measuring, "run_session", lambda _: pytest.fail("nothing is to be measured")
    )
    monkeypatch.setattr(controls, "run_session", lambda _: pytest.fail("nothing either"))
    result: Result = run_verb(verb, "gpu", "--build", "tiny-1.0")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"hybridwatch: {MISFIT}\n"


@pytest.mark.parametrize("verb", ["run", "controls"])
@pytest.mark.usefixtures("checkout")
def test_a_gpu_build_that_is_not_installed_is_one_line_and_status_2(verb):
    result = run_verb(verb, "gpu", "--build", "gpu-1.0")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("hybridwatch: ")
    assert "gpu-1.0" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.fixture
def speed(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> list[SessionRequest]:
    """A third scenario, of speed alone; the build counts as installed. Keeps what is measured."""
    text = EXAMPLE.replace("contract = 3", "contract = 0").partition("[expect.exactly]")[0]
    before, _, after = text.partition("[accuracy]")
    text = f"{before}{after[after.index('[trials]') :]}[expect]\n"
    (checkout / "scenarios" / "smoke" / "speed.toml").write_text(text)
    monkeypatch.setattr(controls, "require_installed", lambda _: None)
    monkeypatch.setattr(controls, "healthy_label", lambda build, *_: build)
    asked: list[SessionRequest] = []
    sides = ({"contract.padded_rows_prefilling": (0.0,)},) * 3

    def run_session(request: SessionRequest) -> Run:
        asked.append(request)
        return a_run(*sides, builds=(BASELINE, CONTENDER, BASELINE))

    monkeypatch.setattr(controls, "run_session", run_session)
    return asked


def test_speed_alone_has_no_control_and_is_left_out_aloud(speed):
    result = run_verb("controls", "smoke", "--build", "tiny-1.0")
    assert "left out: no control, only speed is measured: smoke/speed" in result.output
    assert [request.scenario.id for request in speed] == ["smoke/padded"]


def test_a_scenario_without_a_fix_is_controlled_by_two_healthy_sides(speed, checkout):
    text = EXAMPLE.replace('fix = "padded-rows-prefilling"', 'fix = "none"')
    (checkout / "scenarios" / "smoke" / "speed.toml").write_text(text)
    result = run_verb("controls", "smoke/speed", "--build", "tiny-1.0")
    assert "smoke/speed: no known bug to take out, mutants are the control" in result.output
    assert [len(request.sides) for request in speed] == [2]
    assert (result.output.count("a-a"), result.output.count("known-bad")) == (1, 0)


@pytest.mark.usefixtures("checkout")
def test_what_has_no_fix_to_take_out_is_left_out_of_known_bad(checkout):
    text = EXAMPLE.replace('fix = "padded-rows-prefilling"', 'fix = "none"')
    (checkout / "scenarios" / "smoke" / "bare.toml").write_text(text)
    scenarios = find(checkout / "scenarios", ["smoke"])
    kept, said = with_known_bad(scenarios)
    assert [scenario.id for scenario in kept] == ["smoke/padded"]
    assert said == "no known bug to take out, mutants are the control: smoke/bare"
    with pytest.raises(ScenarioError, match="nothing to compare: no known bug"):
        with_known_bad([one for one in scenarios if one.id == "smoke/bare"])


def test_nothing_but_speed_is_a_wrong_call(speed):
    result = run_verb("controls", "smoke/speed", "--build", "tiny-1.0")
    said = "nothing to control: no control, only speed is measured: smoke/speed"
    assert (result.exit_code, result.stderr) == (2, f"hybridwatch: {said}\n")
    assert speed == []


def test_a_scenario_is_that_of_the_first_builds_model_runner(checkout):
    path, fix = checkout / "scenarios" / "smoke" / "padded.toml", 'fix = "padded-rows-prefilling"\n'
    path.write_text(path.read_text().replace(fix, f'{fix}fix_v2 = "draft-max-seq-len"\n'))
    labels = (("tiny-1.0",), ("tiny-1.0+v2", "tiny-1.0+v1"), ("tiny-1.0+v1",))
    found = [chosen((), named)[-1].fix for named in labels]
    assert found == ["draft-max-seq-len", "draft-max-seq-len", "padded-rows-prefilling"]


@pytest.mark.parametrize(
    ("release", "accelerator", "runner"),
    [("0.28.0", "cuda", "v1"), ("0.29.0", "cuda", "v2"), ("0.32.0", "cpu", "v1")],
)
def test_a_release_chooses_where_nobody_does(checkout, release, accelerator, runner):
    side = parse_label("tiny-1.0")
    spec = side.spec.model_copy(update={"release": release, "accelerator": accelerator})
    (scenario,) = find(checkout / "scenarios", ("smoke/padded",))
    assert find_model_runner(scenario, replace(side, spec=spec)) == runner
    assert find_model_runner(scenario, replace(side, spec=spec, model_runner="v1")) == "v1"


def test_the_files_are_named_and_the_next_commands(tmp_path):
    outcome = run_verb(tmp_path / "mine", of=init_command, status=0)
    written = {path for path in (tmp_path / "mine").rglob("*") if path.is_file()}
    assert {str(path) for path in written} <= set(outcome.output.split())
    assert f"cd {tmp_path / 'mine'}" in outcome.output
    assert f"engine install {DEFAULT_BUILD}" in outcome.output


def test_the_scenario_that_it_starts_with_is_valid_next_to_those_shipped(own_home):
    (mine,) = find(own_home / "scenarios", ["mine/first"])
    assert mine.fix == "none"
    found = survey(own_home / "scenarios")
    assert found.problems == ()
    assert {one.id for one in survey(ROOT / "scenarios").scenarios} | {mine.id} == {
        one.id for one in found.scenarios
    }


def test_it_starts_with_no_build_and_a_policy_that_stops_a_broken_contract(own_home):
    shipped = [name for name, build in load_builds(ROOT).items() if not build.origin]
    assert list(load_builds(own_home)) == shipped
    policy = load_policy(find_policy(own_home))
    assert policy.rules[0].metric == "contract.*"
    assert policy.expected == ()


def test_its_fault_is_one_of_the_mutants(own_home):
    assert catalogue()["slow-decay"].half == "own"


def test_nothing_is_written_where_one_of_the_files_is(tmp_path):
    (tmp_path / "gate.toml").write_text("mine")
    with pytest.raises(BuildError, match=r"gate.toml: is there already"):
        make_home(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["gate.toml"]


def test_a_checkout_is_no_place_for_a_home():
    outcome = run_verb(ROOT, of=init_command)
    assert isinstance(outcome.exception, BuildError)
    assert "is a checkout" in str(outcome.exception)
