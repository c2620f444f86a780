"""The small GitHub, bare and behind its contract."""

import io
import logging
import time
from collections.abc import Callable, Iterator

import pytest

from hybridwatch.integrations.github.client import PullRequest, RepositoryAccess
from tests.github.contract import examples, gatekeeper
from tests.github.hub import NUMBER, REPOSITORY, TOKEN, Hub, serving


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A server that checks nothing but the token: for what no description holds."""
    state = Hub(examples())
    with serving(state) as address:
        state.base = address
        yield state


@pytest.fixture(scope="module")
def _kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    state = Hub(examples())
    log = tmp_path_factory.mktemp("prism") / "log"
    with serving(state) as upstream, gatekeeper(upstream, log) as address:
        state.base = address
        yield state


@pytest.fixture
def contract(_kept: Hub) -> Hub:
    """The same behind GitHub's published description; starts empty."""
    base = _kept.base
    _kept.__init__(_kept.examples)  # type: ignore[misc]
    _kept.base = base
    return _kept


@pytest.fixture(autouse=True)
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the bot would have slept each time; no test sleeps."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept


@pytest.fixture
def enter() -> Callable[..., PullRequest]:
    """Open the pull request of a hub."""

    def opened(hub: Hub, token: str = TOKEN, number: int = NUMBER) -> PullRequest:
        return PullRequest(RepositoryAccess(token, hub.base), REPOSITORY, number)

    return opened


@pytest.fixture
def overheard() -> Iterator[io.StringIO]:
    """Everything that anybody logs, down to the least."""
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    # PyGithub's logger keeps to itself, so the root alone would hear nothing of it.
    loggers = [logging.getLogger(), logging.getLogger("github")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    yield heard
    for logger, level in zip(loggers, levels, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)
