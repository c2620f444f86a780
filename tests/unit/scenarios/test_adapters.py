"""Adapters that an engine serves and requests name."""

from pathlib import Path

import pytest

from hybridwatch.errors import ScenarioError
from hybridwatch.measurement.completions import build_body
from hybridwatch.scenarios.expansion import expand
from hybridwatch.scenarios.load import digest
from tests.unit.scenarios import example
from tests.unit.scenarios.example import GOOD, WAVE

PLAIN = "[[workload.waves]]\nrequests = 5\ninput_tokens = 40\noutput_tokens = 8\n"
SERVED = 'lora_modules = ["a", "b"]\nmax_loras = 2\n'


def load(tmp_path: Path, wave: str = "", engine: str = SERVED):
    text = GOOD.replace(WAVE, f"{PLAIN}{wave}\n")
    return example.load(tmp_path, text.replace("[engine]\n", f"[engine]\n{engine}"))


def test_requests_name_adapters_in_turn_and_again(tmp_path):
    again = "[[workload.waves]]\nagain = true"
    waves = expand(load(tmp_path, f'adapters = ["a", "", "b"]\n{again}').workload.waves, 5)
    rows = [[build_body(one, "model", {})["model"] for one in wave.requests] for wave in waves]
    assert rows == 2 * [["a", "model", "b", "a", "model"]]


def test_a_scenario_without_adapters_is_what_it_was(tmp_path):
    plain = digest(load(tmp_path, engine=""))
    assert digest(load(tmp_path, "adapters = []", "lora_modules = []\n")) == plain
    assert digest(load(tmp_path)) != plain


@pytest.mark.parametrize(
    ("wave", "engine", "why"),
    [
        ('adapters = ["", "c"]', SERVED, r'adapters: expected "" or one of .*, found "c"'),
        ('adapters = ["a"]', "", r'adapters: expected "" or one of .*, found "a"'),
        ("", "max_lora_rank = 8\n", "max_lora_rank: expected only with lora_modules, found 8"),
        ("", "max_loras = 2\n", "max_loras: expected only with lora_modules, found 2"),
        ("", 'lora_modules = ["a/b"]\n', "lora_modules"),
    ],
)
def test_what_no_engine_serves_is_refused(tmp_path, wave, engine, why):
    with pytest.raises(ScenarioError, match=why):
        load(tmp_path, wave, engine)
