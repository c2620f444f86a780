"""Topics, messages and channels for the tests, as short as can be said."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hybridwatch.analysis.alerts import Since
from hybridwatch.analysis.policy import Action
from hybridwatch.integrations.notify.channels import Channels, read_channels
from hybridwatch.integrations.notify.news import (
    Content,
    DeliveryState,
    Message,
    MessagePart,
    News,
    Topic,
    TopicStatus,
)

NOW = datetime(2026, 11, 24, 3, 0, tzinfo=UTC)
SHOWN = MessagePart("ttft", "median", "regression", 0.541, "+54.1 %")
CONTENT = Content(
    what="Slower",
    detail="ttft +54.1 % and 1 more metric",
    scenario="smoke/dummy-run",
    testbed="epyc-4c",
    rank="block",
    area="speed",
    baseline="cpu-0.27.1",
    contender="cpu-0.28.0",
    run="0badcafe",
    since="2026-11-21 09:15 UTC",
    metrics=(SHOWN, MessagePart("itl", "p99", "missing", None, "-")),
    link="https://hybridwatch.example.org/alerts?alert=" + "ab" * 16,
)
HOSTILE = (
    "<script>alert(1)</script> *b* @all <!here> [x](javascript:y) /close `x` & #1\n\u202e/assign"
)


def a_topic(standing: TopicStatus = TopicStatus.OPEN, **changes: Any) -> Topic:
    facts: dict[str, Any] = {
        "key": "ab" * 16,
        "standing": standing,
        "rank": Action.BLOCK,
        "scenarios": ("smoke/dummy-run",),
        "testbed": "epyc-4c",
        "is_gap": False,
        "seen": '"as it was"',
        "since": lambda _: Since.NOTHING,
        "content": lambda: CONTENT,
    }
    return Topic(**{**facts, **changes})


def told(standing: TopicStatus = TopicStatus.OPEN, content: Content = CONTENT) -> DeliveryState:
    return DeliveryState(standing, '"as it was"', content, 1)


def a_message(news: News = News.OPENED, number: int = 1, **changes: Any) -> Message:
    facts: dict[str, Any] = {
        "id": f"{number:032x}",
        "channel": "team",
        "topic": "ab" * 16,
        "number": number,
        "news": news,
        "content": CONTENT,
        "made_at": NOW,
    }
    return Message(**{**facts, **changes})


def channels_of(folder: Path, text: str) -> Channels:
    """Read channels written as in a file."""
    path = folder / "notify.toml"
    path.write_text(text)
    return read_channels(path)
