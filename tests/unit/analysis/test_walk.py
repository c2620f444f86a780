"""A verdict is not far from its record."""

from tests.walk import follow


def test_from_the_newest_record_to_its_verdict_are_at_most_30_stays(tmp_path) -> None:
    stays = follow(tmp_path)
    assert any("build_pair" in stay for stay in stays)
    assert len(stays) <= 30, stays
