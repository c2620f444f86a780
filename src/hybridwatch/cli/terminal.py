"""A console that is as loud as its terminal may be."""

import os

import rich.console


class Console(rich.console.Console):
    """A console for people; where ``NO_COLOR`` is set, without bold and dim as well.

    Args:
        stderr: Whether it writes there.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        plain = bool(os.environ.get("NO_COLOR"))
        super().__init__(stderr=stderr, color_system=None if plain else "auto")

    def on_broken_pipe(self) -> None:
        """Leave it to ``main`` to end, as for whatever is printed without a console.

        Raises:
            BrokenPipeError: Always.
        """
        raise BrokenPipeError
