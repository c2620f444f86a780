"""Greedy answers of a model by transformers' plain PyTorch path, which shares no code with vLLM.

    python -m hybridwatch_engine.oracle MODEL < waves.json > answers.json
    python -m hybridwatch_engine.oracle MODEL --serve  # lines in, lines out

Every token is the likeliest after one pass over the whole text before it, without any cache: there
is no state that could be lost, moved or read from another request. A draft (what was written down
before, or what the cached path of transformers says) only saves passes: it is checked at every
position by the pass without cache, and followed no further than it is right.
"""

import json
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

ALTERNATIVES: Final = 5
"""Likeliest tokens that are given at each position."""

Ids = list[int]


class EngineOracle:
    """One model in float32 on the processor, one request at a time."""

    def __init__(self, folder: str) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        torch.set_num_threads(1)  # sums in the same order on every machine
        self._torch = torch
        self._model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager"
        ).eval()

    def answer(self, prompt: Ids, length: int, draft: Ids) -> tuple[Ids, list[list[list[float]]]]:
        """Answer a prompt.

        Args:
            prompt: Token ids.
            length: Tokens of the answer.
            draft: What the answer may be; empty for no idea.

        Returns:
            The answer, and for each of its tokens the likeliest ids with their logarithms.
        """
        draft = draft[:length]
        while True:
            if len(draft) < length:
                draft = draft + self._drafted(prompt + draft, length - len(draft))
            top = self._likeliest(prompt, draft)
            best = [int(alternatives[0][0]) for alternatives in top]
            right = next((at for at in range(length) if best[at] != draft[at]), length)
            if right == length:
                return draft, top
            draft = [*draft[:right], best[right]]

    def _likeliest(self, prompt: Ids, answer: Ids) -> list[list[list[float]]]:
        with self._torch.inference_mode():
            ids = self._torch.tensor([prompt + answer[:-1]])
            logits = self._model(ids, use_cache=False).logits[0, len(prompt) - 1 :]
            values, tokens = logits.log_softmax(-1).topk(ALTERNATIVES)
        rows = zip(tokens.tolist(), values.tolist(), strict=True)
        return [[list(pair) for pair in zip(*row, strict=True)] for row in rows]

    def _drafted(self, text: Ids, length: int) -> Ids:
        with self._torch.inference_mode():
            ids = self._torch.tensor([text])
            generated = self._model.generate(
                ids,
                attention_mask=self._torch.ones_like(ids),
                max_new_tokens=length,
                do_sample=False,
                eos_token_id=None,
            )
        found: Ids = generated[0, len(text) :].tolist()
        return found


def answers_of(oracle: EngineOracle, waves: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answer the waves of a trial in their order; a turn goes on from the answer before it."""
    found: list[dict[str, Any]] = []
    before: list[Ids] = []
    for wave in waves:
        talks = before if wave["continues"] else [[] for _ in wave["requests"]]
        before = []
        for talk, request in zip(talks, wave["requests"], strict=True):
            prompt = talk + request["prompt"]
            tokens, top = oracle.answer(prompt, request["max_tokens"], request.get("draft", []))
            found.append({"prompt": prompt, "tokens": tokens, "top": top})
            before.append(prompt + tokens)
    return found


def served(oracle: EngineOracle, lines: Iterable[str]) -> Iterator[str]:
    """Answer lines of requests, each a list like that of a wave, as they come."""
    for line in lines:
        yield json.dumps(answers_of(oracle, [{"continues": False, "requests": json.loads(line)}]))


def serve(model: str) -> None:
    """Answer what comes on standard input until it ends."""
    for answers in served(EngineOracle(model), sys.stdin):
        sys.stdout.write(f"{answers}\n")
        sys.stdout.flush()


def main(arguments: Sequence[str], text: str) -> str:
    """Answer every trial, and name the versions that did."""
    import torch
    import transformers

    oracle = EngineOracle(arguments[0])
    trials = [answers_of(oracle, waves) for waves in json.loads(text)]
    made_by = {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "dtype": "float32",
    }
    return json.dumps({"made_by": made_by, "trials": trials})


if __name__ == "__main__":
    if sys.argv[2:] == ["--serve"]:
        serve(sys.argv[1])
    else:
        sys.stdout.write(main(sys.argv[1:], sys.stdin.read()))
