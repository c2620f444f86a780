"""``notify.toml``: who gets which news, and where; secrets stay in environment variables."""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, create_model, model_validator

from hybridwatch.analysis.policy import ANY, Action, covers
from hybridwatch.errors import NotifyError
from hybridwatch.scenarios.validation import Part, quoted, refuse, refusing_toml
from hybridwatch.system.home import loaded

CHANNELS_FILE: Final = "notify.toml"
"""In the home, when no other one is named."""
KINDS: Final = ("slack", "webhook", "email", "github", "gitlab")

URL: Final = r"https://[^\s/@]+|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?"
"""Only to this machine without encryption."""
_Name = Annotated[
    str, Field(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$", max_length=64, description="a name")
]
_Text = Annotated[str, Field(pattern=r"\S", description="a text")]
_Variable = Annotated[
    str,
    Field(
        pattern=r"^[A-Z_][A-Z0-9_]*$",
        description="the name of an environment variable",
        json_schema_extra={"writeOnly": True},
    ),
]
_Url = Annotated[str, Field(pattern=rf"^({URL})(/\S*)?$", description="an address with https://")]
_Address = Annotated[
    str, Field(pattern=r"^[^\s@<>,;]+@[^\s@<>,;]+$", description="an address such as a@b.org")
]
_Label = Annotated[
    str, Field(pattern=r"^[^,\s][^,\n]*$", max_length=50, description="a label, without commas")
]
_Wanted = Annotated[list[_Text], Field(min_length=1)]


class Channel(Part):
    """What every channel has: a name, and what it wants to hear of."""

    name: _Name
    rank: Literal["warn", "block"] = "warn"
    scenarios: _Wanted = Field(default_factory=lambda: [ANY])
    testbeds: _Wanted = Field(default_factory=lambda: [ANY])
    gaps: bool = True

    def wants(self, rank: Action, scenarios: Sequence[str], testbed: str) -> bool:
        """Whether it wants to hear of what was just found, in no scenario for a whole machine."""
        ranked = self.rank == "warn" or rank is Action.BLOCK
        here = not scenarios or any(
            wanted == ANY or covers(wanted, one) for wanted in self.scenarios for one in scenarios
        )
        return ranked and here and any(fnmatchcase(testbed, one) for one in self.testbeds)


class Slack(Channel):
    """``[[slack]]``: an incoming webhook."""

    url_from: _Variable


class Webhook(Channel):
    """``[[webhook]]``: a server of the user's own that takes CloudEvents."""

    url_from: _Variable
    secret_from: _Variable


class Email(Channel):
    """``[[email]]``: a mail server."""

    host: _Text
    port: Annotated[int, Field(ge=1, le=65535)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str = ""
    password_from: _Variable | None = None
    sender: _Address
    to: Annotated[list[_Address], Field(min_length=1)]

    @model_validator(mode="after")
    def _keeps_the_password(self) -> Self:
        if self.security == "none" and self.password_from is not None:
            refuse(("security", 'expected "starttls" or "tls" with password_from, found "none"'))
        if (self.password_from is None) is not (self.user == ""):
            refuse(("user", "expected together with password_from, found one without the other"))
        return self


class Github(Channel):
    """``[[github]]``: issues of a repository."""

    repository: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$", description="OWNER/NAME")
    ]
    token_from: _Variable
    label: _Label = "hybridwatch"
    api: _Url = "https://api.github.com"


class Gitlab(Channel):
    """``[[gitlab]]``: issues of a project."""

    project: Annotated[str, Field(pattern=r"^[\w.-]+(/[\w.-]+)+$", description="GROUP/NAME")]
    token_from: _Variable
    label: _Label = "hybridwatch"
    url: _Url = "https://gitlab.com"


@dataclass(frozen=True, slots=True)
class ChannelKind:
    """A kind of channel of another distribution, which its entry point names as its table.

    ``open_client`` opens the client of one (``clients.ChannelClient``), given the URI of the
    source; ``UndeliveredError`` if a secret is missing.
    """

    table: type[Channel]
    open_client: Callable[[Any, str], Any]


@cache
def added_kinds() -> dict[str, ChannelKind]:
    """Find what entry points of the group ``hybridwatch.channels`` name; ours keep their names."""
    found = loaded("hybridwatch.channels")
    return {name: kind for name, kind in found.items() if name not in KINDS}


class _ChannelsFile(Part):
    dashboard: _Url | None = None
    source: Annotated[str, Field(pattern=r"^[!-~]+$", description="a URI")] = "/hybridwatch"
    slack: list[Slack] = Field(default_factory=list)
    webhook: list[Webhook] = Field(default_factory=list)
    email: list[Email] = Field(default_factory=list)
    github: list[Github] = Field(default_factory=list)
    gitlab: list[Gitlab] = Field(default_factory=list)

    @property
    def by_kind(self) -> dict[str, list[Channel]]:
        return {kind: getattr(self, kind) for kind in (*KINDS, *added_kinds())}

    @model_validator(mode="after")
    def _names_are_one_each(self) -> Self:
        places = [
            (f"{kind}[{place}].name", one.name)
            for kind, channels in self.by_kind.items()
            for place, one in enumerate(channels)
        ]
        names = [name for _, name in places]
        if not places:
            refuse(("", f"expected a channel: [[{']], [['.join(self.by_kind)}]], found none"))
        refuse(
            *(
                (key, f"{quoted(name)} stands there twice; each channel has a name of its own")
                for place, (key, name) in enumerate(places)
                if name in names[:place]
            )
        )
        return self


@dataclass(frozen=True, slots=True)
class Channels:
    """What one file says; ``dashboard`` has no slash at its end, ``source`` is of CloudEvents."""

    path: Path
    dashboard: str
    source: str
    all: tuple[Channel, ...]


def read_channels(path: Path) -> Channels:
    """Read a file of channels."""
    form = _file_form()
    with refusing_toml(path, form, NotifyError):
        file = form.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    channels = tuple(chain.from_iterable(file.by_kind.values()))
    return Channels(path, (file.dashboard or "").rstrip("/"), file.source, channels)


@cache
def _file_form() -> type[_ChannelsFile]:
    """Give the file its tables of other distributions."""
    added: dict[str, Any] = {
        name: (list[kind.table], Field(default_factory=list))  # type: ignore[name-defined]
        for name, kind in added_kinds().items()
    }
    return create_model("_ExtendedFile", __base__=_ChannelsFile, **added)


def find_kind(channel: Channel) -> str:
    """Name the table that a channel stands in."""
    of_others = (name for name, kind in added_kinds().items() if isinstance(channel, kind.table))
    return next(of_others, type(channel).__name__.lower())
