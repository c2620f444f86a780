"""Why an engine did not come up, out of what its processes log in each kind of such an end."""

import pytest

from hybridwatch.system.engine_log import excerpt, first_cause

SITE = "/srv/.engines/cpu-0.32.0/lib/python3.11/site-packages/"
FRONT = "(APIServer pid=3972) "
CORE = "(EngineCore pid=6345) ERROR 11-26 19:19:10 [core.py:1510] "
WORKER = "(VllmWorker-0 pid=26929) ERROR 11-26 19:05:15 [multiproc_executor.py:953] "
HARMLESS = (
    f"{FRONT}WARNING 11-26 19:18:27 [system_utils.py:255] This can cause `OSError: [Errno 24]`\n"
)
FAILED = "RuntimeError: Engine core initialization failed. See root cause above. "
WORKER_FAILED = "Exception: WorkerProc initialization failed. See stack trace for root cause."
EXECUTOR = f"{SITE}vllm/v1/executor/multiproc_executor.py"


def traceback(prefix, error, *frames):
    """What a process logs of an error, the innermost frame last."""
    lines = ["Traceback (most recent call last):"]
    for file, line in frames:
        lines += [f'  File "{file}", line {line}, in step', "    self.step(", "    ^^^^^^^^^^"]
    return "".join(f"{prefix}{line}\n" for line in [*lines, *error.splitlines()])


def front_ends(failed="{}"):
    """What the serving process logs when its core is gone."""
    frames = [("<frozen runpy>", 88), (f"{SITE}vllm/v1/engine/utils.py", 1431)]
    return traceback("", f"{FAILED}Failed core proc(s): {failed}", *frames)


def core_raises(error, *frames):
    """The log of an engine whose core has its worker in it: the core says it twice."""
    both = [(f"{SITE}vllm/v1/engine/core.py", 1482), *frames]
    told = traceback(CORE, error, *both) + "Process EngineCore:\n" + traceback("", error, *both)
    return HARMLESS + told + front_ends()


def worker_raises(error, *frames):
    """The log of an engine whose worker is a process of its own, below the core."""
    core = traceback(CORE, WORKER_FAILED, (EXECUTOR, 815))
    return HARMLESS + traceback(WORKER, error, *frames) + core + front_ends()


USAGE = "usage: serve.py [-h] [--model MODEL]\n                [--port PORT]\n"
KILLED = "killed, as the kernel does where memory runs out"
CRASHED = "it crashed or was killed"
KEY = "KeyError: 'no_such_layer'"
RUNNERS = ("gpu_model_runner.py", "gpu/model_runner.py")
REFUSED = "pydantic_core._pydantic_core.ValidationError: 1 validation error for"
INVALID = f"""\
{REFUSED} ModelConfig
  Value error, it is too long. [type=value_error, input_value=ArgsKwargs(())]
    For further information visit https://errors.pydantic.dev/2.12/v/value_error"""
ONE_FIELD = f"""\
{REFUSED} CacheConfig
mode
  Input should be 'align' [type=literal_error, input_value='all', input_type=str]
    For further information visit https://errors.pydantic.dev/2.12/v/literal_error"""

CAUSES = {
    "wrong argument": (
        f"{USAGE}serve.py: error: unrecognized arguments: --no-such-flag\n",
        "unrecognized arguments: --no-such-flag",
    ),
    "wrong value": (
        f"{USAGE}serve.py: error: argument --mamba-cache-mode: invalid choice: 'all'\n",
        "argument --mamba-cache-mode: invalid choice: 'all'",
    ),
    "no room in the cache": (
        core_raises("ValueError: no room for 1024 tokens", (f"{SITE}vllm/v1/core/kv.py", 1030)),
        "ValueError: no room for 1024 tokens (vllm/v1/core/kv.py:1030)",
    ),
    "no memory, a worker of its own": (
        worker_raises("ValueError: 13 of 16 GiB", (f"{SITE}vllm/v1/worker/cpu_worker.py", 83)),
        "ValueError: 13 of 16 GiB (vllm/v1/worker/cpu_worker.py:83)",
    ),
    **{
        f"code of a plugin, {runner}": (
            core_raises(KEY, (f"{SITE}vllm/v1/worker/{runner}", 27), ("/srv/mine/patch.py", 13)),
            f"{KEY} (/srv/mine/patch.py:13)",
        )
        for runner in RUNNERS
    },
    "code of a plugin, a worker of its own": (
        worker_raises(KEY, ("/srv/mine/patch.py", 13)),
        f"{KEY} (/srv/mine/patch.py:13)",
    ),
    "configuration refused": (
        HARMLESS + traceback(FRONT, INVALID, (f"{SITE}vllm/engine/arg_utils.py", 9)),
        f"{REFUSED} ModelConfig: Value error, it is too long. (vllm/engine/arg_utils.py:9)",
    ),
    "a field refused": (
        traceback("", ONE_FIELD, (f"{SITE}vllm/engine/arg_utils.py", 9)),
        f"{REFUSED} CacheConfig: mode: Input should be 'align' (vllm/engine/arg_utils.py:9)",
    ),
    "core killed": (
        HARMLESS + front_ends("{'EngineCore': -9}"),
        f"EngineCore ended without a word: {KILLED}",
    ),
    "core crashed, with a status that nobody has": (
        HARMLESS + front_ends(),
        f"a process of the engine ended without a word: {CRASHED}",
    ),
    "core left": (
        HARMLESS + front_ends("{'EngineCore_DP0': 3}"),
        "EngineCore_DP0 ended without a word: status 3",
    ),
    "worker killed": (
        f"{CORE}Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down.\n",
        f"VllmWorker-0 ended without a word: {KILLED}",
    ),
    "worker gone, a release that keeps its status": (
        f"{CORE}Worker proc VllmWorker-1 died unexpectedly, shutting down executor.\n",
        f"VllmWorker-1 ended without a word: {CRASHED}",
    ),
    "worker killed at its start, of which the core says the same as of one that raised": (
        HARMLESS + traceback(CORE, WORKER_FAILED, (EXECUTOR, 815)) + front_ends(),
        f"a process of the engine ended without a word: {CRASHED}",
    ),
    "port in use": (
        HARMLESS
        + traceback(
            FRONT, "OSError: [Errno 98] Address already in use", (f"{SITE}vllm/entry.py", 120)
        ),
        "OSError: [Errno 98] Address already in use (vllm/entry.py:120)",
    ),
    "import in the plugin": (
        traceback(
            FRONT,
            "ModuleNotFoundError: No module named 'mine.gone'",
            (f"{SITE}vllm/plugins/__init__.py", 88),
            ("/srv/mine/plugin.py", 20),
            ("<frozen importlib._bootstrap>", 1126),
        ),
        "ModuleNotFoundError: No module named 'mine.gone' (/srv/mine/plugin.py:20)",
    ),
}


@pytest.mark.parametrize("kind", CAUSES)
def test_the_cause_is_reported_with_its_place(kind):
    log, cause = CAUSES[kind]
    assert first_cause(log) == cause


@pytest.mark.parametrize("kind", CAUSES)
def test_an_excerpt_tells_the_same_however_much_follows(kind):
    log, cause = CAUSES[kind]
    much = "it is gone, and says so\n" * 99
    assert first_cause(excerpt(log + much, 40)) == cause


def test_lines_of_two_processes_in_turn_are_not_mixed_up():
    mine = traceback(CORE, KEY, ("/srv/mine/patch.py", 13)).splitlines()
    others = traceback("(EngineCore pid=9) INFO 11-26 19:19:10 [a.py:1] ", "fine", ("/srv/b.py", 2))
    both = [line for pair in zip(mine, others.splitlines(), strict=True) for line in pair]
    assert first_cause("\n".join(both)) == f"{KEY} (/srv/mine/patch.py:13)"


def test_a_cause_with_advice_is_cut_and_keeps_its_place():
    log = core_raises(f"ValueError: no memory. {'Try this. ' * 99}", (f"{SITE}vllm/kv.py", 3))
    cause = first_cause(log)
    assert cause is not None
    assert cause.endswith("\N{HORIZONTAL ELLIPSIS} (vllm/kv.py:3)")
    assert len(cause) < 300


def test_a_compiler_and_a_healthy_engine_have_no_cause():
    assert first_cause("main.cpp:19:25: error: 'at::vec' has not been declared\n") is None
    assert first_cause(HARMLESS) is None
