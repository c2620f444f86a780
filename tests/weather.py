"""Failures of a service: some requests are refused, of others only the answer is lost."""

import random
import threading
from dataclasses import dataclass, field
from enum import Enum


class Mood(Enum):
    FINE = "fine"
    BUSY = "busy"
    """Answered 503, and nothing happened."""
    LOST = "lost"
    """Answered 502, and yet it happened."""
    CUT = "cut"
    """It happened, and there was no answer."""


@dataclass
class Weather:
    """Gives each request its fate."""

    share: float = 0.0
    seed: int = 1
    failed: int = 0
    requests: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._drawn = random.Random(self.seed)

    def mood(self) -> Mood:
        with self._lock:
            self.requests += 1
            if self._drawn.random() >= self.share:
                return Mood.FINE
            self.failed += 1
            return self._drawn.choice([Mood.BUSY, Mood.LOST, Mood.CUT])
