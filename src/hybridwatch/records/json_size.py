"""How much JSON there is in bytes, before anything is made of them.

Three bytes can become an object of hundreds. What is counted here costs a block of memory whatever
the bytes are.
"""

from collections.abc import Iterator
from typing import Final

_BLOCK: Final = 2**16


def check_json_size(raw: bytes, most_values: int, most_parts: int) -> None:
    """Check that JSON has no more values, nor lists, objects and keys (parts), than it may.

    An empty list counts as two values. Of what is no JSON, that is counted which stands before the
    fault, so no parser makes more of it.
    """
    values, parts = 1, 0
    for text in _outside_strings(raw):
        opened = text.count(b"[") + text.count(b"{")
        values += opened + text.count(b",")
        parts += opened + text.count(b":")
        if parts > most_parts:
            raise ValueError(f"expected at most {most_parts} lists, objects and keys, found more")
        if values > most_values:
            raise ValueError(f"expected at most {most_values} values, found more")


def _outside_strings(raw: bytes) -> Iterator[bytes]:
    """Yield, block by block, what stands in no string."""
    is_inside, kept = False, b""
    for start in range(0, len(raw), _BLOCK):
        block = kept + raw[start : start + _BLOCK]
        # A backslash and what it escapes stay together.
        kept = b"\\" * ((len(block) - len(block.rstrip(b"\\"))) % 2)
        parts = block.removesuffix(kept).replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
        yield b"".join(parts[is_inside::2])
        is_inside ^= len(parts) % 2 == 0
