"""Sweeps, and call sites and phases: their numbers, their way through a record, older records."""

import json
from dataclasses import replace

import pytest

from hybridwatch.errors import RecordError
from hybridwatch.records.codec import decode, encode
from hybridwatch.records.file_parts import render_sealed
from hybridwatch.records.readings import (
    Place,
    compute_area,
    compute_goodput,
    find_place,
    list_places,
)
from hybridwatch.records.run import CallSite, Curve, HostWork, Phase, Point, Sample, StepPhase
from tests.store_builders import run
from tests.unit.records.test_codec import SMALL


def a_point(load, throughput, tpot, ttft=0.05, requests=4, **more):
    """A point of so many requests, each with the same times."""
    return Point(
        load,
        (
            Sample("output_throughput", (throughput,)),
            Sample("request_throughput", (throughput / 10,)),
            Sample("ttft", (ttft,) * requests),
            Sample("tpot", (tpot,) * requests),
        ),
        **more,
    )


CURVE = Curve("max_concurrency", (a_point(4, 300.0, 0.0125), a_point(1, 100.0, 0.01)))


PLACES = list_places(CURVE) or ()


def with_curve(curve):
    first = replace(SMALL.trials[0], curve=curve)
    return replace(SMALL, trials=(first, *SMALL.trials[1:]))


def test_places_are_in_the_order_of_the_load_and_per_gpu():
    assert PLACES == ((100.0, 100.0), (80.0, 300.0))
    assert list_places(replace(CURVE, gpus=2)) == ((100.0, 50.0), (80.0, 150.0))


def test_the_area_is_the_root_of_what_the_places_cover_together():
    # 80 * 300 below the second, and 20 * 100 beside it.
    assert compute_area(PLACES) == pytest.approx((80 * 300 + 20 * 100) ** 0.5)


@pytest.mark.parametrize("order", [1, -1])
def test_a_place_that_another_one_covers_adds_nothing(order):
    places = PLACES
    assert compute_area([*places, Place(70.0, 290.0)][::order]) == compute_area(places)
    assert compute_area([*places, *places]) == compute_area(places)


def test_an_engine_that_is_slower_by_a_share_loses_that_share_of_the_area():
    slower = [Place(one.interactivity / 1.06, one.throughput / 1.06) for one in PLACES]
    assert compute_area(slower) == pytest.approx(compute_area(PLACES) / 1.06)


@pytest.mark.parametrize("broken", [a_point(2, 100.0, 0.0), a_point(2, 0.0, 0.01), Point(2, ())])
def test_a_point_without_numbers_has_no_place(broken):
    assert find_place(CURVE, broken) is None
    assert list_places(replace(CURVE, points=(*CURVE.points, broken))) is None


def test_goodput_counts_requests_that_keep_every_bound():
    point = Point(
        1,
        (
            Sample("request_throughput", (8.0,)),
            Sample("ttft", (0.1, 0.3, 0.1, 0.2)),
            Sample("tpot", (0.01, 0.01, 0.03, 0.02)),
        ),
    )
    swept = Curve("request_rate", (point,), slo={"ttft": 0.2, "tpot": 0.02})
    assert compute_goodput(swept, point) == 8.0 * 2 / 4
    assert compute_goodput(replace(swept, slo={"tpot": 0.03}), point) == 8.0
    assert compute_goodput(replace(swept, slo={}), point) is None
    lacking = Point(1, (point.samples[0], point.samples[1], Sample("tpot", (0.01,))))
    assert compute_goodput(swept, lacking) is None


def test_a_curve_comes_back_as_it_was_with_the_json_of_each_point():
    points = (
        a_point(1, 100.0, 0.01, joules_per_token=0.5, client_result={"completed": 4}),
        a_point(2, 150.0, 0.0125),
        a_point(4, 200.0, 0.02, client_result={"completed": 4, "itls": [[0.1]]}),
    )
    original = with_curve(Curve("max_concurrency", points, 2, {"tpot": 0.05}))
    encoded = encode(original)
    assert decode(encoded.record, encoded.bulk) == original
    alone = decode(encoded.record, None).trials[0].curve
    assert alone is not None
    assert [point.client_result for point in alone.points] == [None] * 3
    assert alone.points[0].joules_per_token == 0.5


@pytest.mark.parametrize(("clock", "is_kept"), [("wall", False), ("processor", True)])
def test_a_curve_keeps_the_clock_that_is_not_on_the_wall(clock, is_kept):
    original = with_curve(Curve("max_concurrency", (Point(1.0, ()),), clock=clock))
    encoded = encode(original)
    assert (b'"clock"' in encoded.record) is is_kept
    assert decode(encoded.record, None).trials[0].curve == original.trials[0].curve


def test_a_record_without_a_curve_has_no_key_of_it():
    assert b"curve" not in encode(SMALL).record


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda curve: curve["points"][0].update(load=0), r"points\[0\].load: expected greater"),
        (lambda curve: curve["points"][1].update(load=4.0), "expected each load once"),
        (lambda curve: curve.update(points=[]), "at least 1 item"),
        (lambda curve: curve.update(knob="patience"), "knob: expected"),
        (lambda curve: curve["slo"].update(itl=0.1), "slo.itl"),
        (lambda curve: curve["points"][0]["samples"][0].update(metric="speed"), "id of a metric"),
    ],
)
def test_a_curve_that_cannot_be_one_is_refused(change, says):
    raw = json.loads(encode(with_curve(CURVE)).record)
    change(raw["trials"][0]["curve"])
    with pytest.raises(RecordError, match=says):
        decode(render_sealed(raw).encode(), None)


@pytest.mark.parametrize(
    ("points", "says"),
    [
        (CURVE.points[:1], "expected a point less than 1 of trial 0, found 1"),
        ((), "expected a point less than 0 of trial 0, found 0"),
    ],
)
def test_json_of_a_point_that_is_not_there_is_refused(points, says):
    full = tuple(replace(point, client_result={"completed": 4}) for point in CURVE.points)
    whole = encode(with_curve(replace(CURVE, points=full)))
    fewer = encode(with_curve(replace(CURVE, points=points) if points else None))
    raw = {**json.loads(fewer.record), "bulk": json.loads(whole.record)["bulk"]}
    with pytest.raises(RecordError, match=says):
        decode(render_sealed(raw).encode(), whole.bulk)


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
