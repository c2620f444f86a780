"""The worker's side of the control channel.

vLLM mixes this class into its worker (``--worker-extension-cls``) and calls its methods for
``POST /collective_rpc``. Every answer is plain JSON.
"""

from typing import Any, Protocol

from hybridwatch_engine.check import identity
from hybridwatch_engine.fixes.switchboard import switchboard
from hybridwatch_engine.probes.contract import ContractProbe
from hybridwatch_engine.probes.host_sync import HostSyncProbe
from hybridwatch_engine.probes.metadata_time import MetadataTimeProbe


class Probe(Protocol):
    """Something that can watch for a while."""

    def start(self) -> None:
        """Begin from zero."""

    def stop(self) -> Any:
        """End, and hand out what was seen."""


PROBES: dict[str, Probe] = {
    "contract": ContractProbe(),
    "host-sync": HostSyncProbe(),
    "metadata-time": MetadataTimeProbe(),
}


class WorkerControl:
    """Methods that the harness may call on every worker; all start with ``hybridwatch_``."""

    model_runner: Any

    def hybridwatch_identity(self) -> dict[str, Any]:
        """Tell who this engine is: distribution, release, digest, and the state of each fix."""
        return {**identity(), "fixes": switchboard().states()}

    def hybridwatch_switch(self, fix_id: str, wanted: bool) -> str:
        """Turn a fix on or off; returns its new state."""
        return switchboard().switch(fix_id, wanted)

    def hybridwatch_probe_start(self, name: str) -> None:
        """Start a probe from zero."""
        PROBES[name].start()

    def hybridwatch_probe_stop(self, name: str) -> Any:
        """Stop a probe; returns what it saw."""
        return PROBES[name].stop()

    def hybridwatch_clear_rows(self) -> int:
        """Forget what finished requests left in the batch's rows.

        Returns:
            Requests still in the batch; when that is not 0 nothing was cleared, try again later.
        """
        batch = self.model_runner.input_batch
        if batch.num_reqs:
            return int(batch.num_reqs)
        batch.num_computed_tokens_cpu_tensor.zero_()
        batch.num_prompt_tokens_cpu_tensor.zero_()
        for table in batch.block_table.block_tables:
            table.block_table.cpu.zero_()
            table.block_table.gpu.zero_()
            table.num_blocks_per_row.fill(0)
        return 0
