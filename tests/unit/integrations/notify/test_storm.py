"""Services of which 30 % of the calls fail, and a process that is killed again and again.

Each round a night brings good or bad news in one of three scenarios; a call that is to tell it is
killed somewhere, and others follow until nothing waits. Then every service must have exactly the
news that the nights gave, in their order: each once by its id, and each once in the issues.
"""

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from hybridwatch.records.identity import ScenarioRef
from hybridwatch.records.store import write_run
from tests.builders import STARTED, a_run
from tests.github.contract import examples
from tests.github.hub import REPOSITORY, TOKEN, Hub
from tests.github.hub import serving as serving_hub
from tests.unit.integrations.notify.services import PROJECT, Services, mail_server, serving
from tests.unit.pages.suite_stores import FIX, UPGRADE
from tests.waiting import LIMIT_S

ROOT: Final = Path(__file__).parents[4]
SCENARIOS: Final = ("smoke/one", "smoke/two", "smoke/three")
METRIC: Final = "contract.padded_rows_prefilling"
SHARE: Final = 0.3
STEPS: Final = 300_000
"""About as many as a call makes that has something to tell."""
FILE: Final = """
[[slack]]
name = "slack"
gaps = false
url_from = "T_SLACK"

[[webhook]]
name = "hook"
gaps = false
url_from = "T_HOOK"
secret_from = "T_SECRET"

[[email]]
name = "mail"
gaps = false
host = "127.0.0.1"
port = {port}
security = "none"
sender = "bot@example.org"
to = ["team@example.org"]

[[github]]
name = "github"
gaps = false
repository = "{repository}"
token_from = "T_GITHUB"
api = "{hub}"

[[gitlab]]
name = "gitlab"
gaps = false
project = "{project}"
token_from = "T_GITLAB"
url = "{gitlab}"
"""


def measure(results: Path, night: int, scenario: str, broken: float) -> None:
    """Store a run of one contract, which is exact: no chance makes news of its own."""
    run = a_run(
        {METRIC: (0.0, 0.0)},
        {METRIC: (broken, broken)},
        id=f"{night:08x}",
        started_at=STARTED + timedelta(days=night),
        scenario=ScenarioRef(scenario, 1, "d" * 64, FIX),
        builds=UPGRADE,
    )
    write_run(results, run)


@dataclass
class World:
    """The services, the process that starts calls, and what the nights gave."""

    results: Path
    services: Services
    hub: Hub
    calls: subprocess.Popen[str]
    drawn: random.Random
    expected: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    bad: dict[str, bool] = field(default_factory=dict)
    nights: int = 0
    killed: int = 0

    def night(self) -> None:
        """Measure one scenario, for better or worse."""
        scenario = self.drawn.choice(SCENARIOS)
        is_bad = self.drawn.random() < 0.5
        self.nights += 1
        measure(self.results, self.nights, scenario, 7.0 if is_bad else 0.0)
        was_bad = self.bad.get(scenario, False)
        if is_bad and not was_bad:
            self.expected[scenario].append("back" if self.expected[scenario] else "opened")
        elif was_bad and not is_bad:
            self.expected[scenario].append("recovered")
        self.bad[scenario] = is_bad

    def start(self, last_step: int = 0) -> int:
        """Start a call, which may kill itself at a step, and give its process id."""
        return self._ask(str(last_step))

    def end(self) -> int:
        """Wait for its end, and give its exit status."""
        return self._ask("")

    def _ask(self, word: str) -> int:
        assert self.calls.stdin is not None
        assert self.calls.stdout is not None
        self.calls.stdin.write(f"{word}\n")
        self.calls.stdin.flush()
        return int(self.calls.stdout.readline())

    def tell(self) -> None:
        """Call until nothing waits."""
        for _ in range(50):
            self.start()
            status = self.end()
            assert status in {0, 1}, "a call that was not killed ended otherwise"
            if status == 0:
                return
        pytest.fail("something still waits after 50 calls")

    def kill_in_a_request(self) -> None:
        """Kill a call when a service has served it and not answered yet."""
        left = self.drawn.randint(1, 6)
        pid = threading.Event()
        found: list[int] = []

        def strike() -> None:
            nonlocal left
            left -= 1
            if left == 0 and pid.wait(LIMIT_S):
                os.kill(found[0], signal.SIGKILL)

        self.services.after_request = self.hub.after_request = strike
        found.append(self.start())
        pid.set()
        self.killed += self.end() == -signal.SIGKILL
        self.services.after_request = self.hub.after_request = None

    def kill_at_a_step(self) -> None:
        """Kill a call wherever it is."""
        self.start(self.drawn.randint(1, STEPS))
        self.killed += self.end() == -signal.SIGKILL


@pytest.fixture
def world(tmp_path, place) -> Iterator[World]:
    """Everything fails now and then, from the first request on; SQLite, then PostgreSQL."""
    drawn = random.Random(20261124)
    with ExitStack() as stack:
        services = stack.enter_context(serving(Services()))
        stack.enter_context(mail_server(services))
        hub = Hub(examples())
        hub.base = stack.enter_context(serving_hub(hub))
        file = tmp_path / "notify.toml"
        file.write_text(
            FILE.format(
                port=services.smtp_port,
                repository=REPOSITORY,
                hub=hub.base,
                project=PROJECT,
                gitlab=services.url,
            )
        )
        results = tmp_path / "results"
        measure(results, 0, "smoke/before", 0.0)
        calls = stack.enter_context(
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.unit.integrations.notify.calls",
                    str(results),
                    str(file),
                ],
                cwd=ROOT,
                env={**os.environ, **services.variables(), "T_GITHUB": TOKEN},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        services.weather.share = hub.weather.share = SHARE
        try:
            yield World(results, services, hub, calls, drawn)
        finally:
            assert calls.stdin is not None
            calls.stdin.close()
            calls.wait()


def once(ids: list[str]) -> list[str]:
    """Leave out what came again."""
    return list(dict.fromkeys(ids))


def check_webhook(world: World) -> None:
    """What a receiver sees that knows an id again."""
    seen: dict[str, tuple[str, str]] = {}
    for event in world.services.events:
        news = event["type"].rpartition(".")[2]
        fact = (event["data"]["scenario"], news)
        assert seen.setdefault(event["id"], fact) == fact, "one id, two things"
    told: dict[str, list[str]] = defaultdict(list)
    for scenario, news in seen.values():
        told[scenario].append(news)
    assert told == {name: news for name, news in world.expected.items() if news}


def check_headlines(world: World, headlines: dict[str, str]) -> None:
    """Hold headlines by id against what was to be told."""
    leads = {"opened": "A contract broke in", "back": "Back: a", "recovered": "Recovered: a"}
    wanted = Counter(
        (scenario, news) for scenario, all_news in world.expected.items() for news in all_news
    )
    found = Counter(
        (text.rpartition(" in ")[2], next(n for n, lead in leads.items() if text.startswith(lead)))
        for text in headlines.values()
    )
    assert found == wanted


def check_issues(world: World, titles: list[str], open_: list[bool], said: list[list[str]]) -> None:
    """One issue for each alert, as its last news says, with a comment for each but the first."""
    names = [title.rpartition(" in ")[2] for title in titles]
    assert sorted(names) == sorted(name for name, news in world.expected.items() if news)
    for name, is_open, comments in zip(names, open_, said, strict=True):
        news = world.expected[name]
        assert is_open == world.bad[name]
        leads = {"back": "**Back: ", "recovered": "**Recovered: "}
        assert [c[: len(leads[n])] for c, n in zip(comments, news[1:], strict=True)] == [
            leads[n] for n in news[1:]
        ]


def check_all(world: World) -> None:
    services, hub = world.services, world.hub
    check_webhook(world)
    check_headlines(world, {one["blocks"][0]["block_id"]: one["text"] for one in services.slack})
    subjects = {one["Message-ID"]: one["Subject"] for one in services.mails}
    check_headlines(
        world, {key: str(text).removeprefix("hybridwatch: ") for key, text in subjects.items()}
    )
    check_issues(
        world,
        [one["title"] for one in hub.issues],
        [one["state"] == "open" for one in hub.issues],
        [hub.said_on(one["number"]) for one in hub.issues],
    )
    check_issues(
        world,
        [one["title"] for one in services.issues],
        [one["state"] == "opened" for one in services.issues],
        [services.said_on(one["iid"]) for one in services.issues],
    )


def play(world: World, kills: int) -> None:
    """Play nights until so many calls were killed, and some requests failed."""
    number = 0
    while world.killed < kills or world.services.weather.failed < kills:
        number += 1
        assert number < 20 * kills
        world.night()
        if number % 2:
            world.kill_at_a_step()
        else:
            world.kill_in_a_request()
        world.tell()


def test_each_news_is_reported_once_and_none_is_lost(world) -> None:
    play(world, 4)
    check_all(world)
    sent = len(world.services.slack)
    world.tell()
    assert len(world.services.slack) == sent, "silent when nothing changed"


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.slow  # the same as above, with as many kills as make sure of it
@pytest.mark.timeout(1800)
def test_fifty_kills_lose_nothing_and_double_nothing(world) -> None:
    play(world, 50)
    check_all(world)
    assert sum(map(len, world.expected.values())) >= 20


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_news_that_was_lost_or_told_twice_would_be_seen(world) -> None:
    """Planted: one event taken away, one told again under another id, one issue too many."""
    while not world.expected:
        world.night()
    world.tell()
    check_all(world)
    event = world.services.events[-1]
    world.services.events[:] = [one for one in world.services.events if one["id"] != event["id"]]
    with pytest.raises(AssertionError):
        check_webhook(world)
    world.services.events += [event, {**event, "id": "another"}]
    with pytest.raises(AssertionError):
        check_webhook(world)
    world.hub.issues.append(world.hub.issues[0])
    with pytest.raises(AssertionError):
        check_all(world)
