"""``python -m hybridwatch_engine_lab.exercise.moved_counts``: whose draft count a request gets.

With asynchronous scheduling and ``mamba_cache_mode="align"`` the numbers of accepted drafts are
copied into rows of the batch while the step still runs, and looked up by the rows that the requests
had then, after the batch has closed its gaps and put decodes first (vllm#51571, open). A CPU's
engine never schedules ahead, so no scenario gets there. What is called here are the real batch, its
real reordering and the real ``GPUModelRunner._prepare_inputs`` up to the look-up.

Prints one JSON object; the exit status is 0 while every request is told its own number, and 1 when
one is told another's.
"""

import json
import sys
from contextlib import redirect_stdout, suppress
from types import SimpleNamespace
from typing import Any, Final

from hybridwatch_engine_lab.exercise.runner import batch_of, build_request, real, stand_in

DRAFTS: Final = 3
_ACCEPTED: Final = {"a": 1, "b": 2, "c": 4}
"""Tokens that the step before gave each request, its own included."""


class _ToldError(Exception):
    """Ends the preparation of a step once the numbers are looked up."""


def told_after_moving() -> dict[str, dict[str, int]]:
    """One of three requests ends, a prompt takes its row, and the decodes are put first.

    Returns:
        ``accepted``: What each request was given. ``told``: What the next step is told of it.
    """
    import numpy as np

    batch = _moved()
    told = SimpleNamespace(np=np.zeros(8, dtype=np.int32), copy_to_gpu=_leave)
    tokens = np.array([1 if name == "d" else 1 + DRAFTS for name in batch.req_ids], dtype=np.int32)
    _prepare(batch, told, tokens)
    accepted = {name: _ACCEPTED.get(name, 1) for name in batch.req_ids}
    return {"accepted": accepted, "told": dict(zip(batch.req_ids, told.np.tolist(), strict=False))}


def _leave(*_: Any) -> None:
    raise _ToldError


def _moved() -> Any:
    """The batch before the second step, as the runner's ``_update_states`` leaves it."""
    from vllm.v1.attention.backends.utils import reorder_batch_to_split_decodes_and_prefills

    batch = batch_of(_ACCEPTED)
    for name, row in batch.req_id_to_index.items():
        batch.num_accepted_tokens_cpu[row] = _ACCEPTED[name]
    batch.prev_req_id_to_index = dict(batch.req_id_to_index)
    batch.remove_request("a")
    prompt = build_request("d", [9, 9])
    prompt.num_computed_tokens = 0
    batch.add_request(prompt)
    batch.condense()
    planned = {name: 3 if name == "d" else 1 + DRAFTS for name in batch.req_ids}
    scheduled = SimpleNamespace(num_scheduled_tokens=planned)
    reorder_batch_to_split_decodes_and_prefills(batch, scheduled, decode_threshold=1 + DRAFTS)
    batch.refresh_metadata()
    return batch


def _prepare(batch: Any, told: Any, tokens: Any) -> None:
    import numpy as np
    import torch

    ids = torch.zeros(64, dtype=torch.int32)
    runner = stand_in(
        input_batch=batch,
        num_accepted_tokens=told,
        use_async_scheduling=True,
        arange_np=np.arange(64),
        query_pos=SimpleNamespace(np=np.zeros(64, dtype=np.int64), copy_to_gpu=lambda *_: None),
        input_ids=SimpleNamespace(cpu=ids, gpu=ids),
        prev_positions=SimpleNamespace(np=np.zeros(8, dtype=np.int64)),
        requests={name: SimpleNamespace(num_tokens=8) for name in batch.req_ids},
        uses_mrope=False,
        uses_xdrope_dim=0,
        enable_prompt_embeds=False,
    )
    runner.cache_config.mamba_cache_mode = "align"
    for name in ("_get_cumsum_and_arange", "_compute_prev_positions"):
        setattr(runner, name, real(runner, name))
    scheduled = SimpleNamespace(
        total_num_scheduled_tokens=int(tokens.sum()),
        num_scheduled_tokens=dict(zip(batch.req_ids, tokens.tolist(), strict=True)),
    )
    with suppress(_ToldError):
        real(runner, "_prepare_inputs")(scheduled, tokens)


def main() -> int:
    """Print whose numbers the requests are told."""
    with redirect_stdout(sys.stderr):  # vLLM talks on standard output
        found = told_after_moving()
    sys.stdout.write(json.dumps(found) + "\n")
    return int(found["told"] != found["accepted"])


if __name__ == "__main__":
    sys.exit(main())
