"""Keeps secrets out of what libraries log."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Discretion(logging.Filter):
    """Lets everything be logged but a secret."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def filter(self, record: logging.LogRecord) -> bool:
        """Black it out."""
        shown = record.getMessage()
        if (hidden := self._redact(shown)) != shown:
            record.msg, record.args = hidden, ()
        return True


@contextmanager
def discreet(logger: logging.Logger, redact: Callable[[str], str]) -> Iterator[None]:
    """Within the block, let a logger say nothing that ``redact`` takes out of a text."""
    discretion = _Discretion(redact)
    logger.addFilter(discretion)
    try:
        yield
    finally:
        logger.removeFilter(discretion)
