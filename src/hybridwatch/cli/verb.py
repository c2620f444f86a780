"""A verb as the command line lists it, before anything of it is loaded."""

from typing import NamedTuple


class Verb(NamedTuple):  # a dataclass would import more than the list of verbs does
    """A verb, ours or what another distribution names in the group ``hybridwatch.commands``.

    Attributes:
        help: Its line in the list.
        module: Where its ``command`` is.
        needs: What brings all that it imports: a distribution, with its extra.
        after: The verb behind which it is listed; last of all when empty.
    """

    help: str
    module: str
    needs: str
    after: str = ""
