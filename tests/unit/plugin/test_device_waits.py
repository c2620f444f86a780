"""The CUDA half of the host-sync probe: each wait of a pretended driver once, at its place."""

import inspect
import random
import threading
import warnings
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hybridwatch_engine.probes import wait_rules
from hybridwatch_engine.probes.device_waits import ALLOCATOR_EVERY, DeviceWaitsProbe

from tests.unit.plugin.fake_cuda import IDLE, WAIT_NS, WORK, make_world, surface_of


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def probe(world):
    made = DeviceWaitsProbe(lambda: surface_of(world), clock=lambda: world.driver.now)
    yield made
    made.stop()


def step(world, work=lambda: None):
    world.Runner().execute_model(WORK, work)


WAITING = {
    "item": lambda w: w.Tensor().item(),
    "bool": lambda w: bool(w.Tensor()),
    "tolist": lambda w: w.Tensor().tolist(),
    "nonzero": lambda w: w.Tensor().nonzero(),
    "cpu": lambda w: w.Tensor().cpu(),
    "to a device": lambda w: w.Tensor().to("cpu"),
    "to a tensor": lambda w: w.Tensor().to(w.Tensor(device="cpu")),
    "upload": lambda w: w.Tensor(device="cpu").to("cuda:0"),
    "download": lambda w: w.Tensor(device="cpu", pinned=True).copy_(w.Tensor()),
    "into pageable memory": lambda w: w.Tensor(device="cpu").copy_(w.Tensor(), non_blocking=True),
    "blocking upload": lambda w: w.Tensor().copy_(w.Tensor(device="cpu", pinned=True), False),
    "event": lambda w: w.Event().synchronize(),
    "stream": lambda w: w.Stream().synchronize(),
    "select": lambda w: w.Tensor().masked_select(w.Tensor()),
    "mask": lambda w: w.Tensor()[w.Tensor()],
}
FREE = {
    "item on the host": lambda w: w.Tensor(device="cpu").item(),
    "bool on the host": lambda w: bool(w.Tensor(device="cpu")),
    "tolist on the host": lambda w: w.Tensor(device="cpu").tolist(),
    "nonzero on the host": lambda w: w.Tensor(device="cpu").nonzero(),
    "nothing to list": lambda w: w.Tensor([]).tolist(),
    "to where it is": lambda w: w.Tensor().to("cuda:0"),
    "to a dtype": lambda w: w.Tensor().to(SimpleNamespace(itemsize=4)),
    "told not to block": lambda w: w.Tensor().to("cpu", None, True),
    "told by name": lambda w: w.Tensor(device="cpu").to(device="cuda", non_blocking=True),
    "into pinned memory": lambda w: w.Tensor(device="cpu", pinned=True).copy_(w.Tensor(), True),
    "out of pageable memory": lambda w: w.Tensor().copy_(w.Tensor(device="cpu"), True),
    "on the device": lambda w: w.Tensor().copy_(w.Tensor()),
    "select on the host": lambda w: w.Tensor().masked_select(w.Tensor(device="cpu")),
}


@pytest.mark.parametrize("name", WAITING)
def test_what_waits_is_counted_once(world, probe, name):
    probe.start()
    step(world, lambda: WAITING[name](world))
    told = probe.stop()
    assert world.driver.waits == 1
    assert told["reads_per_step"] == [1]
    ((site, count),) = told["sites"].items()
    assert count == 1
    assert "test_device_waits.py:" in site


@pytest.mark.parametrize("name", FREE)
def test_what_waits_for_nobody_is_not_counted(world, probe, name):
    probe.start()
    step(world, lambda: FREE[name](world))
    assert world.driver.waits == 0
    assert probe.stop()["reads_per_step"] == [0]


def test_any_mixture_is_counted_as_the_driver_counts_it(world, probe):
    rng = random.Random(8)
    calls = list({**WAITING, **FREE}.values())
    probe.start()
    counted = []
    for _ in range(60):
        before = world.driver.waits
        chosen = rng.choices(calls, k=rng.randrange(12))
        step(world, lambda chosen=chosen: [call(world) for call in chosen])
        counted.append(world.driver.waits - before)
    told = probe.stop()
    assert told["reads_per_step"] == counted
    assert sum(told["sites"].values()) == sum(counted) > 100
    assert sum(sum(kinds.values()) for kinds in told["site_kinds"].values()) == sum(counted)


def test_sites_are_the_lines_that_wait_with_their_kind_and_time(world, probe):
    def work():
        world.Tensor().item()
        world.Tensor()[world.Tensor()]

    lines, first = inspect.getsourcelines(work)
    probe.start()
    step(world, work)
    told = probe.stop()
    lines_of = {int(site.rpartition(":")[2]) - first: site for site in told["sites"]}
    assert set(lines_of) == {1, 2}
    assert len(lines) == 3
    assert told["site_kinds"] == {lines_of[1]: {"item": 1}, lines_of[2]: {"other": 1}}
    assert told["site_seconds"] == {lines_of[1]: WAIT_NS / 1e9, lines_of[2]: 0.0}
    assert told["untimed"] == 1


def test_times_of_a_step_are_its_waits_and_end_with_what_is_done_for_it(world, probe):
    def later():
        world.driver.now += 5 * WAIT_NS
        world.Event().synchronize()

    probe.start()
    runner = world.Runner()
    runner.execute_model(WORK, lambda: bool(world.Tensor()))
    runner.sample_tokens(later)
    world.driver.now += 1000 * WAIT_NS  # nobody asks for anything
    step(world)
    told = probe.stop()
    assert told["reads_per_step"] == [2, 0]
    assert told["wait_seconds_per_step"] == [2 * WAIT_NS / 1e9, 0.0]
    assert told["step_seconds"] == [7 * WAIT_NS / 1e9, 0.0]


def test_what_is_no_step_has_no_waits(world, probe):
    probe.start()
    world.Tensor().item()
    world.Tensor()[world.Tensor()]
    world.Runner().execute_model(IDLE, lambda: world.Tensor().item())
    world.Runner().execute_model(WORK, lambda: world.Tensor().item(), dummy_run=True)
    told = probe.stop()
    assert told["reads_per_step"] == []
    assert told["sites"] == {}


def test_a_counted_call_makes_no_warning(world, probe):
    probe.start()
    step(world, lambda: [world.Tensor().item() for _ in range(5)])
    assert world.driver.warnings == 0
    assert world.driver.mode == 1
    step(world, lambda: world.Tensor()[world.Tensor()])
    assert world.driver.warnings == 1


def test_waits_of_other_threads_hold_no_step_up(world, probe):
    def elsewhere():
        thread = threading.Thread(target=lambda: world.Event().synchronize())
        thread.start()
        thread.join()

    probe.start()
    step(world, elsewhere)
    told = probe.stop()
    assert told["reads_per_step"] == [0]
    assert told["sites"] == {}
    assert told["other_threads"] == {"waits": 1, "seconds": WAIT_NS / 1e9}


def test_waits_of_the_allocator_are_put_down_soon(world, probe):
    def release():
        world.driver.allocator_syncs += 2

    probe.start()
    step(world, release)
    for _ in range(ALLOCATOR_EVERY):
        step(world)
    told = probe.stop()
    assert sum(told["reads_per_step"]) == 2
    assert told["sites"] == {"(allocator)": 2}
    assert told["untimed"] == 2


def test_an_event_that_nobody_recorded_is_not_waited_for(world, probe):
    event = world.Event()
    event.cuda_event = 0
    probe.start()
    step(world, event.synchronize)
    assert probe.stop()["reads_per_step"] == [0]


@pytest.mark.parametrize(
    ("event", "recorded"),
    [
        (SimpleNamespace(cuda_event=7, event_id=7), True),
        (SimpleNamespace(cuda_event=0, event_id=3), False),
        (SimpleNamespace(event_id=5), True),
        (SimpleNamespace(event_id=0), False),  # a torch.Event
        (SimpleNamespace(), True),
    ],
)
def test_events_of_either_kind_tell_whether_they_were_recorded(event, recorded):
    assert wait_rules.waits((event,), {}) is recorded


def test_who_waits_for_an_event_silences_no_other_thread(world, probe):
    seen = []
    world.Event.synchronize = lambda _: seen.append(world.driver.mode)
    probe.start()
    step(world, world.Event().synchronize)
    assert seen == [1]
    assert probe.stop()["reads_per_step"] == [1]


def test_a_probe_that_is_off_leaves_nothing_behind(world, probe):
    kinds = (world.Tensor, world.Event, world.Stream, world.Runner)
    before = [dict(vars(kind)) for kind in kinds]
    showing, filters = warnings.showwarning, list(warnings.filters)
    probe.start()
    assert [dict(vars(kind)) for kind in kinds] != before
    probe.stop()
    assert [dict(vars(kind)) for kind in kinds] == before
    assert (warnings.showwarning, list(warnings.filters)) == (showing, filters)
    assert world.driver.mode == 0


def test_other_warnings_are_shown_as_ever(world, probe):
    def warn():
        warnings.warn("of another kind", stacklevel=1)

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        probe.start()
        step(world, warn)
        step(world, lambda: world.Tensor()[world.Tensor()])
        probe.stop()
    assert [str(one.message) for one in shown] == ["of another kind"]


def test_a_second_start_counts_again_and_a_stopped_probe_tells_the_same(world, probe):
    def counts_of(waits):
        probe.start()
        step(world, lambda: [world.Tensor().item() for _ in range(waits)])
        return probe.stop()

    assert counts_of(2)["reads_per_step"] == [2]
    again = counts_of(3)
    assert again["reads_per_step"] == [3]
    assert probe.stop() == again


def _with_rule(surface, name, rule):
    changed = (
        replace(one, rule=rule) if one.function[1] == name else one for one in surface.wrapped
    )
    return replace(surface, wrapped=tuple(changed))


def test_a_rule_that_takes_host_tensors_for_the_devices_is_found_out(world):
    """A planted defect: what the mixture above is held against does tell."""
    surface = _with_rule(surface_of(world), "item", wait_rules.waits)
    probe = DeviceWaitsProbe(lambda: surface)
    probe.start()
    step(world, lambda: world.Tensor(device="cpu").item())
    assert sum(probe.stop()["reads_per_step"]) != world.driver.waits


def test_a_probe_that_forgets_that_it_is_inside_counts_twice(world, monkeypatch):
    """A planted defect: ``bool`` reads by ``item``."""

    class Forgetful(dict[int, int | None]):
        def __contains__(self, _thread):
            return False

        def __delitem__(self, thread):
            self.pop(thread, None)

    probe = DeviceWaitsProbe(lambda: surface_of(world))
    monkeypatch.setattr(probe, "_inside", Forgetful())
    probe.start()
    step(world, lambda: bool(world.Tensor()))
    assert sum(probe.stop()["reads_per_step"]) > world.driver.waits
