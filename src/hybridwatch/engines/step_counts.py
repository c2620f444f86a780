"""How many steps an engine made, and for how many requests: from its own ``/metrics``.

vLLM keeps these totals anyhow (``vllm/v1/metrics/loggers.py``); they are read while the engine is
idle, so that nothing is added to what is timed.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NamedTuple

import httpx

from hybridwatch.engines.deployment import Server
from hybridwatch.engines.server import NO_CERTIFICATES, EngineServer

_TIMEOUT_S: Final = 30.0

_STEPS: Final = "vllm:iteration_tokens_total_count"
"""Observed once for each step that gave a token to some request."""
_FIRST_TOKENS: Final = "vllm:time_to_first_token_seconds_count"
_LATER_TOKENS: Final = "vllm:inter_token_latency_seconds_count"
"""These two are observed once for each request of such a step, however many tokens it got."""
_TOKENS: Final = "vllm:generation_tokens_total"
_PREEMPTIONS: Final = "vllm:num_preemptions_total"


@dataclass(frozen=True, slots=True)
class StepCounts:
    """What an engine has done, in all since it came up or between two looks.

    Attributes:
        steps: Engine steps that gave tokens. One that only computed a part of a prompt, or a dummy
            run, is not among them.
        shares: Requests that got tokens in a step, added up over the steps.
        tokens: Tokens they got, accepted drafts included.
        preemptions: Times that a request gave its cache blocks up for others, to begin again later.
    """

    steps: int
    shares: int
    tokens: int
    preemptions: int

    def since(self, earlier: "StepCounts") -> "StepCounts":
        """What came after an earlier look at the same engine."""
        return StepCounts(
            self.steps - earlier.steps,
            self.shares - earlier.shares,
            self.tokens - earlier.tokens,
            self.preemptions - earlier.preemptions,
        )


def read_step_counts(server: Server) -> StepCounts | None:
    """Ask the engine that gives the answers for its totals; of a pair, that is the decode engine.

    Returns:
        ``None`` when they cannot be had: the engine keeps no such statistics, or it has several
        front ends (vLLM gives each data-parallel rank one), and a step would be counted by each of
        them that got a token out of it.

    Raises:
        EngineError: It does not answer.
    """
    if server.launch.engine.data_parallel_size > 1:
        return None
    return parse_step_counts(_read_metrics(server.servers[-1]))


def parse_step_counts(text: str) -> StepCounts | None:
    """Read the totals out of the answer to ``/metrics``, in Prometheus' text format.

    ``None`` when one of them is not there.
    """
    wanted = (_STEPS, _FIRST_TOKENS, _LATER_TOKENS, _TOKENS, _PREEMPTIONS)
    found = _totals(text, wanted)
    if len(found) < len(wanted):
        return None
    shares = found[_FIRST_TOKENS] + found[_LATER_TOKENS]
    return StepCounts(found[_STEPS], shares, found[_TOKENS], found[_PREEMPTIONS])


class Totals(NamedTuple):
    """What the engine that gives the answers has done since it is up.

    Attributes:
        preemptions: Requests that gave their blocks up for others.
    """

    steps: int
    preemptions: int


def read_totals(server: Server) -> Totals:
    """Ask for the totals of an engine that keeps statistics; 0 of one that does not.

    Raises:
        EngineError: It does not answer.
    """
    found = _totals(_read_metrics(server.servers[-1]), (_STEPS, _PREEMPTIONS))
    return Totals(found.get(_STEPS, 0), found.get(_PREEMPTIONS, 0))


def _totals(text: str, wanted: Collection[str]) -> dict[str, int]:
    """Add up the samples of each of these names; one that has none is left out."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        # Sample lines are "name{labels} value"; a label's text may hold blanks, but no brace ends
        # a name before the first one.
        name = line.partition("{")[0]
        if name in wanted:
            found[name] = found.get(name, 0) + int(float(line.rpartition(" ")[2]))
    return found


def _read_metrics(server: EngineServer) -> str:
    try:
        answer = httpx.get(
            f"{server.url}/metrics", timeout=_TIMEOUT_S, trust_env=False, verify=NO_CERTIFICATES
        )
        return answer.raise_for_status().text
    except httpx.HTTPError as error:
        raise server.error(f"no answer from the engine to /metrics: {error}") from error
