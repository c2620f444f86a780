"""Make adapters (LoRA) of the tiny hybrid out of a seed, in PEFT's format, on CPU.

    PYTHONPATH=models/tiny-hybrid <engine python> models/adapters/make.py --output build/adapters

Factors are made up and never trained. Their product is a fraction of the weights' own size: large
enough that an adapter that is lost changes the answer, and small enough that the layers still work.
"""

import argparse
import json
import math
from pathlib import Path

import torch
from recipe.files import make_readable
from safetensors.torch import load_file, save_file
from torch import Tensor

MODEL = Path(__file__).parents[1] / "tiny-hybrid" / "model.safetensors"
RANK = 4
SHARE = 0.3
"""Of the root mean square of the weights, that of the product."""
ADAPTERS = {
    "tiny-hybrid-lora-mamba": ("in_proj", "out_proj"),
    "tiny-hybrid-lora-all": ("in_proj", "out_proj", "q_proj", "k_proj", "v_proj", "o_proj"),
}


def main() -> None:
    """Make what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder of the adapters")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for number, (name, modules) in enumerate(ADAPTERS.items()):
        factors = draw(load_file(MODEL), modules, arguments.seed + number)
        save(factors, modules, arguments.output / name)
        print(
            f"{arguments.output / name}: {sum(one.numel() for one in factors.values()):,} numbers"
        )


def draw(weights: dict[str, Tensor], modules: tuple[str, ...], seed: int) -> dict[str, Tensor]:
    """Return both factors of each weight, (rank, inputs) and (outputs, rank)."""
    torch.manual_seed(seed)
    factors = {}
    for name in sorted(weights):
        layer, _, kind = name.rpartition(".")
        if kind != "weight" or layer.rpartition(".")[2] not in modules:
            continue
        outputs, inputs = weights[name].shape
        size = SHARE * weights[name].square().mean().sqrt() / math.sqrt(RANK)
        factors[f"base_model.model.{layer}.lora_A.weight"] = torch.randn(RANK, inputs)
        factors[f"base_model.model.{layer}.lora_B.weight"] = torch.randn(outputs, RANK) * size
    return factors


def save(factors: dict[str, Tensor], modules: tuple[str, ...], folder: Path) -> None:
    """Write a folder that vLLM and PEFT can load."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(factors, folder / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "tiny-hybrid",
        "r": RANK,
        "lora_alpha": RANK,
        "target_modules": list(modules),
        "bias": "none",
    }
    text = json.dumps(config, indent=2) + "\n"
    (folder / "adapter_config.json").write_text(text, encoding="utf-8")
    make_readable(folder)


if __name__ == "__main__":
    main()
