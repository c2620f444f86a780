"""Call sites and phases of host-sync trials: kept whole, and absent from older records."""

import json
from dataclasses import replace

import pytest

from hybridwatch.errors import RecordError
from hybridwatch.records.codec import decode, encode
from hybridwatch.records.run import Phase
from hybridwatch.records.trial_parts import CallSite, HostWork, StepPhase
from tests.store_builders import run

WORK = HostWork(
    sites=(CallSite("vllm/v1/worker/gpu_model_runner.py:GPUModelRunner._sample:12", 8, 0.25),),
    phases=(StepPhase("prepare", 0.001), StepPhase("forward", 0.02)),
)


def with_work():
    made = run()
    trials = [
        replace(trial, host_work=WORK) if trial.phase is Phase.HOST_SYNC else trial
        for trial in made.trials
    ]
    return replace(made, trials=tuple(trials))


def test_host_work_comes_back_as_it_was():
    made = with_work()
    encoded = encode(made)
    assert decode(encoded.record, encoded.bulk) == made
    assert any(trial.host_work == WORK for trial in made.trials)


def test_the_kind_of_a_site_is_kept_where_it_is_known():
    made = with_work()
    waits = replace(WORK, sites=(replace(WORK.sites[0], kind="event"),))
    trials = [replace(t, host_work=waits) if t.host_work else t for t in made.trials]
    known = replace(made, trials=tuple(trials))
    encoded = encode(known)
    assert decode(encoded.record, encoded.bulk) == known
    assert b'"kind"' in encoded.record
    assert b'"kind"' not in encode(made).record


def test_a_record_without_it_does_not_name_it():
    assert b"host_work" not in encode(run()).record


@pytest.mark.parametrize(
    ("kind", "change", "told"),
    [
        ("sites", {"reads": 0}, "reads"),
        ("sites", {"seconds": -1.0}, "seconds"),
        ("phases", {"seconds": "1"}, "seconds"),
        ("phases", {"more": 1}, "more"),
    ],
)
def test_what_cannot_be_is_refused(kind, change, told):
    encoded = encode(with_work())
    raw = json.loads(encoded.record)
    (at, trial) = next((n, t) for n, t in enumerate(raw["trials"]) if "host_work" in t)
    trial["host_work"][kind][0] |= change
    with pytest.raises(RecordError, match=rf"trials\[{at}\].host_work.{kind}\[0\].{told}"):
        decode(json.dumps(raw).encode(), encoded.bulk)
