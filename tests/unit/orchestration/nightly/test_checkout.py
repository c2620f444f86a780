"""The policy's file: what it means, and every way to get it wrong."""

import re

import pytest

from hybridwatch.analysis.policy import Action, AlertBisect, Policy, Rule
from hybridwatch.errors import PolicyError
from hybridwatch.metrics import METRICS, find_metric
from hybridwatch.orchestration.nightly.checkout import DEFAULT, load_policy
from hybridwatch.scenarios.load import find
from tests.mistakes import read_mistakes
from tests.shipped import ROOT


@pytest.fixture
def policy(tmp_path):
    def load(text: str) -> Policy:
        (tmp_path / "gate.toml").write_text(text, encoding="utf-8")
        return load_policy(tmp_path / "gate.toml")

    return load


def test_a_file_says_what_it_says(policy) -> None:
    told = policy(
        'expected = ["smoke"]\n'
        '[[rule]]\nmetric = "accuracy.*"\nscenarios = "curated"\naction = "warn"\nmargin = 0.02\n'
        '[[rule]]\nmetric = "*"\naction = "watch"\n'
    )
    first = Rule("accuracy.*", "curated", Action.WARN, 0.02)
    assert told == Policy((first, Rule("*", "*", Action.WATCH)), ("smoke",))
    assert (told.max_age_days, told.testbeds) == (2, ())


def test_a_file_names_what_is_known_to_be_broken(policy) -> None:
    told = policy('[[rule]]\nmetric = "*"\naction = "block"\nknown = "vllm#45414, open"\n')
    assert told.rules == (Rule("*", known="vllm#45414, open"),)
    with pytest.raises(PolicyError, match="known"):
        policy('[[rule]]\nmetric = "*"\naction = "block"\nknown = ""\n')


def test_a_file_says_how_old_records_may_be_and_who_must_measure(policy) -> None:
    told = policy(
        'max_age_days = 7\ntestbeds = ["h100-*"]\nprice_per_hour = 2.5\n'
        '[[rule]]\nmetric = "*"\naction = "block"\n'
    )
    assert (told.max_age_days, told.testbeds, told.price_per_hour) == (7, ("h100-*",), 2.5)


def test_a_file_says_what_a_confirmed_alert_starts(policy) -> None:
    rule = '[[rule]]\nmetric = "*"\naction = "block"\n'
    assert policy(rule).bisect is None
    told = policy(f'{rule}[bisect]\non = "confirmed"\nminutes = 90\nrepo = "~/vllm"\n')
    assert told.bisect == AlertBisect(90, "~/vllm")


def test_the_search_in_the_documentation_is_a_policy(policy) -> None:
    text = (ROOT / "docs" / "bisect.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    told = policy(f'{example}[[rule]]\nmetric = "*"\naction = "block"\n')
    assert told.bisect == AlertBisect(120, "~/vllm", "cpu-0.31.0")


@pytest.mark.parametrize(("text", "lines"), read_mistakes("gate"))
def test_a_wrong_file_is_reported_in_full(policy, tmp_path, text, lines) -> None:
    with pytest.raises(PolicyError) as caught:
        policy(text)
    told = str(caught.value).splitlines()
    for line, wanted in zip(told, lines.splitlines(), strict=True):
        assert line.startswith(f"{tmp_path / 'gate.toml'}: {wanted}")


def test_no_file_and_no_text(tmp_path) -> None:
    with pytest.raises(PolicyError, match="cannot be read: No such file"):
        load_policy(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyError, match="expected UTF-8 text"):
        load_policy(tmp_path / "bytes.toml")


def test_a_narrow_rule_before_a_wide_one_is_fine(policy) -> None:
    told = policy(
        '[[rule]]\nmetric = "ttft"\nscenarios = "smoke"\naction = "block"\n'
        '[[rule]]\nmetric = "ttft"\naction = "warn"\n[[rule]]\nmetric = "*"\naction = "watch"\n'
    )
    assert len(told.rules) == 3


def test_the_example_in_the_documentation_is_a_policy(policy) -> None:
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert policy(example) == Policy((Rule("ttft", "smoke", Action.BLOCK, 0.05),), ("smoke",))


def test_our_own_policy_names_scenarios_that_are_there_and_guards_what_matters() -> None:
    told = load_policy(ROOT / DEFAULT)
    named = [*told.expected, *(rule.scenarios for rule in told.rules if rule.scenarios != "*")]
    assert find(ROOT / "scenarios", named)
    for metric in ("contract.wrong_tokens", "accuracy.recall", "output_throughput", "ttft"):
        assert told.action_for("smoke/x", find_metric(metric)) is Action.BLOCK
    assert told.action_for("reported/x", find_metric("accuracy.recall")) is Action.BLOCK
    assert told.action_for("reported/x", find_metric("ttft")) is Action.WATCH
    assert told.action_for("curated/x", find_metric("itl")) is Action.WARN


@pytest.mark.parametrize(
    "metric", [*METRICS, find_metric("accuracy.recall"), find_metric("contract.x")]
)
def test_of_every_metric_the_policy_of_the_checkout_tells_at_least(metric) -> None:
    action = load_policy(ROOT / DEFAULT).action_for("smoke/dummy-run", metric)
    decides = not metric.kind.has_noise or metric.id.startswith("duet_")
    assert action is Action.BLOCK if decides else action is not Action.WATCH
