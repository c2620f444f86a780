"""What vLLM's benchmark client saw, as samples: the same whether we drove it or found its file.

Its JSON keeps the time to the first token, the gaps after it and the number of tokens of every
request. The other latencies are put together here as the client does it for its own statistics
(``vllm/benchmarks/serve.py``).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from hybridwatch.records.run import Sample

CLOCK_DIGITS: Final = 9
"""The client's clock counts nanoseconds; digits beyond are the noise of its subtraction."""


def latencies(
    firsts: Sequence[float], gaps: Sequence[Sequence[float]], lengths: Sequence[float]
) -> Iterator[Sample]:
    """Give every latency of the requests of one trial, in seconds.

    ``firsts`` is the time to the first token, ``gaps`` the times between what came after,
    ``lengths`` the output tokens, each by request. There is a sample for each metric, without
    values where no request has any.
    """
    requests = list(zip(firsts, gaps, lengths, strict=True))
    series = {
        "ttft": firsts,
        "tpot": [sum(waits) / (length - 1) for _, waits, length in requests if length > 1],
        "itl": [wait for waits in gaps for wait in waits],
        "e2el": [first + sum(waits) for first, waits, _ in requests],
    }
    for name, values in series.items():
        yield Sample(name, tuple(round(value, CLOCK_DIGITS) for value in values))


def accepted_drafts(length: float, rates: Sequence[float]) -> Iterator[Sample]:
    """Give what became of the drafts.

    ``length`` is how many tokens a step gave; ``rates`` the share of the drafts accepted, by
    position, from 0 to 1.
    """
    yield Sample("acceptance_length", (length,))
    for position, rate in enumerate(rates, start=1):
        yield Sample(f"acceptance_rate.position_{position}", (rate,))
