"""What is made ready for a machine with a GPU, before anybody is there."""

from hybridwatch_lab.gpu.pack.leave_out import LeftOut, read_left_out
from hybridwatch_lab.gpu.pack.machine import Machine, read_machine
from hybridwatch_lab.gpu.pack.pack import Pack, PackRequest, make_pack

__all__ = [
    "LeftOut",
    "Machine",
    "Pack",
    "PackRequest",
    "make_pack",
    "read_left_out",
    "read_machine",
]
