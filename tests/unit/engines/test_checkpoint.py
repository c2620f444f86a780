"""Where models are found, and that a hub out of reach is one line."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hybridwatch_engine import hub

from hybridwatch.engines.builds import BuildSpec, named_build
from hybridwatch.engines.fitting import Checkpoint, find_checkpoint
from hybridwatch.errors import BuildError
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.scenarios.scenario import Scenario

ROOT = Path(__file__).parents[3]
MODELS = ROOT / "models"


def shipped(name: str) -> Scenario:
    return load_scenario(ROOT / "scenarios" / f"{name}.toml", ROOT / "scenarios")


OURS, MADE_UP, HUB = map(
    shipped, ("gpu/dummy-run", "gpu/granite-4-h-tiny", "gpu/gsm8k-padded-rows")
)
BUILD = named_build("cpu-0.27.1", ROOT)


@pytest.fixture
def build(tmp_path: Path) -> BuildSpec:
    """A build whose Python answers what lies in ``answer.json``, and keeps what it is asked."""
    python = tmp_path / ".engines" / BUILD.name / "bin" / "python"
    python.parent.mkdir(parents=True)
    here = "$(dirname $0)"
    python.write_text(f'#!/bin/sh\necho "$@" > {here}/asked\ncat {here}/answer.json\nexit 3\n')
    python.chmod(0o755)
    return BUILD.model_copy(update={"home": tmp_path})


def answer(build: BuildSpec, text: str) -> None:
    build.interpreter.with_name("answer.json").write_text(text)


def test_our_models_lie_among_ours():
    assert find_checkpoint(OURS, BUILD, MODELS) == Checkpoint(MODELS / "tiny-memory-moe")


def test_made_up_weights_have_a_configuration_and_a_tokenizer_of_bytes():
    found = find_checkpoint(MADE_UP, BUILD, MODELS)
    assert found.folder == MODELS / "configs" / "granite-4.0-h-tiny"
    assert found.tokenizer == MODELS / "tiny-hybrid"


@pytest.mark.parametrize(("scenario", "where"), [(OURS, ""), (MADE_UP, "configs/")])
def test_a_model_that_is_nowhere_is_told(scenario, where, tmp_path):
    with pytest.raises(BuildError) as caught:
        find_checkpoint(scenario, BUILD, tmp_path)
    assert str(caught.value) == (
        f"{scenario.id}: model: expected a folder {where + scenario.model!r} in {tmp_path}"
    )


def test_a_model_of_the_hub_is_fetched_at_its_revision(build, tmp_path):
    answer(build, json.dumps({"path": "/cache/abc", "revision": "abc"}))
    found = find_checkpoint(HUB.model_copy(update={"revision": "main"}), build, tmp_path)
    assert found == Checkpoint(Path("/cache/abc"), revision="abc")
    asked = build.interpreter.with_name("asked").read_text().split()
    assert asked == ["-m", "hybridwatch_engine.hub", HUB.model, "main"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"error": "ConnectError: no route"}', "ConnectError: no route"),
        ("Traceback", "the hub's client ended with status 3"),
        ("", "the hub's client ended with status 3"),
    ],
)
def test_a_hub_out_of_reach_is_one_line(build, tmp_path, text, why):
    answer(build, text)
    with pytest.raises(BuildError) as caught:
        find_checkpoint(HUB, build, tmp_path)
    said = f"{HUB.id}: model {HUB.model}: it cannot be had from the hub: {why}"
    assert str(caught.value) == said


def test_the_engine_tells_path_and_commit(monkeypatch, capsys):
    calls = []

    def snapshot_download(name, **rest):
        calls.append((name, rest["revision"]))
        return "/cache/snapshots/c0ffee"

    client = SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", client)
    assert hub.main("owner/name") == 0
    assert json.loads(capsys.readouterr().out) == {
        "path": "/cache/snapshots/c0ffee",
        "revision": "c0ffee",
    }
    assert calls == [("owner/name", None)]


def test_the_engine_tells_the_first_line_of_what_went_wrong(monkeypatch, capsys):
    def snapshot_download(*_, **__):
        raise OSError("\nno route to host\nand much more")

    client = SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", client)
    assert hub.main("owner/name", "v1") == 0
    assert json.loads(capsys.readouterr().out) == {"error": "OSError: no route to host"}
