"""The weights of families and heads are what their recipes make of their seeds; no engine."""

import json
import subprocess

import numpy as np
import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import require_installed
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from tests.engine.conftest import BUILD

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("models have changed, so they are made afresh"),
    pytest.mark.timeout(600),
]

FAMILIES = sorted(one.model for one in find(home() / "scenarios", []) if "/family-" in one.id)


def tensors(file):
    """Each tensor of a file of safetensors in float32: a length, a table in JSON, and the bytes."""
    content = file.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    table = json.loads(content[8:begin])
    assert table.pop("__metadata__") == {"format": "pt"}
    return {
        name: np.frombuffer(content[begin + first : begin + last], dtype="<f4")
        for name, (first, last) in ((name, one["data_offsets"]) for name, one in table.items())
    }


def test_the_head_is_what_its_recipe_makes(tmp_path):
    """Least squares round otherwise on another processor; all else is the same to the bit."""
    build = parse_label(BUILD).spec
    require_installed(build)
    recipe = home() / "models" / "families"
    paths = f"{home() / 'models' / 'tiny-hybrid'}:{recipe}"
    make = [build.interpreter, recipe / "mtp.py", "--output", tmp_path]
    subprocess.run(
        make, env={"PYTHONPATH": paths, "PATH": ""}, check=True, stdout=subprocess.DEVNULL
    )
    shipped, made = home() / "models" / "tiny-nemotron-h-mtp", tmp_path / "tiny-nemotron-h-mtp"
    for file in ("config.json", "tokenizer.json"):
        assert (made / file).read_bytes() == (shipped / file).read_bytes()
    before, after = (tensors(folder / "model.safetensors") for folder in (shipped, made))
    assert before.keys() == after.keys()
    fitted = "mtp.layers.0.eh_proj.weight"
    np.testing.assert_allclose(after.pop(fitted), before.pop(fitted), atol=1e-3)
    for name, weight in before.items():
        np.testing.assert_array_equal(after[name], weight, err_msg=name)


def test_the_made_up_weights_are_what_their_seed_makes(tmp_path):
    build = parse_label(BUILD).spec
    require_installed(build)
    make = [build.interpreter, home() / "models" / "families" / "make.py", "--output", tmp_path]
    recipe = {"PYTHONPATH": str(home() / "models" / "tiny-hybrid"), "PATH": ""}
    subprocess.run(make, env=recipe, check=True, stdout=subprocess.DEVNULL)
    assert sorted(one.name for one in tmp_path.iterdir()) == FAMILIES
    for name in FAMILIES:
        for file in ("config.json", "model.safetensors", "tokenizer.json"):
            shipped, made = home() / "models" / name / file, tmp_path / name / file
            assert made.read_bytes() == shipped.read_bytes(), f"{name}/{file}"
