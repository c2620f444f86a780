"""Several workers share the tests as tests/conftest.py says."""

import pytest


def test_the_tests_of_a_file_stay_in_one_worker(request):
    if not hasattr(request.config, "workerinput"):
        pytest.skip("one process runs all tests")
    assert request.node.nodeid.endswith("@test_workers")
