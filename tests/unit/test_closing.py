"""A run of tests ends with how many and how long, and names the longest with their reasons."""

import re

import pytest

from tests.closing import BEGAN
from tests.order import ROOT

pytest_plugins = ["pytester"]

CONFTEST = """
import pytest
from tests.closing import carry_reasons, closing

def pytest_configure(config):
    config.addinivalue_line("markers", "long(why): why")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(closing())

def pytest_collection_modifyitems(items):
    carry_reasons(items)
"""
TESTS = """
import pytest

@pytest.fixture
def broken():
    raise ValueError

@pytest.mark.long("two engines")
def test_long(): pass
def test_wrong(): assert False
def test_error(broken): pass
@pytest.mark.skip
def test_skipped(): pass
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_end_counts_and_gives_reasons(pytester, monkeypatch, workers) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv(BEGAN, raising=False)
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    found = pytester.runpytest_subprocess("-n", workers, "-p", "no:randomly")
    said = found.stdout.str()
    assert re.fullmatch(r"1 passed, 2 failed, 1 skipped in \d+\.\d minutes", said.splitlines()[-1])
    assert re.search(r"^ +\d+ s  \S+::test_long\n +two engines$", said, re.MULTILINE)
    assert re.search(r"^ +\d+ s  \S+::test_wrong\n +no reason given", said, re.MULTILINE)
