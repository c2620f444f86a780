"""Entry point that vLLM loads in each of its processes (group ``vllm.general_plugins``)."""

import os

from hybridwatch_engine import settings


def register() -> None:
    """Install what the harness's settings name; nothing without settings.

    vLLM may call it several times in one process.

    Raises:
        ValueError: The settings are invalid, or a fix cannot be switched as they say.
    """
    chosen = settings.from_environment()
    if not chosen.active:
        return
    # Imported here: an engine without a harness must not pay for, or break on, our modules.
    from vllm.platforms import current_platform

    from hybridwatch_engine.connections import every_rank, loopback_rendezvous, resting_progress
    from hybridwatch_engine.cpu.graph_replay import replay
    from hybridwatch_engine.cpu.graph_replay_v2 import replay_v2
    from hybridwatch_engine.fixes.registry import switchboard
    from hybridwatch_engine.planter import planter
    from hybridwatch_engine.scheduler_side import scheduler_side
    from hybridwatch_engine.start_times import timed_start

    loopback_rendezvous().install()
    every_rank().install()
    scheduler_side().install()
    if "VLLM_NIXL_SIDE_CHANNEL_PORT" in os.environ:
        resting_progress().install()
    if current_platform.is_cpu():
        _prepare_cpu()
    else:
        _prepare_gpu()
    if chosen.graph_replay:
        (replay_v2() if chosen.model_runner == "v2" else replay()).install()
    if chosen.planted:
        planter().plant(chosen.planted)
    timed_start().install()  # last, round what makes a start slow
    for fix_id, wanted in chosen.fixes.items():
        switchboard().switch(fix_id, wanted)


def _prepare_cpu() -> None:
    from hybridwatch_engine.cpu import platform_gaps
    from hybridwatch_engine.cpu.kernels.install import speculation_kernels
    from hybridwatch_engine.fixes import cpu_speculative_states
    from hybridwatch_engine.fixes.registry import switchboard

    platform_gaps.collectives().install()
    platform_gaps.sleeping_ranks().install()
    platform_gaps.choice_without_triton().install()
    platform_gaps.unpacked_conv_weights().install()
    platform_gaps.half_states().install()
    speculation_kernels().install()
    mended = cpu_speculative_states.FIX.header.id
    if switchboard().states()[mended] == "lacking":
        switchboard().switch(mended, True)


def _prepare_gpu() -> None:
    # A CPU replays by itself, and has no graphs of this kind.
    from hybridwatch_engine.probes.wait_rules import watchable_events
    from hybridwatch_engine.replays import watched_graphs, watched_graphs_v2

    watched_graphs().install()
    watched_graphs_v2().install()
    watchable_events().install()
