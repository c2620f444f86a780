"""``ENGINE_PYTHON lab.py MODEL ENGINE_ARGS``: one engine inside one process, stepped by hand.

Reads a job per line from standard input and answers a line each, JSON both ways. What reaches the
engine in which of its steps is said by the job and by nothing else, so a failing job fails again.

A job: ``waves`` (lists of requests ``{"prompt": [ids], "max_tokens": n, "at": step}``; a wave
starts when the one before has left), ``chunk_budget`` (most tokens of a step), ``fixes`` (id to
whether it shall be in), ``eager``, ``idle_batches``, and if need be ``speculate``, ``mutant`` and
``probe`` (which one; the contract probe if none is named). The answer: ``tokens`` of each request
in order, how many prompt tokens of each were ``cached``, how many engine ``steps`` it took, how
often the mutant ``changed`` something, and what the probe counted, under its name.
"""

import json
import os
import sys
from typing import Any

from hybridwatch_engine.early import prepare


def main(model: str, arguments: str) -> int:
    """Start the engine and work through the jobs."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # vLLM talks on standard output
    prepare()
    from vllm import LLM

    engine = LLM(
        model=model,
        worker_extension_cls="hybridwatch_engine.control.WorkerControl",
        disable_log_stats=True,
        **json.loads(arguments),
    )
    answers.write('{"ready": true}\n')
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(work(engine, json.loads(line))) + "\n")
        answers.flush()
    return 0


def work(engine: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Do one job on a clean engine."""

    def call(method: str, *args: Any) -> Any:
        return engine.collective_rpc(f"hybridwatch_{method}", args=args)[0]

    core = engine.llm_engine.engine_core.engine_core
    assert call("clear_rows") == {"requests": 0}
    core.reset_prefix_cache()
    for fix_id, wanted in job["fixes"].items():
        answer = call("switch", fix_id, wanted)
        assert "error" not in answer, answer
    call("eager", job["eager"])
    call("idle_batches", job["idle_batches"])
    if "speculate" in job:
        call("speculate", job["speculate"])
    assert "error" not in call("mutate", job.get("mutant"))
    core.scheduler.max_num_scheduled_tokens = job["chunk_budget"]
    probe = job.get("probe", "contract")
    call("probe_start", probe)
    outputs, steps = [], 0
    for number, wave in enumerate(job["waves"]):
        of_wave, taken = run(engine, number, wave)
        outputs += of_wave
        steps += taken
    return {
        "tokens": [list(output.outputs[0].token_ids) for output in outputs],
        "cached": [output.num_cached_tokens for output in outputs],
        "steps": steps,
        "changed": call("mutant_counts")["changed"] if job.get("mutant") else 0,
        probe: call("probe_stop", probe),
    }


def run(engine: Any, number: int, wave: list[dict[str, Any]]) -> tuple[list[Any], int]:
    """Serve one wave; arrivals are counted in engine steps from its start, which are given too."""
    from vllm import SamplingParams, TokensPrompt

    waiting = sorted(enumerate(wave), key=lambda entry: entry[1]["at"])
    said: dict[str, Any] = {}
    step = 0
    while waiting or engine.llm_engine.has_unfinished_requests():
        while waiting and waiting[0][1]["at"] <= step:
            index, request = waiting.pop(0)
            engine.llm_engine.add_request(
                f"{number}-{index}",
                TokensPrompt(prompt_token_ids=request["prompt"]),
                SamplingParams(temperature=0.0, max_tokens=request["max_tokens"], ignore_eos=True),
            )
        for output in engine.llm_engine.step():
            if output.finished:
                said[output.request_id] = output
        step += 1
    engine.llm_engine.engine_core.engine_core.step_fn()  # tells the worker who has left
    return [said[f"{number}-{index}"] for index in range(len(wave))], step


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
