"""``ENGINE_PYTHON draft_lab.py MODEL ENGINE_ARGS``: a drafter, and where it writes.

Answers one line of JSON for each line ``{"fix": whether the draft model's own blocks are used,
"speculate": whether drafts reach the scheduler, "prompts": lists of token ids, "max_tokens": n}``:
greedy ``tokens``, how many prompt tokens were ``cached``, and what ``DraftWritesProbe`` counted.
"""

import json
import os
import sys
from typing import Any


def main(model: str, arguments: str) -> int:
    """Start the engine and work through the jobs."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # vLLM talks on standard output
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
    """Do one job with an empty prefix cache."""
    from hybridwatch_engine.probes.draft_writes import DraftWritesProbe
    from vllm import SamplingParams, TokensPrompt

    def call(method: str, *args: Any) -> Any:
        return engine.collective_rpc(f"hybridwatch_{method}", args=args)[0]

    engine.reset_prefix_cache()
    answer = call("switch", "draft-model-cache-group", job["fix"])
    assert "error" not in answer, answer
    call("speculate", job["speculate"])
    probe = DraftWritesProbe()
    probe.start()
    outputs = engine.generate(
        [TokensPrompt(prompt_token_ids=prompt) for prompt in job["prompts"]],
        SamplingParams(temperature=0.0, max_tokens=job["max_tokens"], ignore_eos=True),
        use_tqdm=False,
    )
    return {
        "tokens": [list(output.outputs[0].token_ids) for output in outputs],
        "cached": [output.num_cached_tokens for output in outputs],
        "counts": probe.stop(),
    }


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
