"""Is the engine right, fast and free of host reads while FULL graphs pad the decode batch?"""

from typing import Any

from hybridwatch.cli import suite


class PaddedGraphRows:
    """Scenario ``smoke/padded-graph-rows``: three requests in graphs of four rows."""

    version = "1"
    timeout = 600

    def setup_cache(self) -> suite.Values:
        return suite.measure_scenario("smoke/padded-graph-rows")

    setup_cache.timeout = 1800  # type: ignore[attr-defined]  # asv reads it from the function

    def track_padded_rows_prefilling(self, values: suite.Values) -> float:
        return suite.worst(values, "contract.padded_rows_prefilling value")

    def track_slots_off_block_table(self, values: suite.Values) -> float:
        return suite.worst(values, "contract.slots_off_block_table value")

    def track_wrong_answers_recall(self, values: suite.Values) -> float:
        return suite.wrong_share(values, "recall")

    def track_wrong_answers_word_problems(self, values: suite.Values) -> float:
        return suite.wrong_share(values, "word_problems")

    def track_output_throughput(self, values: suite.Values) -> dict[str, Any]:
        return suite.samples(values, "output_throughput median")

    def track_seconds_per_token(self, values: suite.Values) -> dict[str, Any]:
        return suite.inverse_samples(values, "output_throughput median")

    def track_ttft(self, values: suite.Values) -> dict[str, Any]:
        return suite.samples(values, "ttft median")

    def track_e2el(self, values: suite.Values) -> dict[str, Any]:
        return suite.samples(values, "e2el median")

    def track_metadata_build_time(self, values: suite.Values) -> dict[str, Any]:
        return suite.samples(values, "metadata_build_time median")

    def track_host_syncs_per_step(self, values: suite.Values) -> dict[str, Any]:
        return suite.samples(values, "host_syncs_per_step mean")


# asv reads the unit from the function; lower is better for all but the first, whose twin in
# seconds is the one to watch.
PaddedGraphRows.track_output_throughput.unit = "tok/s"  # type: ignore[attr-defined]
for _timed in ("seconds_per_token", "ttft", "e2el", "metadata_build_time"):
    getattr(PaddedGraphRows, f"track_{_timed}").unit = "s"
