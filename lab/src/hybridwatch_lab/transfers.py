"""What a decode server answers when the transfer of a prompt's state fails or brings another's.

``python -m hybridwatch_lab.transfers BUILD`` asks a real pair with NIXL between the two servers. It
gives the decode server the handle that the prefill server made of a prompt, as a router does, and
damages it, or gives it again. A server may answer rightly or with an error. vllm#52234 reports
HTTP 200 with the answer to another prompt.
"""

import random
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.cli.subjects import chosen, takes_build
from hybridwatch.cli.terminal import say
from hybridwatch.engines.builds import BuildRequest, parse_label
from hybridwatch.engines.check import require_installed
from hybridwatch.engines.pair_proxy import FOR_DECODER
from hybridwatch.engines.server import open_http
from hybridwatch.errors import EngineError
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.testbed import make_ready
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home
from hybridwatch.system.stopping import stoppable

SCENARIO: Final = "smoke/nixl-disagg"
LENGTH: Final = 90
"""Tokens of a prompt, all of them below one block, so that all handles have one form."""
_ANSWER: Final = 24
_BLOCKS: Final = 40
"""So few that a prompt's are soon given to others; one has four here, of four groups."""
_BETWEEN: Final = 2 * _BLOCKS // 4
"""Prompts after which those of an earlier one are another's."""
_NOWHERE: Final = 10**6
"""A block that no server has."""
_TIMEOUT_S: Final = 60.0

Handle = Mapping[str, Any]


class Outcome(Enum):
    """What became of a request."""

    RIGHT = "right"
    ERROR = "error"
    OTHERS = "HTTP 200 with the answer to another prompt"
    WRONG = "HTTP 200 with a wrong answer"


@dataclass(slots=True)
class PairAsker:
    """Speaks with both servers of a pair.

    Attributes:
        prompts: Makes a new prompt each time, of one length and with one last token, so that an
            answer from another prompt's state is the whole answer to that prompt.
    """

    prefill: str
    decode: str
    model: str
    prompts: Iterator[str] = field(default_factory=lambda: _prompts(LENGTH))

    def compute(self, prompt: str) -> Handle:
        """Have a prompt computed by the prefill server; give what names its state."""
        body = self._ask(self.prefill, prompt, max_tokens=1, kv_transfer_params=FOR_DECODER)
        if body is None:
            raise EngineError("the prefill server: expected a handle, found an error")
        handle: Handle = body["kv_transfer_params"]
        return handle

    def answer(self, prompt: str, handle: Handle) -> str | None:
        """Give the decode server's answer from a state; None for an error."""
        return _text(self._ask(self.decode, prompt, kv_transfer_params=handle))

    def outcome(self, prompt: str, handle: Handle, other: str) -> Outcome:
        """Say what an answer is, of which ``other`` is the prompt that it may belong to."""
        got = self.answer(prompt, handle)
        if got is None:
            return Outcome.ERROR
        # The prefill server's own answers, from no transfer.
        right, others = (_text(self._ask(self.prefill, one)) for one in (prompt, other))
        known = {others: Outcome.OTHERS, right: Outcome.RIGHT}
        return known.get(got, Outcome.WRONG)

    def _ask(self, url: str, prompt: str, **more: Any) -> Any:
        body = {"model": self.model, "prompt": prompt, "max_tokens": _ANSWER, "temperature": 0}
        with open_http(url, _TIMEOUT_S) as client:
            answer = client.post("/v1/completions", json=body | {"ignore_eos": True} | more)
        return answer.json() if answer.status_code == HTTPStatus.OK else None


def _text(body: Any) -> str | None:
    return None if body is None else str(body["choices"][0]["text"])


def _prompts(length: int) -> Iterator[str]:
    letters = random.Random(52234)  # noqa: S311 - made-up text
    while True:
        yield "".join(letters.choices("abcdefghijklm ", k=length - 1)) + "a"


def as_it_is(asker: PairAsker) -> Outcome:
    """The handle of the prompt, once."""
    prompt, other = next(asker.prompts), next(asker.prompts)
    return asker.outcome(prompt, asker.compute(prompt), other)


def fails(asker: PairAsker) -> Outcome:
    """A handle whose blocks no server has: NIXL refuses the transfer."""
    prompt, other = next(asker.prompts), next(asker.prompts)
    handle = asker.compute(prompt)
    nowhere = [[_NOWHERE for _ in group] for group in handle["remote_block_ids"]]
    return asker.outcome(prompt, {**handle, "remote_block_ids": nowhere}, other)


def twice(asker: PairAsker) -> Outcome:
    """A handle that was used a moment before, as a router that retries does."""
    prompt, other = next(asker.prompts), next(asker.prompts)
    handle = asker.compute(prompt)
    asker.answer(prompt, handle)
    return asker.outcome(prompt, handle, other)


def late(asker: PairAsker) -> Outcome:
    """A handle that was used before, and whose blocks have been given to another prompt."""
    prompt = between = next(asker.prompts)
    handle = asker.compute(prompt)
    asker.answer(prompt, handle)
    for _ in range(_BETWEEN):
        between = next(asker.prompts)
        newer = asker.compute(between)
        asker.answer(between, newer)
        if newer["remote_block_ids"] == handle["remote_block_ids"]:
            break
    # Else several prompts have them by now.
    return asker.outcome(prompt, handle, between)


def of_another(asker: PairAsker) -> Outcome:
    """The handle of another prompt: the router's mistake, which no server looks for."""
    prompt, other = next(asker.prompts), next(asker.prompts)
    return asker.outcome(prompt, asker.compute(other), other)


CASES: Final = (as_it_is, fails, twice, late, of_another)


@contextmanager
def open_pair(scenario: Scenario, side: BuildRequest) -> Iterator[PairAsker]:
    """Start the pair of a scenario with a cache of few blocks."""
    engine = scenario.engine.model_copy(update={"num_gpu_blocks_override": _BLOCKS})
    small = scenario.model_copy(update={"engine": engine})
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hybridwatch-")))
        pool = EnginePool(small, (side,), home() / "models", work, say)
        servers = stack.enter_context(pool).make_ready(0).server.servers
        yield PairAsker(servers[0].url, servers[1].url, scenario.model)


@click.command("python -m hybridwatch_lab.transfers")
@takes_build(default="cpu-0.32.0+v2")
def main(*, build: str) -> None:
    """Ask a pair of BUILD with handles that are damaged, late, used twice or another prompt's."""
    side = parse_label(build)
    require_installed(side.spec)
    (scenario,) = chosen([SCENARIO], [build])
    with stoppable(), ExitStack() as stack:
        make_ready(scenario, (side,), home() / "models")
        asker = stack.enter_context(open_pair(scenario, side))
        for case in CASES:
            say(f"{case.__name__}: {case(asker).value}")


if __name__ == "__main__":
    main()
