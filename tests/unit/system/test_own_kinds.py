"""A metric, a format and a channel of another distribution, found by its entry points."""

import json

import pytest

from hybridwatch.errors import NotifyError
from hybridwatch.formats.read.read import list_formats
from hybridwatch.integrations.notify.channels import _file_form, added_kinds, read_channels
from hybridwatch.integrations.notify.sending import open_client
from hybridwatch.metrics import find_metric, list_metrics
from tests.command_line import run_verb

CODE = """
from datetime import UTC, datetime, timedelta

from hybridwatch.formats.read.foreign import ForeignRun
from hybridwatch.formats.read.read import Format
from hybridwatch.integrations.notify.channels import Channel, ChannelKind
from hybridwatch.integrations.notify.clients import Receipt
from hybridwatch.metrics import Direction, Kind, Metric, Unit
from hybridwatch.records.run import Phase, Sample, Trial

STEAM = Metric("steam", Unit.BYTES, Direction.LOWER, Kind.TIME, 0.03, "Bytes of steam of a trial.")
BEGUN = datetime(2026, 11, 20, tzinfo=UTC)


def read(document):
    values = document.root.at("steam").amounts()
    trials, at = [], BEGUN
    for n, value in enumerate(values):
        steam = Sample("steam", (value,))
        trials.append(Trial(n, 0, Phase.PERFORMANCE, at, 1.0, samples=(steam,)))
        at += timedelta(seconds=1)
    yield ForeignRun("kettle", "kettle", None, BEGUN, at, trials)


KETTLE = Format("kettle", lambda document: "steam" in document.root, read)


class Pager(Channel):
    number: int


class Client:
    def __init__(self, channel, source):
        self.called = f"{channel.number} by {source}"

    def deliver(self, message, place):
        return Receipt()


PAGER = ChannelKind(Pager, Client)
"""
POINTS = """[hybridwatch.metrics]
steam = kettle_kinds:STEAM

[hybridwatch.formats]
kettle = kettle_kinds:KETTLE

[hybridwatch.channels]
pager = kettle_kinds:PAGER
slack = kettle_kinds:PAGER
"""
CACHES = (list_metrics, find_metric, list_formats, added_kinds, _file_form)


@pytest.fixture
def installed(tmp_path_factory, monkeypatch):
    """Install a distribution ``kettle``."""
    site = tmp_path_factory.mktemp("site")
    (site / "kettle_kinds.py").write_text(CODE)
    about = site / "kettle-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: kettle\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(site)
    for kept in CACHES:
        kept.cache_clear()
    yield
    for kept in CACHES:
        kept.cache_clear()


def said(*words, status=None):
    return run_verb(*words, status=status)


def kettle(folder, name, *values):
    path = folder / name
    path.write_text(json.dumps({"steam": values}))
    return path


@pytest.mark.usefixtures("installed")
def test_a_file_of_an_own_format_is_taken_and_its_own_metric_judged(tmp_path) -> None:
    results = tmp_path / "results"
    quiet = kettle(tmp_path, "quiet.json", *(100 + n / 10 for n in range(10)))
    loud = kettle(tmp_path, "loud.json", *(150 + n / 10 for n in range(10)))
    ids = []
    for path in (quiet, loud):
        taken = said("ingest", path, "--results", results, "--json", status=0)
        ids += [one["run_id"] for one in json.loads(taken.stdout)["taken"]]
    compared = said("compare", *ids, "--results", results, "--json", "--across-testbeds")
    (steam,) = json.loads(compared.stdout)["comparisons"]
    assert (steam["metric"], steam["unit"], steam["better"]) == ("steam", "bytes", "lower")
    assert steam["effect"] == pytest.approx(0.5, abs=0.02)


def test_without_the_distribution_its_file_is_none_that_is_known(tmp_path) -> None:
    told = said("ingest", kettle(tmp_path, "one.json", 1.0), "--results", tmp_path / "results")
    assert told.exit_code == 1
    assert "expected a record or a file of asv, " in told.output
    with pytest.raises(KeyError):
        find_metric("steam")


@pytest.mark.usefixtures("installed")
def test_a_channel_of_an_own_kind_stands_in_its_table_and_is_opened(tmp_path) -> None:
    file = tmp_path / "notify.toml"
    file.write_text('source = "/here"\n\n[[pager]]\nname = "night"\nnumber = 112\n')
    channels = read_channels(file)
    (pager,) = channels.all
    assert vars(open_client(pager, channels)) == {"called": "112 by /here"}
    file.write_text('[[pager]]\nname = "night"\nnumber = "one"\n')
    with pytest.raises(NotifyError, match=r"pager\[0\]\.number: expected "):
        read_channels(file)


@pytest.mark.usefixtures("installed")
def test_a_kind_of_ours_stays_ours() -> None:
    assert added_kinds().keys() == {"pager"}


def test_without_the_distribution_its_table_is_unknown(tmp_path) -> None:
    file = tmp_path / "notify.toml"
    file.write_text('[[pager]]\nname = "night"\nnumber = 112\n')
    with pytest.raises(NotifyError, match="pager: unknown key"):
        read_channels(file)
