"""The worker's side of the control channel.

vLLM mixes this class into its worker (``--worker-extension-cls``) and calls its methods for
``POST /collective_rpc``. Every answer is plain JSON.
"""

from typing import Any

from hybridwatch_engine.capacity import trim
from hybridwatch_engine.check import identity
from hybridwatch_engine.fixes.registry import switchboard
from hybridwatch_engine.grammars import grammar_reader
from hybridwatch_engine.model_runner import clear_cache, clear_rows, is_v2, requests_in
from hybridwatch_engine.mutants.board import mutant_board
from hybridwatch_engine.planter import planter
from hybridwatch_engine.probes.contract import ContractProbe
from hybridwatch_engine.probes.counting import JointProbe, Probe
from hybridwatch_engine.probes.host_sync import HostSyncProbe
from hybridwatch_engine.probes.layers import BlockCopiesProbe, DraftWritesProbe, ReplayedLayersProbe
from hybridwatch_engine.probes.leaks import RequestStatesProbe, count_lost_states
from hybridwatch_engine.probes.max_seq_len import MaxSeqLenProbe
from hybridwatch_engine.probes.recurrent_state import RecurrentStateProbe
from hybridwatch_engine.probes.step_phases import MetadataTimeProbe, StepPhasesProbe
from hybridwatch_engine.probes.token_states import TokenStatesProbe
from hybridwatch_engine.replays import REPLAYS
from hybridwatch_engine.start_times import tell_start
from hybridwatch_engine.steering import draft_gate, idle_rank

_OF_BOTH = (
    ContractProbe(),
    RecurrentStateProbe(),
    TokenStatesProbe(),
    ReplayedLayersProbe(),
    BlockCopiesProbe(),
    RequestStatesProbe(),
)
"""Contracts of either model runner."""

PROBES: dict[str, Probe] = {
    "contract": JointProbe((*_OF_BOTH, DraftWritesProbe())),
    "host-sync": HostSyncProbe(),
    # The second one goes round the first one's hooks, and so adds nothing to what that times.
    "metadata-time": JointProbe((MetadataTimeProbe(), StepPhasesProbe())),
}

PROBES_V2: dict[str, Probe] = {
    **PROBES,
    "contract": JointProbe((*_OF_BOTH, MaxSeqLenProbe())),
}
"""On model runner V2, into which the hooks of V1's contracts do not reach."""


def _probe(runner: Any, name: str) -> Probe:
    return (PROBES_V2 if is_v2(runner) else PROBES)[name]


class WorkerControl:
    """Methods that the harness may call on every worker; all start with ``hybridwatch_``.

    They answer objects, because vLLM turns any other answer into its text.
    """

    model_runner: Any

    def hybridwatch_identity(self) -> dict[str, Any]:
        """Tell who this engine is: distribution, release, digest, runner, fixes, faults."""
        return {
            **identity(),
            "model_runner": "v2" if is_v2(self.model_runner) else "v1",
            "fixes": switchboard().states(),
            "planted": planter().planted,
        }

    def hybridwatch_switch(self, fix_id: str, wanted: bool) -> dict[str, str]:
        """Turn a fix on or off; answers the state of every fix, or why it could not be done."""
        try:
            switchboard().switch(fix_id, wanted)
        except ValueError as error:
            # Raising here would end the engine; the caller decides what a refusal means.
            return {"error": str(error)}
        return switchboard().states()

    def hybridwatch_plant(self, faults: list[str]) -> dict[str, Any]:
        """Have these faults in, and no others; answers what is in, or why it cannot be so."""
        try:
            planter().plant(faults)
        except ValueError as error:
            return {"error": str(error)}
        return {"planted": planter().planted}

    def hybridwatch_mutate(self, name: str | None) -> dict[str, Any]:
        """Have this mutant on from now on, and no other; answers why when that cannot be."""
        return mutant_board("worker").switch(name)

    def hybridwatch_mutant_counts(self) -> dict[str, int]:
        """How often the code of the mutant ran, and changed something, since it is on."""
        return mutant_board("worker").counts()

    def hybridwatch_probe_start(self, name: str) -> None:
        """Start a probe from zero."""
        _probe(self.model_runner, name).start()

    def hybridwatch_probe_stop(self, name: str) -> dict[str, Any]:
        """Stop a probe; answers what it saw."""
        return _probe(self.model_runner, name).stop()

    def hybridwatch_eager(self, wanted: bool) -> dict[str, bool]:
        """Run without graphs from now on, or with them again; answers what is so now."""
        REPLAYS.eager = wanted
        return {"eager": REPLAYS.eager}

    def hybridwatch_speculate(self, wanted: bool) -> dict[str, bool]:
        """Let drafts through from now on, or none."""
        draft_gate().set(is_open=wanted)
        return {"speculate": wanted}

    def hybridwatch_idle_batches(self, batches: int) -> dict[str, int]:
        """Run this many dummy batches whenever the engine becomes idle."""
        idle_rank().set(batches)
        return {"idle_batches": batches}

    def hybridwatch_grammar_breaks(self, answers: list[list[Any]]) -> dict[str, Any]:
        """Find where answers leave their grammars, by the arguments of ``find_break`` of each."""
        model = self.model_runner.model_config
        try:
            reader = grammar_reader(str(model.tokenizer), model.get_vocab_size())
            return {"breaks": [reader.find_break(*one) for one in answers]}
        except Exception as error:  # noqa: BLE001 - raising would end the engine
            return {"error": f"{type(error).__name__}: {error}"}

    def hybridwatch_running(self) -> dict[str, int]:
        """How many requests the batch holds; finished ones leave it with the next step."""
        return {"requests": requests_in(self.model_runner)}

    def hybridwatch_losses(self) -> dict[str, int]:
        """How many requests the batch holds, and how many states are lost if there is none."""
        requests = requests_in(self.model_runner)
        return {
            "requests": requests,
            "lost": 0 if requests else count_lost_states(self.model_runner),
        }

    def hybridwatch_clear_rows(self) -> dict[str, int]:
        """Forget what finished requests left in the batch's rows.

        Returns:
            ``requests`` still in the batch; unless that is 0 nothing was cleared, try again.
        """
        requests = requests_in(self.model_runner)
        if not requests:
            clear_rows(self.model_runner)
        return {"requests": requests}

    def hybridwatch_start_times(self) -> dict[str, float]:
        """Tell how long the phases of this worker's start took, in seconds."""
        return tell_start(self.model_runner)

    def hybridwatch_trim(self) -> dict[str, bool]:
        """Give memory that nobody uses back to the system; answers whether it could."""
        return {"trimmed": trim()}

    def hybridwatch_clear_cache(self) -> dict[str, str]:
        """Fill the cache with zeros; the scheduler has its blocks in their first order again."""
        clear_cache(self.model_runner)
        return {}
