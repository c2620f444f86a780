"""Suggested commands begin as this program was called."""

import sys

import pytest

from hybridwatch.cli.options import program


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with an environment that is not active."""
    binary = tmp_path / ".venv" / "bin" / "hybridwatch"
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin")
    return binary


@pytest.mark.parametrize("absolute", [False, True])
def test_an_environment_that_is_not_active_is_named(checkout, monkeypatch, absolute) -> None:
    called = str(checkout) if absolute else ".venv/bin/hybridwatch"
    monkeypatch.setattr(sys, "argv", [called])
    assert program() == ".venv/bin/hybridwatch"


def test_an_active_environment_needs_no_path(checkout, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(checkout.parent))
    monkeypatch.setattr(sys, "argv", [str(checkout)])
    assert program() == "hybridwatch"


def test_a_module_is_called_as_a_module(checkout, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/src/hybridwatch/__main__.py"])
    monkeypatch.setattr(sys, "executable", str(checkout.with_name("python")))
    assert program() == ".venv/bin/python -m hybridwatch"


def test_whoever_else_calls_gets_the_plain_name(checkout, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/pytest"])
    assert program() == "hybridwatch"
