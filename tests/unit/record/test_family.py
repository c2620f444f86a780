import pytest

from hybridwatch.record.family import family_of


@pytest.mark.parametrize(
    ("label", "family"),
    [
        ("nightly-20261121", "nightly-*"),
        ("cuda-nightly-2026-11-21~prev-step-anchor", "cuda-nightly-*~prev-step-anchor"),
        ("cpu-0.28.1.dev123", "cpu-*"),
        ("cpu-nightly-8f3a2c1", "cpu-nightly-*"),
        ("nightly-d4ad43a03b0c4ab659709e2c5795801bd343588a", "nightly-*"),
        ("mine@1a2b3c4d~prev-step-anchor", "mine@*~prev-step-anchor"),
        ("cpu-0.27.1@12345678", "cpu-0.27.1@*"),
    ],
)
def test_nightly_labels_are_one_series(label, family) -> None:
    assert family_of(label) == family


@pytest.mark.parametrize(
    "label", ["cpu-0.27.1", "cpu-0.28.0", "adopted", "cpu-0.27.1+slow-step", "deadbeef", "1234567"]
)
def test_a_release_and_a_name_are_builds_of_their_own(label) -> None:
    assert family_of(label) == label
