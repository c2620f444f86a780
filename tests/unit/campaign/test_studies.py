"""What studies of a campaign answered, as lines of the page of findings."""

import json

import pytest

from hybridwatch.errors import CampaignError
from hybridwatch.records.store.files import append_entry
from hybridwatch_lab.gpu.campaign.runner import JOURNAL, End, StageEntry
from hybridwatch_lab.gpu.campaign.studies import costs_in
from hybridwatch_lab.gpu.cost import Cost, Ratio

STEP_TIME = {"ratio": 1.01, "low": 0.99, "high": 1.03}
FIX = {
    "device": "NVIDIA H100",
    "syncs": "waits for the device",
    "fixes": {
        "single-token-extend": {
            "8": {"step_time": {"ours/upstream": STEP_TIME}, "syncs_added": {"ours": 0}}
        },
        "cannot-be-had": {},
    },
}
AT_EIGHT = {"8": {"step_time": STEP_TIME}}
PROBE = {"device": "NVIDIA H100", "batches": AT_EIGHT}
READ = {
    "device": "NVIDIA H100",
    "batches": {
        "64": {
            "step_time": {"upstream/ours": STEP_TIME},
            "at_site": {
                "upstream": {"host_reads": 1, "device_waits": 1},
                "ours": {"host_reads": 0},
            },
        }
    },
}


@pytest.fixture
def answer(tmp_path):
    """Keeps what a study printed in a campaign of this day."""

    def keep(study, content, *, day="2026-11-22", end=End.ANSWERED):
        folder = tmp_path / "campaigns" / day
        left = () if end is End.FAILED else (f"{study}.out",)
        command = ("python", "-m", f"hybridwatch_engine_lab.studies.{study}")
        entry = StageEntry(stage=study, end=end, command=command, left=left)
        append_entry(folder / JOURNAL, entry)
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{study}.out").write_text(f"{text}\n")
        return tmp_path

    return keep


def test_cost_of_a_fix_has_its_ratio_its_waits_and_its_file(answer):
    assert costs_in(answer("fix_cost", FIX)) == [
        Cost(
            "NVIDIA H100",
            "single-token-extend",
            8,
            "ours/upstream",
            Ratio(1.01, 0.99, 1.03),
            "0 waits for the device added per step",
            "campaigns/2026-11-22/fix_cost.out",
        )
    ]


def test_cost_of_the_probe_and_of_a_read_are_reported(answer):
    answer("probe_cost", PROBE)
    costs = costs_in(answer("is_prefilling_cost", READ))
    assert [(one.subject, one.batch, one.forms) for one in costs] == [
        ("host-sync probe", 8, "on/off"),
        ("read of is_prefilling", 64, "upstream/ours"),
    ]
    assert costs[1].remark == "upstream: 1 host reads, 1 device waits; ours: 0 host reads"


def test_newest_campaign_counts(answer):
    answer("probe_cost", PROBE)
    newer = {**PROBE, "batches": {"16": {"step_time": STEP_TIME}}}
    (cost,) = costs_in(answer("probe_cost", newer, day="2026-11-23"))
    assert cost.batch == 16


def test_study_that_was_ended_gives_what_it_had_found_until_then(answer):
    two = {**PROBE, "batches": {**AT_EIGHT, "64": {"step_time": STEP_TIME}}}
    lines = "\n".join((json.dumps(PROBE), json.dumps(two), '{"device": "NVI'))
    results = answer("probe_cost", "", end=End.TIMED_OUT)
    (results / "campaigns" / "2026-11-22" / "probe_cost.out").write_text(lines)
    assert [cost.batch for cost in costs_in(results)] == [8, 64]


def test_study_that_failed_gives_no_figure(answer):
    assert costs_in(answer("probe_cost", "Traceback", end=End.FAILED)) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "the file: Invalid JSON"),
        ({**PROBE, "batches": {"8": {}}}, r"batches\.8\.step_time: Field required"),
        ({**PROBE, "batches": {"8": {"step_time": {**STEP_TIME, "ratio": -1}}}}, "greater than 0"),
    ],
)
def test_answer_of_another_shape_is_refused_with_file_and_key(answer, content, says):
    with pytest.raises(CampaignError, match=rf"probe_cost\.out: .*{says}"):
        costs_in(answer("probe_cost", content))
