"""``python -m hybridwatch_engine_lab.studies.lossless MODEL``: do drafts change greedy tokens?

Two engines in processes of their own get the same requests: one as plain as can be, without
speculation or cached prefixes, and one that speculates in the cache mode asked for. Half of the
requests are prompts of random letters and of repeated ones, so that drafts are rejected and
accepted; the other half goes on from what was said to the first, out of the prefix cache where
there is one. FULL graphs are replayed, but on model runner V2 (``--runner v2``, or
``v2-interpreted`` for Triton's interpreter alone), whose graphs a CPU has not. Prints one JSON
object; the exit status is 1 when any request was answered otherwise. With ``--plain FILE`` several
comparisons share the plain engine's answers: the first one writes them.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from hybridwatch_engine.fixes.headers import headers
from hybridwatch_engine.settings import VARIABLE

from hybridwatch_engine_lab.studies.stepping import SETTINGS, SETTINGS_OF_CPU

FIXES: Final = tuple(fix_id for fix_id, entry in headers().items() if entry.lossless)
"""Without these no released engine of the mode is lossless; put in where a release lacks them."""

_ROWS: Final = 8
_LONGEST_PROMPT: Final = 300
_WISHES: Final = {
    "v1": {"model_runner": "v1", "graph_replay": True, "fixes": {}},
    "v2": {"model_runner": "v2", "fixes": {}},
    "v2-interpreted": {"model_runner": "v2", "interpret_kernels": True, "fixes": {}},
}

Tokens = list[int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the two engines, or be one of them."""
    setup = _parser().parse_args(arguments)
    if setup.engine:
        return _serve(setup, os.fdopen(os.dup(1), "w"))
    plain = _plain(setup)
    outcome = _ask(setup, mode=setup.mode, method=setup.method, runner=setup.runner)
    pairs = list(zip(plain["tokens"], outcome.pop("tokens"), strict=True))
    equal = sum(one == other for one, other in pairs)
    asked = {name: getattr(setup, name) for name in ("runner", "mode", "method")}
    summary = {**asked, "requests": len(pairs), "equal": equal}
    sys.stdout.write(json.dumps(summary | outcome) + "\n")
    return int(equal < len(pairs))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hybridwatch_engine_lab.studies.lossless")
    parser.add_argument("model", help="folder of the target")
    parser.add_argument("--mode", choices=("none", "align", "all", "off"), default="all")
    parser.add_argument(
        "--method", choices=("ngram", "eagle", "mtp", "draft_model", "none"), default="ngram"
    )
    parser.add_argument("--runner", choices=tuple(_WISHES), default="v1")
    parser.add_argument(
        "--draft", help="folder of the head or model that drafts; an MTP head is in the target's"
    )
    parser.add_argument("--drafts", type=int, default=3, help="tokens proposed in a step")
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", type=Path, help="file that keeps the plain engine's answers")
    parser.add_argument("--without", nargs="*", default=(), help="fixes to leave out")
    parser.add_argument("--engine", action="store_true", help=argparse.SUPPRESS)
    return parser


def _plain(setup: argparse.Namespace) -> dict[str, Any]:
    """What the plain engine says, or said to the same requests before."""
    asked = {name: getattr(setup, name) for name in ("model", "requests", "seed")}
    if setup.plain is not None and setup.plain.exists():
        kept: dict[str, Any] = json.loads(setup.plain.read_text(encoding="utf-8"))
        if kept["asked"] != asked:
            raise SystemExit(f"{setup.plain}: asked: expected {asked}, found {kept['asked']}")
        return kept
    said = {"asked": asked, **_ask(setup, mode="off", method="none", runner="v1")}
    if setup.plain is not None:
        setup.plain.write_text(json.dumps(said), encoding="utf-8")
    return said


def _ask(setup: argparse.Namespace, *, mode: str, method: str, runner: str) -> dict[str, Any]:
    """Run one engine in a process of its own."""
    options: dict[str, object] = {**vars(setup), "mode": mode, "method": method, "runner": runner}
    words = [str(options.pop("model")), "--engine"]
    for name in ("mode", "method", "runner", "draft", "drafts", "requests", "seed"):
        if options[name] is not None:
            words += [f"--{name}", str(options[name])]
    words += ["--without", *setup.without]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "hybridwatch_engine_lab.studies.lossless", *words],
        env={**os.environ, **SETTINGS, **SETTINGS_OF_CPU, VARIABLE: json.dumps(_WISHES[runner])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _serve(setup: argparse.Namespace, answers: Any) -> int:
    """Be one engine: answer every request, and tell."""
    os.dup2(2, 1)  # vLLM talks on standard output
    engine = _LosslessEngine(setup)
    first = engine.say(_prompts(setup.requests // 2, setup.seed))
    further = random.Random(f"{setup.seed} turns")  # noqa: S311 - repeatable is what is wanted
    turns = [[*talk, *_letters(further, further.randrange(1, 40))] for talk in engine.talks]
    second = engine.say(turns[: setup.requests - len(first)])
    answers.write(json.dumps({"tokens": first + second, **engine.summary()}) + "\n")
    answers.flush()
    return 0


def _prompts(count: int, seed: int) -> list[Tokens]:
    rng = random.Random(seed)  # noqa: S311 - repeatable is what is wanted
    prompts = []
    for number in range(count):
        length = rng.randrange(4, _LONGEST_PROMPT)
        unit = _letters(rng, rng.randrange(3, 9) if number % 2 else length)
        prompts.append((unit * length)[:length])
    return prompts


def _letters(rng: random.Random, count: int) -> Tokens:
    return [rng.randrange(97, 123) for _ in range(count)]


class _LosslessEngine:
    """An engine that says the most likely tokens."""

    def __init__(self, setup: argparse.Namespace) -> None:
        from vllm import LLM

        self._seed = setup.seed
        self._cached = 0
        self.talks: list[Tokens] = []
        self._llm = LLM(
            setup.model,
            dtype="float32",
            max_model_len=1024,
            max_num_seqs=_ROWS,
            enable_prefix_caching=setup.mode in {"align", "all"},
            compilation_config={"mode": 0, **_graphs(setup)},
            worker_extension_cls="hybridwatch_engine.control.WorkerControl",
            disable_log_stats=False,
            **_chosen(setup),
        )
        if setup.method != "none":
            self._mend(set(FIXES) - set(setup.without))
        self._call("probe_start", "contract")

    def _mend(self, fixes: set[str]) -> None:
        states = self._call("identity")["fixes"]
        for fix in sorted(fixes):
            if states[fix] == "lacking":
                self._call("switch", fix, True)

    def _call(self, method: str, *arguments: object) -> Any:
        return self._llm.collective_rpc(f"hybridwatch_{method}", args=arguments)[0]

    def say(self, prompts: Sequence[Tokens]) -> list[Tokens]:
        """Answer prompts, each to a length of its own."""
        from vllm import SamplingParams, TokensPrompt

        lengths = random.Random(f"{self._seed} lengths")  # noqa: S311 - repeatable
        outputs = self._llm.generate(
            [TokensPrompt(prompt_token_ids=prompt) for prompt in prompts],
            [
                SamplingParams(
                    temperature=0.0, max_tokens=lengths.randrange(8, 64), ignore_eos=True
                )
                for _ in prompts
            ],
            use_tqdm=False,
        )
        answered = [list(output.outputs[0].token_ids) for output in outputs]
        self._cached += sum(output.num_cached_tokens or 0 for output in outputs)
        self.talks = [[*prompt, *answer] for prompt, answer in zip(prompts, answered, strict=True)]
        return answered

    def summary(self) -> dict[str, Any]:
        """What became of the drafts, what came from the cache, and which contracts were broken."""
        counts = {
            metric.name.removeprefix("vllm:spec_decode_"): metric.value
            for metric in self._llm.get_metrics()
            if metric.name.startswith("vllm:spec_decode_") and hasattr(metric, "value")
        }
        contract = self._call("probe_stop", "contract")
        wanted = ("states_compared", "states_off", "blocks_completed", "block_ends_off")
        seen = {name: contract[name] for name in (*wanted, "draftless_rows", "crossed_rejections")}
        return {"cached_tokens": self._cached, **counts, **seen}


def _graphs(setup: argparse.Namespace) -> dict[str, Any]:
    """Sizes in tokens: a row that speculates has one for each draft and one of its own."""
    if setup.runner != "v1":
        return {"cudagraph_mode": "NONE"}
    per_row = 1 if setup.method == "none" else 1 + setup.drafts
    sizes = [rows * per_row for rows in (4, _ROWS)]
    return {"cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": sizes}


def _chosen(setup: argparse.Namespace) -> dict[str, Any]:
    """Engine arguments that only some modes and methods have."""
    chosen: dict[str, Any] = {}
    if setup.mode in {"align", "all"}:
        chosen["mamba_cache_mode"] = setup.mode
    if setup.method == "none":
        return chosen
    drafting: dict[str, Any] = {"method": setup.method, "num_speculative_tokens": setup.drafts}
    if setup.method == "ngram":
        drafting |= {"prompt_lookup_min": 1, "prompt_lookup_max": 3}
    elif setup.method != "mtp":
        drafting["model"] = setup.draft
    return {**chosen, "speculative_config": drafting}


if __name__ == "__main__":
    sys.exit(main())
