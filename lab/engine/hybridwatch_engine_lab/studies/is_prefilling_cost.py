"""``python -m hybridwatch_engine_lab.studies.is_prefilling_cost MODEL``: a question to vllm#42430.

Since that pull request every build of Mamba metadata asks ``torch.any(...).item()`` of flags that
come from ``is_prefilling``. Does that wait for the device, and what does it cost? One engine in one
process decodes batches of several sizes, with two forms of the decision in turn:

- ``upstream``: as released.
- ``ours``: by tensor operations on host memory alone (the fix ``single-token-extend`` as we put it
  in); the question that is then left over in the release's code is answered without a read.

Prints one JSON object: where ``is_prefilling`` lives; for each batch size the reads of tensors by
host code and the waits for the device in ``_compute_common_metadata``, per step, of both forms, and
what both cost. The exit status is 1 when our form reads or waits there, 2 when the release asks
nothing of the kind.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, Final

from hybridwatch_engine.fixes import single_token_extend
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes.counting import Probe
from hybridwatch_engine.probes.device_waits import DeviceWaitsProbe
from hybridwatch_engine.probes.host_sync import HostReadsProbe, runs_on_cuda
from hybridwatch_engine.source import installed_tree

from hybridwatch_engine_lab.studies.stepping import (
    STEPS,
    Forms,
    compute_speeds,
    device_name,
    give,
    own_answer,
    say,
    start,
    step_time_ratio,
    stretch,
    time_stretches,
)

SITE: Final = "BaseMambaAttentionMetadataBuilder._compute_common_metadata"


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the engine, measure both forms at every batch size, print."""
    parser = argparse.ArgumentParser(
        prog="python -m hybridwatch_engine_lab.studies.is_prefilling_cost"
    )
    parser.add_argument("model")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 64, 256])
    parser.add_argument("--rounds", type=int, default=20, help="stretches of each form")
    parser.add_argument("--engine", type=json.loads, default={}, help="engine arguments, as JSON")
    options = parser.parse_args(arguments)
    if single_token_extend.probe(installed_tree()).state != "present":
        sys.stderr.write("is_prefilling_cost: this release does not ask the question\n")
        return 2
    batches: dict[str, dict[str, Any]] = {}
    with own_answer() as answer:
        engine = start(options.model, max(options.batches), options.engine)
        forms = {"upstream": PatchSet(), "ours": without_question()}
        results = {
            "device": device_name(),
            "is_prefilling_lives_on": devices_of_flags(engine),
            "rounds": options.rounds,
            "batches": batches,
        }
        for rows in options.batches:
            batches[str(rows)] = cost(engine, forms, rows, options.rounds)
            give(answer, results)
    return int(any(sum(batch["at_site"]["ours"].values()) for batch in batches.values()))


def without_question() -> PatchSet:
    """Our form of the fix, and an answer to the question that it leaves without an object."""
    from vllm.v1.attention.backends import mamba_attn

    apply = single_token_extend.FIX.apply
    assert apply is not None  # noqa: S101 - it has one
    return PatchSet(*apply().patches, Patch(mamba_attn, "torch", _Unasked))


class _Never:
    """What our form has left over: no row to hand on as a decode."""

    @staticmethod
    def item() -> bool:
        return False


class _Unasked(ModuleType):
    """``torch`` as the module of the Mamba builder sees it, but for the question."""

    def __init__(self, torch: ModuleType) -> None:
        super().__init__(torch.__name__)
        self._torch = torch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._torch, name)

    @staticmethod
    def any(_flags: Any) -> _Never:
        """Our form has taken the flags away before they got here."""
        return _Never()


def devices_of_flags(engine: Any) -> dict[str, int]:
    """Where ``is_prefilling`` lives when a builder gets it: by device, in how many builds."""
    from vllm.v1.attention.backends.mamba_attn import BaseMambaAttentionMetadataBuilder

    found: Counter[str] = Counter()

    def see(original: Callable[..., Any]) -> Callable[..., Any]:
        def compute(builder: Any, common: Any, **kwargs: Any) -> Any:
            found[str(common.is_prefilling.device)] += 1
            return original(builder, common, **kwargs)

        return compute

    seeing = PatchSet(Patch(BaseMambaAttentionMetadataBuilder, "_compute_common_metadata", see))
    seeing.install()
    try:
        stretch(engine, "devices", 1)
    finally:
        seeing.remove()
    return dict(found)


def cost(engine: Any, forms: Forms, rows: int, rounds: int) -> dict[str, Any]:
    """Both forms at one batch size."""
    say(f"{rows} requests")
    found = time_stretches(engine, forms, rows, rounds)
    return {
        **compute_speeds(found),
        "step_time": {"upstream/ours": step_time_ratio(found, "upstream", "ours")},
        "at_site": {name: at_site(engine, forms[name], name, rows) for name in forms},
    }


def at_site(engine: Any, patches: PatchSet, name: str, rows: int) -> dict[str, float]:
    """Reads and waits per step in the function that asks; a CPU has no device to wait for."""
    probes: dict[str, Probe] = {"host_reads": HostReadsProbe()}
    if runs_on_cuda():
        probes["device_waits"] = DeviceWaitsProbe()
    patches.install()
    try:
        return {
            kind: _seen(engine, probe, f"{kind}-{name}", rows) for kind, probe in probes.items()
        }
    finally:
        patches.remove()


def _seen(engine: Any, probe: Probe, name: str, rows: int) -> float:
    probe.start()
    try:
        stretch(engine, name, rows, STEPS)
    finally:
        counts = probe.stop()
    return per_step(counts)


def per_step(counts: Mapping[str, Any]) -> float:
    """How often a step passes the site, by a probe's counts."""
    passed = sum(count for site, count in counts["sites"].items() if f":{SITE}:" in site)
    return float(passed / len(counts["reads_per_step"]))


if __name__ == "__main__":
    sys.exit(main())
