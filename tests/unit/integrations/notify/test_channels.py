"""``notify.toml``: what it says, and every way in which it can be wrong."""

import re

import pytest

from hybridwatch.analysis.policy import Action
from hybridwatch.errors import NotifyError
from hybridwatch.integrations.notify.channels import KINDS, find_kind
from hybridwatch.system.home import home
from tests.mistakes import read_mistakes
from tests.unit.integrations.notify.pretended import channels_of

SLACK = """
[[slack]]
name = "team"
url_from = "SLACK_URL"
"""
GOOD = f"""
dashboard = "https://hybridwatch.example.org/"
{SLACK}
[[webhook]]
name = "pager"
url_from = "HOOK_URL"
secret_from = "HOOK_SECRET"
rank = "block"

[[email]]
name = "list"
host = "mail.example.org"
user = "bot"
password_from = "MAIL_PASSWORD"
sender = "bot@example.org"
to = ["team@example.org"]

[[github]]
name = "issues"
repository = "octo/engine"
token_from = "GITHUB_TOKEN"
scenarios = ["smoke", "curated/dp-dummy-run"]
testbeds = ["h100-*"]

[[gitlab]]
name = "mirror"
project = "team/sub/engine"
token_from = "GITLAB_TOKEN"
gaps = false
"""


def test_the_example_of_every_key_is_a_file_of_channels(tmp_path) -> None:
    whole = (home() / "ci" / "notify.toml").read_text(encoding="utf-8")
    assert [one.name for one in channels_of(tmp_path, whole).all] == ["team"]
    text = re.sub(r"^# ?", "", whole.partition("# Every key:")[2], flags=re.MULTILINE)
    found = channels_of(tmp_path, text).all
    assert tuple(find_kind(one) for one in found) == KINDS
    written = set(re.findall(r"^(\w+) =", text, re.MULTILINE))
    assert set().union(*(type(one).model_fields for one in found)) <= written
    with pytest.raises(NotifyError, match="gapps"):
        channels_of(tmp_path, text.replace("gaps", "gapps"))


def test_each_kind_of_channel_is_read(tmp_path) -> None:
    found = channels_of(tmp_path, GOOD)
    assert [find_kind(one) for one in found.all] == [
        "slack",
        "webhook",
        "email",
        "github",
        "gitlab",
    ]
    assert [one.gaps for one in found.all] == [True, True, True, True, False]
    assert found.dashboard == "https://hybridwatch.example.org"


@pytest.mark.parametrize(
    ("name", "rank", "scenarios", "testbed", "wanted"),
    [
        ("team", Action.WARN, ("reported/x",), "any", True),
        ("pager", Action.WARN, ("smoke/x",), "any", False),
        ("pager", Action.BLOCK, ("smoke/x",), "any", True),
        ("issues", Action.WARN, ("smoke/x",), "h100-2", True),
        ("issues", Action.WARN, ("smoke/x",), "epyc", False),
        ("issues", Action.WARN, ("curated/nixl",), "h100-2", False),
        ("issues", Action.BLOCK, ("curated/nixl", "smoke/y"), "h100-2", True),
        ("issues", Action.BLOCK, (), "h100-2", True),
    ],
)
def test_a_channel_hears_of_what_it_wants(tmp_path, name, rank, scenarios, testbed, wanted) -> None:
    (channel,) = (one for one in channels_of(tmp_path, GOOD).all if one.name == name)
    assert channel.wants(rank, scenarios, testbed) is wanted


PLANTED = "https://hooks.slack.com/services/T0/B0/0123456789secret"


@pytest.mark.parametrize(
    ("old", "new", "told"), read_mistakes("channels", good=GOOD, planted=PLANTED)
)
def test_what_is_wrong_is_said_with_file_and_key_and_no_secret(tmp_path, old, new, told) -> None:
    assert old in GOOD
    with pytest.raises(NotifyError) as refusal:
        channels_of(tmp_path, GOOD.replace(old, new, 1))
    assert told in str(refusal.value)
    assert str(refusal.value).startswith(f"{tmp_path / 'notify.toml'}: ")
    assert PLANTED not in str(refusal.value)


def test_every_wrong_key_has_its_line(tmp_path) -> None:
    wrong = GOOD.replace('"octo/engine"', '"octo"').replace('"team/sub/engine"', '"engine"')
    with pytest.raises(NotifyError) as refusal:
        channels_of(tmp_path, wrong)
    assert len(str(refusal.value).splitlines()) == 2
