"""``notify.toml``: who wants to hear of what, and where.

Secrets are never in the file: it names the environment variables that have them.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from hybridwatch.analysis.policy import ANY, Action, covers
from hybridwatch.errors import NotifyError
from hybridwatch.scenarios.validation import Part, quoted, refuse, refusing_toml

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


class _Channel(Part):
    """What every channel has: a name, and what it wants to hear of."""

    name: _Name
    rank: Literal["warn", "block"] = "warn"
    scenarios: _Wanted = Field(default_factory=lambda: [ANY])
    testbeds: _Wanted = Field(default_factory=lambda: [ANY])
    gaps: bool = True

    def wants(self, rank: Action, scenarios: Sequence[str], testbed: str) -> bool:
        """Whether it wants to hear of what was just found.

        ``scenarios`` are those in which it shows, none for a whole machine; ``testbed`` is empty
        for no certain one.
        """
        ranked = self.rank == "warn" or rank is Action.BLOCK
        here = not scenarios or any(
            wanted == ANY or covers(wanted, one) for wanted in self.scenarios for one in scenarios
        )
        return ranked and here and any(fnmatchcase(testbed, one) for one in self.testbeds)


class Slack(_Channel):
    """``[[slack]]``: an incoming webhook."""

    url_from: _Variable


class Webhook(_Channel):
    """``[[webhook]]``: a server of the user's own that takes CloudEvents."""

    url_from: _Variable
    secret_from: _Variable


class Email(_Channel):
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
            refuse(("security", 'expected "starttls" or "tls" beside password_from, found "none"'))
        if (self.password_from is None) is not (self.user == ""):
            refuse(("user", "expected together with password_from, found one without the other"))
        return self


class Github(_Channel):
    """``[[github]]``: issues of a repository."""

    repository: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$", description="OWNER/NAME")
    ]
    token_from: _Variable
    label: _Label = "hybridwatch"
    api: _Url = "https://api.github.com"


class Gitlab(_Channel):
    """``[[gitlab]]``: issues of a project."""

    project: Annotated[str, Field(pattern=r"^[\w.-]+(/[\w.-]+)+$", description="GROUP/NAME")]
    token_from: _Variable
    label: _Label = "hybridwatch"
    url: _Url = "https://gitlab.com"


Channel: TypeAlias = Slack | Webhook | Email | Github | Gitlab


class _ChannelsFile(Part):
    dashboard: _Url | None = None
    source: Annotated[str, Field(pattern=r"^[!-~]+$", description="a URI")] = "/hybridwatch"
    slack: list[Slack] = Field(default_factory=list)
    webhook: list[Webhook] = Field(default_factory=list)
    email: list[Email] = Field(default_factory=list)
    github: list[Github] = Field(default_factory=list)
    gitlab: list[Gitlab] = Field(default_factory=list)

    @property
    def channels(self) -> list[Channel]:
        return [*self.slack, *self.webhook, *self.email, *self.github, *self.gitlab]

    @model_validator(mode="after")
    def _names_are_one_each(self) -> Self:
        places = [
            (f"{kind}[{place}].name", one.name)
            for kind in KINDS
            for place, one in enumerate(getattr(self, kind))
        ]
        names = [name for _, name in places]
        if not places:
            refuse(("", f"expected a channel: [[{']], [['.join(KINDS)}]], found none"))
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
    """What one file says.

    Attributes:
        dashboard: Address of the dashboard, without a slash at its end; empty for none.
        source: What CloudEvents call where they come from.
        all: The channels, in the order of the kinds.
    """

    path: Path
    dashboard: str
    source: str
    all: tuple[Channel, ...]


def read_channels(path: Path) -> Channels:
    """Read a file of channels."""
    with refusing_toml(path, _ChannelsFile, NotifyError):
        file = _ChannelsFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    return Channels(path, (file.dashboard or "").rstrip("/"), file.source, tuple(file.channels))


def find_kind(channel: Channel) -> str:
    """Name the table that a channel stands in."""
    return type(channel).__name__.lower()
