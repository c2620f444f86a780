"""The processes of the engines that this test process has started."""

import psutil


def cores() -> list[psutil.Process]:
    """Engine cores, the processes that hold a model; vLLM names them so."""
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if "VLLM::" in " ".join(process.cmdline()) + process.name()
    ]


def kill_guard_and_server() -> list[psutil.Process]:
    """Kill what stands above the cores before it can end them; gives the cores that are left."""
    left, here = cores(), psutil.Process()
    assert left
    above = {process for core in left for process in core.parents()}
    ours = (above & set(here.children(recursive=True))) - set(left)
    # The guard first: while it lives it ends what the server leaves behind.
    for process in sorted(ours, key=psutil.Process.create_time):
        process.kill()
    _, left = psutil.wait_procs(left, timeout=120)
    # Not every machine's first process takes the exit status of what is left to it.
    return [one for one in left if one.status() != psutil.STATUS_ZOMBIE]
