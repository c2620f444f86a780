"""What all relations use: requests whose answers are known, scenes that repeat them, and breaks.

A *known* request has been answered alone. A *scene* answers known requests once more, in some
situation; what differs then is a break of the relation that the situation belongs to. A break is
tried again in simpler situations first, so that it is named for what is needed to see it.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from hybridwatch.server_check.answer import Answer
from hybridwatch.server_check.client import CheckClient, Request, RequestError
from hybridwatch.server_check.comparison import Likeness, Rule
from hybridwatch.server_check.differences import say_difference, show
from hybridwatch.server_check.prompts import Prompts, beginning, length
from hybridwatch.server_check.result import Break, CheckResult, Tally

_EXTRA: Final = 400
"""Requests that all breaks together may cost."""
_TRIES: Final = 2
"""Times that a smaller case is tried before it counts as whole: who shares a step is chance."""
_SHORTEST: Final = 4
_WITH_OTHERS: Final = frozenset({"company", "short", "parameters", "abort", "idle"})
"""Relations whose requests should be answered alone as before."""
_AS_THEY_ARE: Final = frozenset({"parts", "drift", "parameters"})
"""Relations whose prompts are not made shorter."""
_BESIDES: Final = frozenset({"abort", "idle"})
"""Relations that show nothing of their own where company does as much."""


def as_given(found: Answer) -> Answer:
    """Give an answer as it is."""
    return found


@dataclass(frozen=True, slots=True)
class Known:
    """A request and what it was answered alone, or what must come by another request.

    Attributes:
        before: Requests that must be answered before it, as they fill the cache.
        seconds: That the answer took.
        view: What of an answer to it can be compared.
    """

    request: Request
    answer: Answer
    before: tuple[Request, ...] = ()
    seconds: float = 0.0
    view: Callable[[Answer], Answer] = as_given


Scene = Callable[[Sequence[Known]], Awaitable[list[Answer | None]]]
"""Gives the answers to known requests in their order, ``None`` where there is none."""


class Session:
    """One check of one server.

    Attributes:
        client: Speaks to the server that is checked.
        reference: Speaks to the server whose answers count as right: the same one, or another
            against which it is checked.
        known: Ordinary requests, answered alone.
        short: The short ones among them.
        room: Tokens of a prompt with its answer that the server takes; 0 where it is not known.
        adapters: Names under which every server knows adapters of its model.
        parameters: Those that were tried, with the reason why the server does not heed them; empty
            where it does.
        longest_answer: Tokens that any request asks for at most.
        at_once: Requests that may be in flight.
        longest_prompt: Tokens that a prompt has at most.
        ends_at: When no further question is sent, by ``time.monotonic``.
    """

    def __init__(
        self,
        client: CheckClient,
        result: CheckResult,
        rng: random.Random,
        *,
        ends_at: float,
        at_once: int,
        pause_s: float,
        reference: CheckClient | None = None,
    ) -> None:
        self.client = client
        self.reference = reference or client
        self.result = result
        self.rng = rng
        self.rule = Rule(0.0)
        self.prompts = Prompts(rng, (), 1.0)
        self.known: list[Known] = []
        self.short: list[Known] = []
        self.adapters: list[str] = []
        self.parameters: dict[str, str] = {}
        self.room = 0
        self.longest_answer = 48
        self.longest_prompt = 32_768
        self.ends_at = ends_at
        self.at_once = at_once
        self.pause_s = pause_s
        self._extra = _EXTRA
        self._salts = count(1)
        self._run = rng.randrange(10**6)

    @property
    def is_pair(self) -> bool:
        """Whether one server is checked against another."""
        return self.reference is not self.client

    @property
    def clients(self) -> tuple[CheckClient, ...]:
        """The servers' clients, that of the reference first."""
        return (self.reference, self.client) if self.is_pair else (self.client,)

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self.ends_at

    def tally(self, relation: str) -> Tally:
        """Give what came of a relation so far, from now on one that was tried."""
        found = self.result.tallies[relation]
        found.tried = True
        return found

    def new_salt(self) -> str:
        """Give a salt that was never used."""
        return f"hybridwatch-{self._run}-{next(self._salts)}"

    def make_request(self, tokens: int, max_tokens: int) -> Request:
        """Make a new request of about so many prompt tokens, in a part of the cache of its own."""
        return Request(self.prompts.make(tokens), max_tokens, self.new_salt())

    def fitting(self, tokens: int) -> int:
        """Give so many tokens of a prompt, or as many as the servers take with an answer."""
        return max(1, min(tokens, self.room - self.longest_answer - 1)) if self.room else tokens

    async def learn(self, request: Request, before: tuple[Request, ...] = ()) -> Known:
        """Ask a request alone.

        Raises:
            RequestError, UnreachableError: There is no answer.
        """
        reply = await self.reference.ask_whole(request)
        return Known(request, reply.answers[0], before, reply.seconds)

    async def try_to_learn(self, request: Request) -> Known | None:
        """Ask a request alone; ``None`` where there is no answer."""
        try:
            return await self.learn(request)
        except RequestError:
            return None

    def draw(self, size: int) -> list[Known]:
        """Draw known requests, no more than may be in flight."""
        return self.rng.sample(self.known, min(size, len(self.known), self.at_once))

    def streamed_at_random(self, known: Known) -> Request:
        """Give a request of a scene: a new part of the cache, and streamed or not.

        A view may need the text, of which a stream's answer is without.
        """
        is_streamed = self.rng.random() < 0.5 and known.view is as_given
        return replace(known.request, salt=self.new_salt(), streamed=is_streamed)

    async def answer(self, request: Request) -> Answer | None:
        """Ask; ``None`` where there is no answer.

        The text of a stream is the relation *stream*'s business, where the tokens are known.
        """
        try:
            answer = await self.client.ask(request)
        except RequestError:
            return None
        return replace(answer, text=None) if request.streamed and answer.tokens else answer

    async def alone(self, items: Sequence[Known]) -> list[Answer | None]:
        """Ask known requests one by one, each as if it were new."""
        return [await self.answer(self.streamed_at_random(known)) for known in items]

    async def together(self, items: Sequence[Known]) -> list[Answer | None]:
        """Ask known requests at once, each as if it were new."""
        return await self.spread(items, 0.0)

    async def staggered(self, items: Sequence[Known]) -> list[Answer | None]:
        """Ask known requests while others of them are being answered."""
        return await self.spread(items, 0.8 * max((one.seconds for one in items), default=0.0))

    async def spread(self, items: Sequence[Known], seconds: float) -> list[Answer | None]:
        """Ask known requests, beginning at random within so many seconds."""

        async def one(known: Known) -> Answer | None:
            if seconds:
                await asyncio.sleep(self.rng.uniform(0, seconds))
            return await self.answer(self.streamed_at_random(known))

        return await asyncio.gather(*(one(known) for known in items))

    async def hold(self, relation: str, items: Sequence[Known], scene: Scene) -> None:
        """Play a scene, and note for a relation which answers are no longer the known ones."""
        self.tally(relation)
        await self.note(relation, items, await scene(items), scene)

    async def note(
        self,
        relation: str,
        items: Sequence[Known],
        found: Sequence[Answer | None],
        scene: Scene,
    ) -> None:
        """Note which answers that a scene gave are no longer the known ones."""
        tally = self.tally(relation)
        for at, (known, answer) in enumerate(zip(items, found, strict=True)):
            if answer is None:
                continue
            tally.checked += 1
            compared = self.rule.compare(known.answer, known.view(answer))
            tally.within_rounding += compared.likeness is Likeness.ROUNDING
            tally.undecided += compared.likeness is Likeness.UNKNOWN
            if compared.likeness is Likeness.DIFFERENT:
                await self._explain(relation, items, at, scene, known.view(answer))

    async def _explain(
        self, relation: str, items: Sequence[Known], at: int, scene: Scene, found: Answer
    ) -> None:
        """Name a break for the simplest situation that shows it, and shrink what shows it."""
        known = items[at]
        others = [one for number, one in enumerate(items) if number != at]
        named, simplest = await self._simplest(relation, known, others, scene)
        tally = self.tally(named)
        if simplest == self.alone:  # it is named, and would be in every scene from now on
            self.known = [one for one in self.known if one is not known]
            self.short = [one for one in self.short if one is not known]
        if tally.is_full:
            tally.broken += 1
            return

        async def fails(few: Sequence[Known]) -> Answer | None:
            return await self.failing([known, *few], simplest)

        if simplest == self.alone or named == "idle":
            others = []
        elif others and not tally.breaks:
            least = int(named in _WITH_OTHERS)
            others, found = await self._fewest(others, least, fails, found)
        if not (known.before or tally.breaks or named in _AS_THEY_ARE):
            known, found = await self._shortest(known, others, simplest, found)
        tally.add_break(
            Break(
                say_difference(
                    named, self.rule, known.request.prompt, (known.answer, found), len(others)
                ),
                show(known.answer),
                show(found),
                self.commands(named, [known, *others]),
            )
        )

    async def _simplest(
        self, relation: str, known: Known, others: Sequence[Known], scene: Scene
    ) -> tuple[str, Scene]:
        """Find the simplest situation in which a known request is answered otherwise."""
        if not self.spend(1):
            return relation, scene
        if self.is_pair:
            if relation == "tokens" or await self.failing([known], self.alone):
                return "tokens", self.alone
        elif relation in _WITH_OTHERS and await self.failing([known], self.alone):
            if known.view is not as_given:
                return relation, self.alone
            # Without a salt, a prompt that was sent once is in the cache.
            return ("drift" if self.client.takes_salt else "cached"), self.alone
        is_companion = (relation == "short" and known not in self.short) or (
            relation == "long" and known in self.known
        )
        if is_companion or (relation in _BESIDES and self.result.tallies["company"].broken):
            return "company", scene
        if relation in _BESIDES and others:
            for _ in range(_TRIES):
                if self.spend(len(others) + 1) and await self.failing(
                    [known, *others], self.together
                ):
                    return "company", self.together
        return relation, scene

    async def failing(self, items: Sequence[Known], scene: Scene) -> Answer | None:
        """Play a scene; the answer to its first request if it is another than the known one."""
        given, *_ = await scene(items)
        if given is None:
            return None
        answer = items[0].view(given)
        is_other = self.rule.compare(items[0].answer, answer).likeness is Likeness.DIFFERENT
        return answer if is_other else None

    async def _fewest(
        self,
        others: list[Known],
        least: int,
        fails: Callable[[Sequence[Known]], Awaitable[Answer | None]],
        found: Answer,
    ) -> tuple[list[Known], Answer]:
        """Halve the companions, down to the least, as long as the break still shows."""
        while len(others) > least:
            middle = len(others) // 2
            halves = (others[:middle], others[middle:]) if middle else ([],)
            for half in halves * _TRIES:
                if not self.spend(len(half) + 1):
                    return others, found
                if answer := await fails(half):
                    others, found = half, answer
                    break
            else:
                break
        return others, found

    async def _shortest(
        self, known: Known, others: Sequence[Known], scene: Scene, found: Answer
    ) -> tuple[Known, Answer]:
        """Halve a prompt as long as the break still shows."""
        while length(known.request.prompt) >= _SHORTEST and self.spend(len(others) + 2):
            prompt = beginning(known.request.prompt, 0.5)
            request = replace(known.request, prompt=prompt, salt=self.new_salt())
            shorter = await self.try_to_learn(request)
            answer = shorter and await self.failing([shorter, *others], scene)
            if not shorter or not answer:
                break
            known, found = shorter, answer
        return known, found

    def spend(self, requests: int) -> bool:
        """Take so many requests from what breaks may cost; false when there are none left."""
        if self._extra < requests:
            return False
        self._extra -= requests
        return True

    def commands(self, relation: str, items: Sequence[Known]) -> tuple[str, ...]:
        """Write the requests of a scene for a shell: what fills the cache, then all at once.

        What should not come from the cache follows with another salt.
        """
        before = [self.client.curl(one) for known in items for one in known.before]
        if self.is_pair:
            before.insert(0, self.reference.curl(items[0].request))
        lines = [self.client.curl(known.request) for known in items]
        if relation == "cached":
            cold = replace(items[0].request, salt=self.new_salt())
            lines = [*[*lines[1:], lines[0]] * 2, self.client.curl(cold)]
        elif len(lines) > 1:
            lines = [*(f"{line} &" for line in lines[1:]), lines[0], "wait"]
        return (*before, *lines)
