"""Probes that are asked as one."""

from hybridwatch_engine.probes.joint import JointProbe


class Recorder:
    def __init__(self, name, log):
        self._name, self._log = name, log

    def start(self):
        self._log.append(f"start {self._name}")

    def stop(self):
        self._log.append(f"stop {self._name}")
        return {self._name: len(self._log)}


def test_all_begin_in_order_and_the_last_one_ends_first():
    log: list[str] = []
    probe = JointProbe((Recorder("first", log), Recorder("second", log)))
    probe.start()
    assert probe.stop() == {"first": 4, "second": 3}
    assert log == ["start first", "start second", "stop second", "stop first"]
