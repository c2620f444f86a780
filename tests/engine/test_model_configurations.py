"""The configurations in ``models/configs/`` as transformers and vLLM read them."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import require_installed
from hybridwatch.system.home import home
from tests.engine.conftest import BUILD

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

COUNT = """
import json, sys
import torch
from transformers import AutoConfig, AutoModelForCausalLM
told = {}
for folder in sys.argv[1:]:
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    told[folder] = sum(parameter.numel() for parameter in model.parameters())
print(json.dumps(told))
"""

ACCEPT = """
import json, sys
from vllm.config import ModelConfig
tokenizer, *folders = sys.argv[1:]
models = {f: ModelConfig(model=f, tokenizer=tokenizer, max_model_len=4096) for f in folders}
print(json.dumps({f: [model.architecture, model.is_hybrid] for f, model in models.items()}))
"""

DRAFTS = """
import json, sys
from vllm.engine.arg_utils import EngineArgs
tokenizer, folder = sys.argv[1:]
speculation = {"method": "mtp", "num_speculative_tokens": 1}
asked = EngineArgs(model=folder, tokenizer=tokenizer, load_format="dummy", max_model_len=4096,
                   enable_prefix_caching=False, speculative_config=speculation)
draft = asked.create_engine_config().speculative_config.draft_model_config
print(json.dumps({folder: draft.architecture}))
"""

PARAMETERS = {
    "granite-4.0-h-tiny": 6.94e9,
    "falcon-h1-7b": 7.59e9,
    "nemotron-3.5-lightning-30b-a3b": 31.58e9,
    "qwen3.5-9b": 8.95e9,
}
ARCHITECTURES = {
    "granite-4.0-h-tiny": "GraniteMoeHybridForCausalLM",
    "falcon-h1-7b": "FalconH1ForCausalLM",
    "nemotron-3.5-lightning-30b-a3b": "NemotronHForCausalLM",
}


def told(cache, script, *arguments):
    """What a script says in the engine's Python, by the name of the configuration."""
    build = parse_label(BUILD).spec
    require_installed(build)
    done = subprocess.run(
        [str(build.interpreter), "-c", script, *map(str, arguments)],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": "", "VLLM_CACHE_ROOT": str(cache)},
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    return {Path(folder).name: value for folder, value in answer.items()}


def folders(names):
    return [home() / "models" / "configs" / name for name in names]


def test_each_has_the_parameters_that_its_model_is_published_with(tmp_path):
    assert told(tmp_path, COUNT, *folders(PARAMETERS)) == pytest.approx(PARAMETERS, rel=1e-3)


@pytest.mark.slow  # the files change with a new model only, and vLLM with a new build
def test_vllm_takes_each_for_a_hybrid_model(tmp_path):
    found = told(tmp_path, ACCEPT, home() / "models" / "tiny-hybrid", *folders(ARCHITECTURES))
    assert found == {name: [architecture, True] for name, architecture in ARCHITECTURES.items()}


@pytest.mark.slow  # the files change with a new model only, and vLLM with a new build
def test_nemotron_h_drafts_for_itself(tmp_path):
    name = "nemotron-3.5-lightning-30b-a3b"
    found = told(tmp_path, DRAFTS, home() / "models" / "tiny-hybrid", *folders([name]))
    assert found == {name: "NemotronHMTPModel"}
