"""Joules by the driver's counter, on a pretended driver."""

import pytest
from pynvml import NVML_ERROR_DRIVER_NOT_LOADED

from hybridwatch.errors import MeasurementError
from hybridwatch.measurement.load import compute_joules
from tests.pretended_nvml import Card, pretend

COUNTER = "nvmlDeviceGetTotalEnergyConsumption"


def cards(**second):
    return Card(millijoules=5_000), Card("GPU-b", millijoules=70_000, **second)


def test_joules_of_all_gpus_of_an_engine_are_added_up_and_of_no_other(monkeypatch):
    first, second = cards()
    library = pretend(monkeypatch, first, second)
    with compute_joules(["0", "1"]) as read, compute_joules(["1"]) as of_one:
        assert (read(), of_one()) == (75.0, 70.0)
        second.millijoules += 500
        assert (read(), of_one()) == (75.5, 70.5)
    assert library.open == 0


def test_a_gpu_that_does_not_count_leaves_no_sum(monkeypatch):
    pretend(monkeypatch, *cards(refuses=frozenset({COUNTER})))
    with compute_joules(["0", "1"]) as read:
        assert read() is None


def test_an_engine_on_a_cpu_asks_no_driver(monkeypatch):
    pretend(monkeypatch, broken=NVML_ERROR_DRIVER_NOT_LOADED)
    with compute_joules([]) as read:
        assert read() is None


def test_a_driver_that_went_away_fails_the_trial(monkeypatch):
    pretend(monkeypatch, broken=NVML_ERROR_DRIVER_NOT_LOADED)
    with pytest.raises(MeasurementError, match="no NVIDIA driver"), compute_joules(["0"]):
        pass
