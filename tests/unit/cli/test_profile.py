"""``hybridwatch profile`` on a stored profile."""

from pathlib import Path

from hybridwatch.records.store import write_run
from tests.broken_engines import slow_contender
from tests.command_line import run_verb
from tests.stacks import put_profile

RUN = slow_contender(1.2)


def test_it_names_what_grew_and_where_the_stacks_lie(tmp_path: Path) -> None:
    write_run(tmp_path, RUN)
    path = put_profile(tmp_path, RUN)
    grown, place = run_verb("profile", "latest", "--results", tmp_path).stdout.splitlines()
    assert grown.endswith("% of engine time in busy (model.py:10), called by step (core.py)")
    assert place == f"profile: {path}"
