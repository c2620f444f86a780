"""Give the tiny Nemotron-H a head that drafts, fitted and not trained, on CPU.

    PYTHONPATH=models/tiny-hybrid:models/families <engine python> models/families/mtp.py \
        --output build/families

A head of multi-token prediction (MTP) gets the target's last hidden state of a token and the
embedding of the token that was said then, and makes the hidden state behind that. Its projection is
what linear least squares make of the target's own greedy text: right often enough for drafts to be
accepted, and wrong often enough for them to be rejected. Its attention is made up and small, so
that what is read from its cache counts, too.
"""

import argparse
from pathlib import Path

import torch
from make import made_up, save
from recipe.files import edit_json, make_readable
from safetensors.torch import load_file, save_file
from torch.nn import functional
from transformers import PreTrainedModel

TEXTS, LENGTH, PROMPT = 48, 96, 16
LETTERS = range(97, 123)
RIDGE = 1e-2
ATTENTION_SCALE = 0.05
ATTENTION_LAYER = 2

Weights = dict[str, torch.Tensor]


def main() -> None:
    """Write the folder of the target with its head."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    folder = arguments.output / "tiny-nemotron-h-mtp"
    model = made_up("nemotron_h", arguments.seed)
    save(model, folder)
    projection, share = fitted(model, greedy_text(model, arguments.seed))
    head = {"eh_proj.weight": projection} | around(model, arguments.seed)
    weights = load_file(folder / "model.safetensors")
    weights |= {f"mtp.layers.0.{name}": weight for name, weight in head.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    layers = {"num_nextn_predict_layers": 1, "mtp_layers_block_type": ["full_attention"]}
    edit_json(folder / "config.json", layers)
    make_readable(folder)
    print(f"{folder}: first drafts right of its own text: {share:.1%}")


@torch.no_grad()
def greedy_text(model: PreTrainedModel, seed: int) -> torch.Tensor:
    """Return texts of the model's likeliest tokens behind made-up prompts."""
    random = torch.Generator().manual_seed(seed)
    text = torch.randint(LETTERS.start, LETTERS.stop, (TEXTS, PROMPT), generator=random)
    while text.shape[1] < LENGTH:
        text = torch.cat([text, model(text, use_cache=False).logits[:, -1:].argmax(-1)], dim=1)
    return text


@torch.no_grad()
def fitted(model: PreTrainedModel, text: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Return the projection, and how often its draft is right on the text that it was fitted to."""
    hidden = model.model(text, use_cache=False).last_hidden_state
    size = hidden.shape[-1]
    said = functional.rms_norm(model.get_input_embeddings()(text[:, 1:]), (size,))
    before = functional.rms_norm(hidden[:, :-1], (size,))
    known = torch.cat([said, before], dim=-1)[:, PROMPT:].flatten(0, 1).double()
    wanted = hidden[:, PROMPT + 1 :].flatten(0, 1).double()
    gram = known.T @ known + RIDGE * len(known) * torch.eye(2 * size, dtype=torch.float64)
    projection = torch.linalg.solve(gram, known.T @ wanted)
    drafts = functional.rms_norm(known @ projection, (size,)).float() @ model.lm_head.weight.T
    right = drafts.argmax(-1) == (wanted.float() @ model.lm_head.weight.T).argmax(-1)
    return projection.T.float().contiguous(), right.float().mean().item()


def around(model: PreTrainedModel, seed: int) -> Weights:
    """Return what else the head has: norms that scale nothing, and made-up attention."""
    random = torch.Generator().manual_seed(seed)
    size = model.config.hidden_size
    norms = ("enorm", "hnorm", "norm", "final_layernorm")
    attention = model.model.layers[ATTENTION_LAYER].mixer.named_parameters()
    return {f"{name}.weight": torch.ones(size) for name in norms} | {
        f"mixer.{name}": ATTENTION_SCALE * torch.randn(weight.shape, generator=random)
        for name, weight in attention
    }


if __name__ == "__main__":
    main()
