"""The worker's side of the control channel.

vLLM mixes this class into its worker (``--worker-extension-cls``) and calls its methods for
``POST /collective_rpc``. Every answer is plain JSON.
"""

from typing import Any, Protocol

from hybridwatch_engine.check import identity
from hybridwatch_engine.cpu.graph_replay import REPLAYS
from hybridwatch_engine.cpu.idle_rank import idle_rank
from hybridwatch_engine.fixes.switchboard import switchboard
from hybridwatch_engine.probes.contract import ContractProbe
from hybridwatch_engine.probes.host_sync import HostSyncProbe
from hybridwatch_engine.probes.metadata_time import MetadataTimeProbe


class Probe(Protocol):
    """Something that can watch for a while."""

    def start(self) -> None:
        """Begin from zero."""

    def stop(self) -> dict[str, Any]:
        """End, and hand out what was seen."""


PROBES: dict[str, Probe] = {
    "contract": ContractProbe(),
    "host-sync": HostSyncProbe(),
    "metadata-time": MetadataTimeProbe(),
}


class WorkerControl:
    """Methods that the harness may call on every worker; all start with ``hybridwatch_``.

    They answer objects, because vLLM turns any other answer into its text.
    """

    model_runner: Any

    def hybridwatch_identity(self) -> dict[str, Any]:
        """Tell who this engine is: distribution, release, digest, and the state of each fix."""
        return {**identity(), "fixes": switchboard().states()}

    def hybridwatch_switch(self, fix_id: str, wanted: bool) -> dict[str, str]:
        """Turn a fix on or off; answers the state of every fix, or why it could not be done."""
        try:
            switchboard().switch(fix_id, wanted)
        except ValueError as error:
            # Raising here would end the engine; the caller decides what a refusal means.
            return {"error": str(error)}
        return switchboard().states()

    def hybridwatch_probe_start(self, name: str) -> None:
        """Start a probe from zero."""
        PROBES[name].start()

    def hybridwatch_probe_stop(self, name: str) -> dict[str, Any]:
        """Stop a probe; answers what it saw."""
        return PROBES[name].stop()

    def hybridwatch_eager(self, wanted: bool) -> dict[str, bool]:
        """Run without graphs from now on, or with them again; answers what is so now."""
        REPLAYS.eager = wanted
        return {"eager": REPLAYS.eager}

    def hybridwatch_idle_batches(self, batches: int) -> dict[str, int]:
        """Run this many dummy batches whenever the engine becomes idle."""
        idle_rank().set(batches)
        return {"idle_batches": batches}

    def hybridwatch_running(self) -> dict[str, int]:
        """How many requests the batch holds; finished ones leave it with the next step."""
        return {"requests": int(self.model_runner.input_batch.num_reqs)}

    def hybridwatch_clear_rows(self) -> dict[str, int]:
        """Forget what finished requests left in the batch's rows.

        Returns:
            ``requests`` still in the batch; unless that is 0 nothing was cleared, try again.
        """
        batch = self.model_runner.input_batch
        if batch.num_reqs:
            return {"requests": int(batch.num_reqs)}
        batch.num_computed_tokens_cpu_tensor.zero_()
        batch.num_prompt_tokens_cpu_tensor.zero_()
        for table in batch.block_table.block_tables:
            table.block_table.cpu.zero_()
            table.block_table.gpu.zero_()
            table.num_blocks_per_row.fill(0)
        return {"requests": 0}
