"""``hybridwatch``: the way in, what becomes of errors, and characters that a terminal lacks.

Verbs are loaded when they are called: ``--help`` must not wait for SciPy, and reading verbs must
work where the measuring libraries are not installed.
"""

import codecs
import contextlib
import errno
import gc
import importlib
import io
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from typing import IO, Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from hybridwatch.errors import EngineError, HybridwatchError
from hybridwatch.system.home import extended, is_checkout, shipped
from hybridwatch.system.plain_text import visible


class Verb(NamedTuple):  # a dataclass would import more than the list of verbs does
    """A verb, ours or what another distribution names in the group ``hybridwatch.commands``.

    ``module`` is where its ``command`` is, behind a colon another name for it; ``needs`` a
    distribution, with its extra, that brings what it imports. It is listed behind the verb
    ``after``, else last.
    """

    help: str
    module: str
    needs: str
    after: str = ""


NOBODY_READS: Final = 141
"""What shells expect of a command whose reader has left: 128 + SIGPIPE."""
IN_ASCII: Final = "hybridwatch.in_ascii"
"""How a stream treats characters that it cannot encode."""
_STAND_INS: Final = str.maketrans(
    {
        "\u2716": "x",
        "\u2717": "X",
        "\u2714": "=",
        "\u25b2": "^",
        "\u25bd": "v",
        "\u2205": "-",
        "\u2260": "#",
        "\u2192": "->",
        "\u2026": "...",
        "\u00b7": "-",
        "\u00b5": "u",
        "\u2212": "-",
        "\N{NO-BREAK SPACE}": " ",
    }
)
"""A mark's is as wide as the mark, since tables are laid out before, and never the ``?`` that is a
verdict of its own."""
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def write_any_character() -> None:
    """Let streams write what they cannot encode in characters that they can."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(io.UnsupportedOperation):
                stream.reconfigure(errors=IN_ASCII)


def unwritten(error: OSError) -> str | None:
    """Say why an answer could not be written; ``None`` for any other error."""
    if not (isinstance(error, BrokenPipeError) or error.errno in _FULL):
        return None
    _silence(sys.stdout)  # Python would try once more at its end, and leave with another status
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}cannot be written: {error.strerror or error}"


def _silence(stream: IO[Any]) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _in_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_STAND_INS)
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end


codecs.register_error(IN_ASCII, _in_ascii)


_INTERRUPTED: Final = 130
"""What shells expect of a command that Ctrl-C ended: 128 + SIGINT."""

VERBS: Final[Mapping[str, str]] = {
    "init": "Make a home for builds, scenarios and models of your own.",
    "scenarios": "List and validate every scenario file.",
    "engine": "Install, list and check engine builds.",
    "check": "Check whether a running server answers right.",
    "try": "Measure your vLLM against the release that it comes from.",
    "bisect": "Find the release, commit, file or fix that brought a change.",
    "run": "Measure one build, or two in turn, with scenarios.",
    "controls": "Check that scenarios find known bugs, and nothing else.",
    "oracle": "Store right answers from outside the engine, and check them.",
    "records": "List the stored runs.",
    "compare": "Compare two sides and show every verdict.",
    "explain": "Compute a stored verdict again and show the steps to it.",
    "profile": "Name the functions that take more of the time.",
    "detect": "Find the change points of a history in a CSV.",
    "gate": "Pass or fail: exit status 1 on bad news.",
    "comment": "Write one comment and a check on a pull request.",
    "answer": "Answer commands in comments on a pull request.",
    "suspects": "Comment on the pull request that caused a regression.",
    "ingest": "Add records, and results of other tools.",
    "export": "Write records for other tools.",
    "openmetrics": "Print gauges for Prometheus: verdicts, ages, alerts, queue.",
    "fleet": "Measure on many hosts from one queue.",
    "notify": "Send what changed to Slack, a webhook, e-mail or issues.",
    "nightly": "Measure, judge, decide and publish, once a night.",
    "store": "Verify checksums of records and verdicts.",
    "prune": "Delete old, unreferenced records.",
    "sql": "Run SQL on stored results.",
    "index": "Update the index.",
    "dashboard": "Show the records in a browser.",
    "serve": "Start the API server.",
    "token": "Manage API tokens.",
    "releases": "Show what each release and model runner breaks.",
    "page": "Write a page of the dashboard as one HTML file.",
    "site": "Write every page of the dashboard as a static site.",
}
"""Every verb of ours with its line of help; ``x`` is ``command`` in ``hybridwatch.cli.x``."""

_TOGETHER: Final[Mapping[str, str]] = {
    **dict.fromkeys(("init", "scenarios"), "scenarios"),
    "compare": "compare",
    **dict.fromkeys(("run", "profile"), "run"),
    **dict.fromkeys(("explain", "detect", "gate"), "judging"),
    **dict.fromkeys(("ingest", "export"), "exchange"),
    "suspects": "github_access",
    **dict.fromkeys(("store", "prune"), "store"),
    **dict.fromkeys(("records", "index", "sql"), "results"),
    **dict.fromkeys(("openmetrics", "page", "site"), "rendering"),
}
"""Modules of several verbs, where ``x`` is ``x_command``."""

EXTRAS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("try", "bisect", "run", "profile", "controls", "oracle", "engine", "releases"), "measure"
    ),
    **dict.fromkeys(("comment", "answer", "suspects"), "github"),
    **dict.fromkeys(("serve", "token"), "api"),
    **{verb: verb for verb in ("fleet", "nightly", "notify")},
    "check": "client",
}
"""The extra that brings what a verb imports; for all others that is ``dashboard``."""

LAB: Final = "hybridwatch-lab"
"""The distribution of what maintainers run, which may not be installed."""

OF_LAB: Final = frozenset({"mutants", "fuzz", "gpu", "findings"})
"""Its verbs."""


class _RefusalError(click.ClickException):
    """A failure shown in one line, or in several if several things are wrong."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Print to standard error."""
        try:
            for line in visible(self.message).splitlines():
                click.echo(f"hybridwatch: {line}", file=file, err=True)
        except OSError:  # the status says it
            _silence(sys.stderr)


class _EngineFailedError(_RefusalError):
    """The call was right, but the engine failed; the end of its log says why."""

    exit_code = 1


@contextlib.contextmanager
def _without_collecting() -> Iterator[None]:
    """Import without looking for garbage, of which there is none: a fifth of SciPy's time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # what was imported stays, and need not be looked through again
        gc.enable()


@cache
def verbs() -> Mapping[str, Verb]:
    """Every verb, those of other distributions too, in the order of a working day."""
    return extended({name: _own(name) for name in VERBS}, "hybridwatch.commands")


def _own(name: str) -> Verb:
    own = "try_source" if name == "try" else name  # a module cannot be called try
    place = f"{_TOGETHER[name]}:{name}_command" if name in _TOGETHER else own
    needs = f"hybridwatch[{EXTRAS.get(name, 'dashboard')}]"
    return Verb(VERBS[name], f"hybridwatch.cli.{place}", needs)


def _verb(name: str) -> Verb | None:
    """Find a verb; what others add is looked for only when it is none of ours."""
    if name in VERBS:
        return _own(name)
    found = verbs().get(name)
    if found is None and name in OF_LAB:
        raise HybridwatchError(
            f"{name}: is part of {LAB}, which is not installed here; run: {_installing(LAB)}"
        )
    return found


def _installing(needed: str) -> str:
    """Write the command that adds a distribution, with its extra, to this environment."""
    name, bracket, extra = needed.partition("[")
    edited = {"hybridwatch": shipped(), LAB: shipped() / "lab"} if is_checkout() else {}
    words = ["-e", f"{edited[name]}{bracket}{extra}"] if name in edited else [needed]
    return shlex.join([sys.executable, "-m", "pip", "install", *words])


class VerbGroup(click.Group):
    """A group that imports a verb's module when the verb is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """Name the verbs in the order of a working day."""
        return list(verbs())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load a verb, or give ``None`` for a word that is none; an error if not installed."""
        verb = _verb(cmd_name)
        if verb is None:
            return None
        name, _, attribute = verb.module.partition(":")
        try:
            with _without_collecting():
                module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise HybridwatchError(
                f"{cmd_name}: needs the Python module {error.name!r}, which is not installed here; "
                f"run: {_installing(verb.needs)}"
            ) from error
        command: click.Command = getattr(module, attribute or "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a verb; click knows none that is like a wrong word, since none is loaded."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=verbs(), ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.help) for name, verb in verbs().items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the verbs without loading any: a shell asks at every TAB."""
        items = [
            CompletionItem(name, help=verb.help)
            for name, verb in verbs().items()
            if name.startswith(incomplete)
        ]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb; turn the errors meant for people into one line and a status."""
        try:
            return super().invoke(ctx)
        except EngineError as error:
            # The cause stands last: above a log no one would see it.
            raise _EngineFailedError(f"{error.log_tail.rstrip()}\n{error.cause}".strip()) from error
        except HybridwatchError as error:
            raise _RefusalError(str(error)) from error
        except click.UsageError as error:
            # It names files and words as they are.
            raise click.UsageError(visible(error.format_message()), error.ctx) from error
        except KeyboardInterrupt:
            click.echo("hybridwatch: interrupted", err=True)
            raise click.exceptions.Exit(_INTERRUPTED) from None
        except BrokenPipeError:
            raise click.exceptions.Exit(NOBODY_READS) from None


@click.group(
    cls=VerbGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n  hybridwatch run smoke --known-bad\n  hybridwatch compare latest\n\n"
    "Exit status: 0 all fine, 1 the answer is bad news, 2 the call was wrong.",
)
@click.version_option(package_name="hybridwatch", prog_name="hybridwatch")
def cli() -> None:
    """Watch vLLM engines that serve hybrid models: still right, still fast, still free of syncs?"""


def main() -> None:
    """Run the command line and leave with its status."""
    write_any_character()
    try:
        try:
            cli(prog_name="hybridwatch")
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except HybridwatchError as error:  # of a list of verbs, before one of them is called
        _RefusalError(str(error)).show()
        sys.exit(_RefusalError.exit_code)
    except OSError as error:
        why = unwritten(error)
        if why is None:
            raise
        if isinstance(error, BrokenPipeError):
            sys.exit(NOBODY_READS)
        _RefusalError(why).show()
        sys.exit(_RefusalError.exit_code)
