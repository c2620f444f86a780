"""The kernels of Mamba1, which a CPU's build of vLLM lacks: the scan of a prefill, and the update.

Mamba1 has no heads. Each channel has a step size of its own and each entry of its state a decay of
its own, so nothing is shared that a matrix product could use. To the kernel of the state update it
is one head for each group that shares B and C, and a prefill is a row of many tokens of which the
last one's state is stored.

The compiled update asks a state for its fourth axis, and a state of Mamba1 has three: there it ends
with an IndexError. The scan (``_C.selective_scan_fwd``) is built for GPUs alone.
"""

from typing import Any, NamedTuple

from torch import Tensor

from hybridwatch_engine.cpu.kernels.slots import Ending, column_slots
from hybridwatch_engine.cpu.kernels.state_update import UpdateInputs, advance, rows_of


class Prefill(NamedTuple):
    """The arguments of ``selective_scan_fwd``, in vLLM's order.

    Attributes:
        u: Inputs, (channels, tokens).
        delta: Step sizes, likewise.
        a: Rate of decay, (channels, entries).
        b: (groups, entries, tokens).
        c: Like ``b``.
        d: What goes straight to the output, (channels,).
        z: The output is multiplied by its SiLU, like ``u``.
        bias: Added to the step sizes, (channels,).
        softplus: Whether the step size is the softplus of the sum.
        starts: Cumulated tokens of the rows, (rows + 1,).
        slots: Where each row's state lies, (rows,) or in the first of its columns.
        has_initial_state: Whether a row goes on from its state, (rows,); else it begins from zero.
        states: Cache, (slots, channels, entries), changed in place.
        null_block: Slot of no request.
    """

    u: Tensor
    delta: Tensor
    a: Tensor
    b: Tensor
    c: Tensor
    d: Tensor | None
    z: Tensor | None
    bias: Tensor | None
    softplus: bool
    starts: Tensor
    slots: Tensor
    has_initial_state: Tensor | None
    states: Tensor
    null_block: int = 0

    @property
    def groups(self) -> int:
        """How many groups of channels share their B and C."""
        return len(self.b)

    @property
    def cached(self) -> Tensor:
        """The cache as the state update sees it: (slots, groups, channels of one, entries)."""
        return self.states.view(len(self.states), self.groups, -1, self.states.shape[-1])

    def by_token(self, tensor: Tensor) -> Tensor:
        """(channels, tokens) as (tokens, groups, channels of a group)."""
        return tensor.t().reshape(tensor.shape[1], self.groups, -1)

    def by_group(self, tensor: Tensor) -> Tensor:
        """(channels,) as (groups, channels of a group)."""
        return tensor.reshape(self.groups, -1)

    def begin(self) -> None:
        """Zero the states of rows without an initial state."""
        mine = column_slots(self.slots, None)[: len(self.starts) - 1]
        is_fresh = mine != self.null_block
        if self.has_initial_state is not None:
            is_fresh &= ~self.has_initial_state.bool()
        self.cached[mine[is_fresh].long()] = 0

    @property
    def inputs(self) -> UpdateInputs:
        """What changes the states."""
        added = self.a.new_zeros(len(self.a)) if self.bias is None else self.bias
        return UpdateInputs.of(
            self.by_token(self.u),
            self.by_token(self.delta),
            self.a.reshape(self.groups, -1, self.a.shape[-1]),
            self.b.permute(2, 0, 1),
            self.c.permute(2, 0, 1),
            bias=self.by_group(added),
            softplus=self.softplus,
        )

    @property
    def ending(self) -> Ending:
        """The rest of the output."""
        return Ending(
            self.by_token(self.u),
            None if self.d is None else self.by_group(self.d),
            None if self.z is None else self.by_token(self.z),
        )


def scan(*operands: Any) -> None:
    """A prefill step; the outputs replace ``z``, or ``delta`` where there is no ``z``.

    Args:
        operands: As in ``Prefill``; then those of mode ``all``, which stores a state at the end of
            every block.

    Raises:
        NotImplementedError: The mode is ``all``.
    """
    count = len(Prefill._fields)
    if any(isinstance(operand, Tensor) for operand in operands[count + 1 : count + 4]):
        raise NotImplementedError("Mamba1 on a CPU: expected another mode than 'all', found it")
    call = Prefill(*operands[:count])
    rows = rows_of(call.slots, call.slots, None, call.starts, call.null_block)
    call.begin()
    read = advance(call.cached, call.inputs, rows, call.null_block)
    output = call.ending.apply(read)
    (call.delta if call.z is None else call.z).copy_(output.flatten(1).t())


def with_one_head(state: Tensor, operands: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Turn a call of the state update for states without heads into one with one head.

    Args:
        state: (slots, channels, entries).
        operands: ``x``, ``dt``, ``A``, ``B``, ``C``, ``D``, ``dt_bias``, as vLLM hands them over.
        named: The keyword arguments.

    Returns:
        State, operands and keyword arguments; the outputs are the same memory.
    """
    x, dt, a, b, c, d, bias = operands
    by_token = (
        tensor if tensor is None or tensor.dim() == 3 else tensor.unsqueeze(1)
        for tensor in (x, dt, b, c)
    )
    x, dt, b, c = by_token
    skip = None if d is None else d.unsqueeze(0)
    added = a.new_zeros(1, len(a)) if bias is None else bias.unsqueeze(0)
    also = {
        name: None if named.get(name) is None else named[name].unsqueeze(1) for name in ("z", "out")
    }
    return state.unsqueeze(1), (x, dt, a.unsqueeze(0), b, c, skip, added), {**named, **also}
