"""The root of an engine's end, out of what its processes logged one after the other."""

import pytest

from hybridwatch.system.engine_log import excerpt, find_root

CORE = "(EngineCore pid=71) ERROR 11-25 19:25:43 [core.py:1351] "
FRONT = "(APIServer pid=12) ERROR 11-25 19:25:43 "
CUDA = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
DEAD = f"{FRONT}[async_llm.py:724] vllm.v1.engine.exceptions.EngineDeadError: EngineCore died."
LAST = 40
COMPILER = "main.cpp:19:25: error: 'at::vec' has not been declared"
UNCOMPILED = "CppCompileError: C++ compile error"
WARNED = "(EngineCore pid=71) WARNING 11-25 19:25:02 [import_utils.py:40] "
LOG = "\n".join(
    [
        "(APIServer pid=12) INFO 11-25 19:24:58 [api_server.py:1351] vLLM version 0.27.1",
        f"{WARNED}Traceback (most recent call last):",
        f"{WARNED}ModuleNotFoundError: No module named 'vllm._C_stable'",
        '(APIServer pid=12) INFO:     127.0.0.1:52114 - "GET /health HTTP/1.1" 200 OK',
        f"{CORE}EngineCore encountered a fatal error.",
        f"{CORE}Traceback (most recent call last):",
        *(f'{CORE}  File "/opt/engine/vllm/v1/core.py", line {n}, in step' for n in range(30)),
        f"{CORE}{UNCOMPILED}",
        f"{CORE}",
        f"{CORE}Command:",
        f"{CORE}g++ /tmp/torchinductor/main.cpp -shared -L/opt/my checkout/torch/lib -o main.so",
        f"{CORE}",
        f"{CORE}Output:",
        f"{CORE}{COMPILER}",
        f"{CORE}",
        f"{CORE}The above exception was the direct cause of the following exception:",
        f"{CORE}torch._inductor.exc.InductorError: CppCompileError: C++ compile error",
        f"{FRONT}[async_llm.py:724] AsyncLLM output_handler failed.",
        f"{FRONT}[async_llm.py:724] Traceback (most recent call last):",
        *(f'{FRONT}[async_llm.py:724]   File "/opt/async_llm.py", line {n}' for n in range(60)),
        f"{DEAD} See stack trace (above) for the root cause.",
        "(APIServer pid=12) ERROR:    Traceback (most recent call last):",
        "(APIServer pid=12)     await server_task",
        "(APIServer pid=12) asyncio.exceptions.CancelledError",
        "(APIServer pid=12) KeyboardInterrupt: terminated",
        "nanobind: leaked 4 instances!",
    ]
)  # fmt: skip


@pytest.mark.parametrize(
    ("line", "root"),
    [
        (f"{CORE}{CUDA}", CUDA),
        (f"(EngineCore_0 pid=7) (VllmWorker TP1 pid=9) {CUDA}", CUDA),
        (f"[rank0]: {CUDA}", CUDA),
        ("ERROR 09-27 06:46:46 engine.py:157] RuntimeError: no", "RuntimeError: no"),
        ("ERROR 05-04 08:51:40 [a/.../serving.py:12] KeyError: 'x'", "KeyError: 'x'"),
        ("\x1b[1;36m(EngineCore pid=7)\x1b[0;0m ValueError: bad", "ValueError: bad"),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried",
            "torch.OutOfMemoryError: CUDA out of memory. Tried",
        ),
        ("AssertionError", "AssertionError"),
        ("  what():  CUDA error: misaligned address", "CUDA error: misaligned address"),
        ("Fatal Python error: Aborted", "Fatal Python error: Aborted"),
        (
            "RuntimeError: Worker failed with error 'CUDA error: unspecified launch failure",
            "CUDA error: unspecified launch failure",
        ),
    ],
)
def test_the_root_is_found_behind_every_prefix(line, root):
    assert find_root(f"{CORE}Traceback (most recent call last):\n{line}\n{DEAD}") == root


@pytest.mark.parametrize(
    "line",
    [
        f"{CORE}    raise ValueError('shape')",
        f"{CORE}EngineCore encountered a fatal error.",
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above.",
        f"{FRONT}[a.py:1] vllm.v1.engine.exceptions.EngineDeadError: EngineCore died.",
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "asyncio.exceptions.CancelledError",
        "INFO: 127.0.0.1 - POST /v1/completions 500 Internal Server Error",
        "",
    ],
)
def test_what_only_points_at_an_error_is_no_root(line):
    assert find_root(line) is None
    assert find_root(f"{line}\n{CORE}ValueError: shape\n{line}") == "ValueError: shape"


def test_the_innermost_error_is_the_first():
    chained = f"{CORE}ValueError: inner\n{CORE}RuntimeError: outer\n{DEAD}"
    assert find_root(chained) == "ValueError: inner"


def test_the_end_of_a_log_alone_would_not_tell() -> None:
    assert find_root("\n".join(LOG.splitlines()[-LAST:])) is None


def test_the_first_exception_of_the_engines_own_processes_is_the_root() -> None:
    assert find_root(LOG) == UNCOMPILED
    front = f"{FRONT}[serving.py:1] ValueError: a request that nobody can answer"
    assert find_root(f"{front}\n{LOG}") == UNCOMPILED
    assert find_root(front) == "ValueError: a request that nobody can answer"


def test_an_excerpt_begins_with_the_root_and_ends_as_the_log_ends() -> None:
    told = excerpt(LOG, LAST)
    lines = told.splitlines()
    assert lines[0].endswith("line 29, in step")
    assert lines[1] == f"{CORE}{UNCOMPILED}"
    assert f"{CORE}{COMPILER}" in lines
    assert lines[-LAST:] == LOG.splitlines()[-LAST:]
    assert lines[-LAST - 1] == "..."
    assert find_root(told) == UNCOMPILED


@pytest.mark.parametrize("ahead", [LAST - 1, LAST, LAST + 1, LAST + 12, LAST + 13])
def test_no_line_is_reported_twice(ahead) -> None:
    log = "\n".join([f"{CORE}ValueError: shape", *map(str, range(ahead))])
    told = [line for line in excerpt(log, LAST).splitlines() if line != "..."]
    assert len(told) == len(set(told))
    assert told[0] == f"{CORE}ValueError: shape"
    assert told[-1] == str(ahead - 1)


def test_a_log_without_an_error_is_reported_by_its_end() -> None:
    assert excerpt("".join(f"{n}\n" for n in range(50)), 2) == "48\n49\n"
    assert excerpt("", 2) == ""
