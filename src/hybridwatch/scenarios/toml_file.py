"""What can be wrong with a TOML file, in one form of message: file, key, expected, found."""

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ValidationError

from hybridwatch.errors import HybridwatchError
from hybridwatch.scenarios.validation_text import explain


@contextmanager
def refusing_toml(
    path: Path, model: type[BaseModel], error: type[HybridwatchError], name: Path | None = None
) -> Iterator[None]:
    """Turn what reading and checking a file raises into lines for a person.

    Args:
        path: The file that is read within.
        model: The type that it is checked by within.
        error: What is raised.
        name: How its lines call the file; by its path when not given.

    Raises:
        HybridwatchError: The file cannot be read, is not TOML, or the model refused it; then one
            line for each wrong key.
    """
    called = name or path
    try:
        yield
    except OSError as failure:
        raise error(f"{path}: cannot be read: {failure.strerror}") from failure
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as failure:
        raise error(f"{called}: not TOML: {failure}") from None
    except ValidationError as failure:
        lines = explain(model, failure)
        raise error("\n".join(f"{called}: {line}" for line in lines)) from None
