"""``hybridwatch notify``, as somebody types it, and at the end of other verbs."""

import json
from importlib import import_module
from pathlib import Path

import pytest

from hybridwatch.analysis.change_review import ChangeReview
from hybridwatch.analysis.policy import STRICT
from hybridwatch.cli.notify import channels_here, tell_at_the_end
from hybridwatch.errors import NotifyError
from tests.command_line import run_verb
from tests.situations import SITUATIONS
from tests.unit.integrations.notify.conftest import services
from tests.unit.pages.suite_stores import UPGRADE, put

__all__ = ["services"]
FILE = """
dashboard = "https://watch.example.org"

[[slack]]
name = "team"
url_from = "T_SLACK"
gaps = false

[[webhook]]
name = "pager"
url_from = "T_HOOK"
secret_from = "T_SECRET"
rank = "block"
gaps = false
"""


@pytest.fixture
def results(tmp_path) -> Path:
    folder: Path = tmp_path / "results"
    put(folder, 1, broken=7.0, builds=UPGRADE)
    return folder


@pytest.fixture
def file(tmp_path) -> Path:
    path: Path = tmp_path / "notify.toml"
    path.write_text(FILE)
    return path


@pytest.fixture
def call(results, file, services, monkeypatch):
    """Calls the verb; nothing sleeps."""
    monkeypatch.setattr("hybridwatch.integrations.notify.sending._PAUSES_S", (0.0, 0.0))

    def call(*words: str, status: int = 0):
        words = ("notify", str(file), "--results", str(results), *words)
        return run_verb(*words, status=status)

    return call


def test_a_dry_run_shows_and_keeps_nothing(call, services, results) -> None:
    for _ in range(2):
        output = call("--dry-run").stdout
        assert output.startswith("slack team: 1 new message, 0 waiting\n  new: A contract broke")
        assert "webhook pager: 1 new message" in output
    assert (services.slack, services.events) == ([], [])


def test_what_is_new_is_sent_once(call, services, results) -> None:
    assert "slack team: 1 message sent" in call().stdout
    assert call().stdout == "nothing new for 2 channels\n"
    assert (len(services.slack), len(services.events)) == (1, 1)
    put(results, 2, builds=UPGRADE)
    assert "sent: Recovered: a contract broke in smoke/padded-graph-rows" in call().stdout
    assert [one["type"] for one in services.events] == [
        "hybridwatch.alert.opened",
        "hybridwatch.alert.recovered",
    ]
    assert services.events[0]["data"]["link"].startswith("https://watch.example.org/alerts?alert=")


def test_what_does_not_get_through_is_kept_and_sent_again(call, services) -> None:
    services.weather.share = 1.0
    services.weather.seed = 3
    document = json.loads(call("--json", status=1).stdout)
    assert document["schema_version"] == 1
    slack = document["channels"][0]
    assert (slack["channel"], slack["kind"]) == ("team", "slack")
    assert [one["state"] for one in slack["messages"]] == ["waiting"]
    assert slack["troubles"]
    shown = call("--dry-run").stdout
    assert "slack team: 0 new messages, 1 waiting" in shown
    services.weather.share = 0.0
    (again,) = json.loads(call("--json").stdout)["channels"][0]["messages"]
    assert (again["state"], again["trouble"]) == ("sent", again["trouble"])
    assert again["id"] == slack["messages"][0]["id"]


def test_one_channel_alone(call, services) -> None:
    call("--channel", "pager")
    assert (len(services.slack), len(services.events)) == (0, 1)
    assert (
        "expected one of the channels team, pager, found 'x'"
        in call("--channel", "x", status=2).stderr
    )


def test_what_is_skipped_is_not_sent(call, services, results) -> None:
    assert call("--skip").stdout == "2 messages marked as read\n"
    call()
    assert services.slack == []
    assert json.loads(call("--skip", "--json").stdout)["channels"] == []
    assert "give one of them" in call("--skip", "--dry-run", status=2).stderr


def test_a_missing_secret_keeps_the_news_of_its_channel_alone(call, services, monkeypatch) -> None:
    monkeypatch.delenv("T_SLACK")
    answer = call(status=1)
    assert "trouble: T_SLACK: expected the address of a webhook in the environ" in answer.stdout
    assert len(services.events) == 1
    monkeypatch.setenv("T_SLACK", services.variables()["T_SLACK"])
    call()
    assert len(services.slack) == 1


def test_what_waits_for_a_channel_that_left_the_file_is_reported(call, services, file) -> None:
    services.weather.share = 1.0
    call(status=1)
    file.write_text(FILE.replace('name = "team"', 'name = "others"'))
    services.weather.share = 0.0
    assert "1 message for team, which is no channel of" in call("--dry-run").stderr


def test_a_wrong_file_is_a_wrong_call(call, file) -> None:
    file.write_text(FILE.replace('"T_SLACK"', '"https://planted"'))
    answer = call(status=2)
    assert "slack[0].url_from: expected the name of an environment variable" in answer.stderr
    assert "planted" not in answer.output


def test_a_file_and_a_folder_that_are_not_there_are_named(own_home, file, tmp_path) -> None:
    answer = run_verb("notify", "--dry-run", status=2)
    assert f"{own_home / 'notify.toml'}: cannot be read" in answer.stderr
    words = ["notify", str(file), "--results", str(tmp_path / "nothing")]
    assert "nothing: no such folder" in run_verb(*words, status=2).stderr


def test_the_policy_decides_what_is_reported(call, tmp_path, services) -> None:
    policy = tmp_path / "gate.toml"
    policy.write_text('[[rule]]\nmetric = "*"\naction = "watch"\n')
    assert "0 new" in call("--dry-run", "--policy", str(policy)).stdout


def test_other_verbs_send_at_their_end_where_the_home_has_a_file(
    own_home, results, services, capsys
) -> None:
    assert channels_here() is None
    assert tell_at_the_end(None, results, STRICT), "nobody wants to hear"
    (own_home / "notify.toml").write_text(FILE)
    channels = channels_here()
    assert tell_at_the_end(channels, results, STRICT)
    assert "notify: slack team: 1 message sent" in capsys.readouterr().out
    assert len(services.slack) == 1
    (own_home / "nothing").mkdir()
    assert not tell_at_the_end(channels, own_home / "nothing", STRICT)
    assert "expected a results folder with records" in capsys.readouterr().out


@pytest.mark.parametrize(("share", "status"), [(0.0, 0), (1.0, 1)])
def test_a_night_ends_with_it(own_home, results, services, monkeypatch, share, status) -> None:
    """The gate passes; what is in the folder from before is told."""
    nightly = import_module("hybridwatch.cli.nightly")
    quiet = ChangeReview((SITUATIONS["equivalent"](),))
    for name in ("require_installed", "require_machine"):
        monkeypatch.setattr(nightly, name, lambda _: None)
    monkeypatch.setattr(nightly, "_commit", lambda: "a" * 40)
    monkeypatch.setattr(nightly, "hold", lambda *_: (results / "nights", quiet))
    monkeypatch.setattr("hybridwatch.integrations.notify.sending._PAUSES_S", (0.0, 0.0))
    (own_home / "notify.toml").write_text(FILE)
    services.weather.share = share
    (own_home / "gate.toml").write_text('[[rule]]\nmetric = "*"\naction = "block"\n')
    answer = run_verb("nightly", "smoke", "--results", results, status=status)
    assert f"notify: slack team: {1 - status} message" in answer.output


def test_a_wrong_policy_is_found_before_a_fleet_measures(own_home, results) -> None:
    """Another policy would make news of its own."""
    (own_home / "gate.toml").write_text("expected = 1")
    assert "gate.toml: expected" in run_verb("fleet", "run", "--results", results, status=2).stderr


def test_a_wrong_file_is_found_before_anything_is_measured(own_home, results) -> None:
    (own_home / "notify.toml").write_text("[[slack]]")
    with pytest.raises(NotifyError, match=r"slack\[0\].name: missing"):
        channels_here()
    for words in (["fleet", "run"], ["nightly", "smoke"]):
        assert "slack[0].name: missing" in run_verb(*words, "--results", results, status=2).stderr
