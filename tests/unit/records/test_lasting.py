"""A command that is kept names the build that was measured, not the one of that name tomorrow."""

from dataclasses import replace

import pytest

from hybridwatch.records.identity import is_lasting, lasting_label
from tests.builders import a_build


@pytest.mark.parametrize(
    ("name", "switches", "release", "label", "lasting"),
    [
        ("cpu-0.27.1", "~x", "0.27.1", "cpu-0.27.1~x", True),
        ("nightly", "", "0.28.0", "cpu-0.28.0", False),
        ("nightly", "~x+slow-step", "0.28.0", "cpu-0.28.0~x+slow-step", False),
        ("adopted", "", "0.28.1.dev3+g1a2b3c4d5", "adopted", False),
        ("mine", "@1a2b3c4d~x", "0.28.0", "mine@1a2b3c4d~x", True),
    ],
)
def test_a_label_is_pinned_to_its_release(name, switches, release, label, lasting) -> None:
    build = replace(a_build(name + switches), name=name, release=release)
    assert (lasting_label(build), is_lasting(build)) == (label, lasting)
