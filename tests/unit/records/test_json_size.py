import json
import subprocess
import sys
from typing import Any

import pytest

from hybridwatch.records.json_checks import check_json_size


def sizes(value: Any) -> tuple[int, int]:
    """Count as a reader of the code would: every value, every list, object and key."""
    if isinstance(value, dict):
        inner, keys = [sizes(one) for one in value.values()], len(value)
    elif isinstance(value, list):
        inner, keys = [sizes(one) for one in value], 0
    else:
        return 1, 0
    empty = 0 if inner else 1
    return 1 + empty + sum(one[0] for one in inner), 1 + keys + sum(one[1] for one in inner)


DOCUMENTS: tuple[Any, ...] = (
    [],
    {"a": ['x,"\\[{:', "\\", '"', 1, 2, [], {}], 'b\\"': {"c": "\\" * 70_001 + '"[['}},
    [{"k": "," * 65_534 + '"'}] * 5,
    [["\\" * at + '"{[,:', at] for at in range(200)],
    "é∀" * 50_000,
)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_is_counted_is_there_and_texts_are_left_out(document: Any) -> None:
    values, parts = sizes(document)
    for raw in (json.dumps(document).encode(), json.dumps(document, ensure_ascii=False).encode()):
        check_json_size(raw, values, parts)
        with pytest.raises(ValueError, match=f"expected at most {values - 1} values"):
            check_json_size(raw, values - 1, parts)
        if parts:
            with pytest.raises(ValueError, match=f"at most {parts - 1} lists, objects and keys"):
                check_json_size(raw, values, parts - 1)


_ATTACKS = {
    "objects of one key": b'{"x":[' + b'{"a":1},' * 99_000 + b"1]}",
    "trials without keys": b'{"trials":[' + b'{"a":1},' * 99_000 + b"1]}",
    "more objects than may be": b'{"x":[' + b'{"a":1},' * 1_900_000 + b"1]}",
    "numbers": b'{"x":[' + b"0.123456," * 1_900_000 + b"1]}",
    "keys": b"{" + b",".join(b'"%x":1' % at for at in range(190_000)) + b"}",
    "a wide text": '{"x":"😀'.encode() + b"a" * 20_000_000 + b'"}',
    "another encoding": ("[" + "{}," * 2_000_000 + "1]").encode("utf-16"),
    "levels": b"[" * 1_000_000,
}
_READ = """
import resource, sys
from hybridwatch.errors import RecordError
from hybridwatch.records.codec import decode_record
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
raw = sys.stdin.buffer.read()
try: decode_record(b"{}")
except RecordError: before = peak()
try: decode_record(raw)
except RecordError as error: print(peak() - before, error)
"""


@pytest.mark.parametrize("kind", _ATTACKS)
def test_a_record_takes_little_memory_to_refuse(kind: str) -> None:
    raw = _ATTACKS[kind]
    done = subprocess.run(
        [sys.executable, "-c", _READ], input=raw, capture_output=True, check=True, timeout=60
    )
    mebibytes, said = done.stdout.decode().split(" ", 1)
    assert "expected" in said
    # Small ones take what a parser takes to begin with.
    assert int(mebibytes) <= 50 + 10 * len(raw) / 2**20
    assert int(mebibytes) <= 300
