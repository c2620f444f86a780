"""Several workers share the tests as tests/conftest.py says."""

from pathlib import Path

from tests import conftest
from tests.conftest import ENGINE_TESTS, OneEngineAtATime

TESTS = Path(__file__).parents[1]


def scope_of(nodeid: str) -> str:
    return OneEngineAtATime._split_scope(object.__new__(OneEngineAtATime), nodeid)


def test_the_tests_of_a_file_stay_together_and_all_engines_do():
    assert scope_of("tests/unit/test_x.py::test_a") == "tests/unit/test_x.py"
    both = {scope_of(f"{folder}test_x.py::test_a[::]") for folder in ENGINE_TESTS}
    assert both == {"engine"}


def test_no_test_elsewhere_starts_an_engine():
    marked = {
        path.relative_to(TESTS.parent).as_posix()
        for path in TESTS.rglob("test_*.py")
        if "mark.engine" in path.read_text(encoding="utf-8") and path != Path(__file__)
    }
    assert marked
    assert {path for path in marked if not path.startswith(ENGINE_TESTS)} == set()


def test_workers_are_given_tests_by_that_rule(request):
    hook = request.config.hook.pytest_xdist_make_scheduler
    assert conftest.pytest_xdist_make_scheduler in [one.function for one in hook.get_hookimpls()]
