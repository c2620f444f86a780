"""Greedy answers of a model by transformers' plain PyTorch path, which shares no code with vLLM.

    python -m hybridwatch_engine.oracle MODEL < waves.json > answers.json
    python -m hybridwatch_engine.oracle MODEL --serve  # lines in, lines out

Every token is the likeliest after one pass over the whole text before it, without any cache: there
is no state that could be lost, moved or read from another request. A draft (what was written down
before, or what the cached path of transformers says) only saves passes: it is checked at every
position by the pass without cache, and followed no further than it is right. Bias, penalties and
what ends an answer are computed here, too.
"""

import json
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hybridwatch_engine.grammars import grammar_reader

ALTERNATIVES: Final = 5
"""Likeliest tokens that are given at each position."""

Ids = list[int]
Params = Mapping[str, Any]


class EngineOracle:
    """One model in float32 on the processor, one request at a time."""

    def __init__(self, folder: str) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        self._folder = folder
        self._tokenizer: Any = None
        torch.set_num_threads(1)  # sums in the same order on every machine
        self._torch = torch
        self._model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager"
        ).eval()
        self._adapter = ""
        self._replaced: list[tuple[Any, Any]] = []

    def wear(self, adapter: str) -> None:
        """Add the product of an adapter to the weights, in place of the one before; "" for none.

        ``adapter`` is a folder next to the model's, in PEFT's format.
        """
        if adapter == self._adapter:
            return
        for weight, own in self._replaced:
            weight.copy_(own)
        self._adapter, self._replaced = adapter, []
        for weight, product in self._products(adapter):
            self._replaced.append((weight, weight.clone()))
            weight.add_(product)

    def _products(self, adapter: str) -> Iterator[tuple[Any, Any]]:
        """Yield each weight that an adapter changes, and what is added to it."""
        from safetensors.torch import load_file

        if not adapter:
            return
        folder = Path(self._folder).parent / adapter
        config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
        factors, weights = load_file(folder / "adapter_model.safetensors"), self._model.state_dict()
        for name in (key for key in factors if ".lora_A." in key):
            weight = name.removeprefix("base_model.model.").replace(".lora_A", "")
            product = factors[name.replace("lora_A", "lora_B")] @ factors[name]
            yield weights[weight], product * (config["lora_alpha"] / config["r"])

    def answer(self, prompt: Ids, length: int, draft: Ids, params: Params) -> dict[str, Any]:
        """Answer a prompt.

        Args:
            prompt: Token ids.
            length: Tokens of the answer, if nothing ends it before.
            draft: What the answer may be; empty for no idea.
            params: What else is asked of the answer, in vLLM's names.

        Returns:
            The answer's ``tokens``, their ``logprobs``, and as ``top`` for each the likeliest ids
            with logarithms of what bias and penalties make of them.
        """
        draft, outputs = draft[:length], params.get("structured_outputs")
        bias = params.get("logit_bias", {})
        while True:
            if missing := length - len(draft):
                # Drafts that know no grammar are wrong at once, so none are computed for one.
                drafted = [0] * missing if outputs else self._drafted(prompt + draft, missing, bias)
                draft = draft + drafted
            logits = self._logits(prompt + draft[:-1])[len(prompt) - 1 :]
            if outputs:
                reader = grammar_reader(self._folder, logits.shape[-1])
                logits = reader.mask(logits, draft, outputs)
            top = self._likeliest(self._changed(logits, prompt, draft, params))
            best = [int(alternatives[0][0]) for alternatives in top]
            right = next((at for at in range(length) if best[at] != draft[at]), length)
            end = self._end(draft[:right], params) if outputs else right
            if right == length or end < right:
                end = self._end(draft, params)
                said = draft[:end]
                return {"tokens": said, "logprobs": _of(logits, said), "top": top[:end]}
            draft = [*draft[:right], best[right]]

    def read(self, prompt: Ids) -> dict[str, Any]:
        """Give what ``answer`` gives of an answer, of the prompt's tokens from the second on."""
        tokens = prompt[1:]
        logprobs = _of(self._logits(prompt), tokens)
        pairs = zip(tokens, logprobs, strict=True)
        return {"tokens": tokens, "logprobs": logprobs, "top": [[list(pair)] for pair in pairs]}

    def _logits(self, text: Ids) -> Any:
        with self._torch.inference_mode():
            return self._model(self._torch.tensor([text]), use_cache=False).logits[0]

    def _likeliest(self, logits: Any) -> list[list[list[float]]]:
        values, tokens = logits.log_softmax(-1).topk(ALTERNATIVES)
        rows = zip(tokens.tolist(), values.tolist(), strict=True)
        return [[list(pair) for pair in zip(*row, strict=True)] for row in rows]

    def _changed(self, logits: Any, prompt: Ids, answer: Ids, params: Params) -> Any:
        """Add the bias, shut out what would end the answer too early, then take penalties off."""
        changed = logits.clone()
        seen = self._torch.zeros(changed.shape[-1], dtype=self._torch.bool)
        seen[prompt] = True
        counts = self._torch.zeros(changed.shape[-1])
        repeated = params.get("repetition_penalty", 1.0)
        early = [*params.get("stop_token_ids", ()), *self._ends]
        for at, row in enumerate(changed):
            for token, bias in params.get("logit_bias", {}).items():
                row[int(token)] += bias
            if at < params.get("min_tokens", 0):
                row[early] = -self._torch.inf
            if repeated != 1:
                scaled = self._torch.where(row > 0, row / repeated, row * repeated)
                row[:] = self._torch.where(seen, scaled, row)
            row -= params.get("frequency_penalty", 0.0) * counts
            row -= params.get("presence_penalty", 0.0) * (counts > 0)
            seen[answer[at]] = True
            counts[answer[at]] += 1
        return changed

    def _end(self, answer: Ids, params: Params) -> int:
        """Count the tokens up to the one that ends an answer."""
        ends = {*params.get("stop_token_ids", ())}
        ends |= set() if params.get("ignore_eos", True) else {*self._ends}
        stops, text = params.get("stop", ()), ""
        for count, token in enumerate(answer, 1):
            if token in ends:
                return count
            if stops:
                before, text = len(text), self._decode(answer[:count])
                late = count > params.get("min_tokens", 0)
                # A text that was whole before ends nothing later.
                if late and any(stop in text[max(0, before + 1 - len(stop)) :] for stop in stops):
                    return count
        return len(answer)

    @property
    def _ends(self) -> Ids:
        """The end-of-text tokens."""
        found = self._model.generation_config.eos_token_id
        return found if isinstance(found, list) else [found] * (found is not None)

    def _decode(self, tokens: Ids) -> str:
        from transformers import AutoTokenizer

        if self._tokenizer is None:
            self._tokenizer = AutoTokenizer.from_pretrained(self._folder)
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=True)
        return text

    def _drafted(self, text: Ids, length: int, bias: Mapping[str, float]) -> Ids:
        with self._torch.inference_mode():
            ids = self._torch.tensor([text])
            generated = self._model.generate(
                ids,
                attention_mask=self._torch.ones_like(ids),
                max_new_tokens=length,
                do_sample=False,
                eos_token_id=None,
                sequence_bias={(int(token),): value for token, value in bias.items()} or None,
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
            oracle.wear(request.get("adapter", ""))
            prompt, params = talk + request["prompt"], request.get("sampling_params", {})
            draft = request.get("draft", [])
            answer = oracle.answer(prompt, request["max_tokens"], draft, params)
            before.append(prompt + answer["tokens"])
            if "prompt_logprobs" in params:
                answer = {key: said + answer[key] for key, said in oracle.read(prompt).items()}
            found.append({"prompt": prompt, **answer})
    return found


def _of(logits: Any, tokens: Ids) -> list[float]:
    """Give the logarithms of tokens, each chosen after one more."""
    rows = logits.log_softmax(-1)
    return [float(rows[at, token]) for at, token in enumerate(tokens)]


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
