"""Code of a scheduler that has, lacks, or cannot have each fix of requests that are displaced."""

from collections.abc import Iterator

SCHEDULER = "v1/core/sched/scheduler.py"

Case = tuple[str, str, dict[str, str]]


RUNNER = "v1/worker/gpu_model_runner.py"
MANAGERS = "v1/core/single_type_kv_cache_manager.py"
UTILS = "v1/worker/utils.py"


def scheduler(step: str = "...", preempt: str = "...", update: str = "...") -> dict[str, str]:
    """A scheduler with these lines in its methods."""
    return {SCHEDULER: f"""
class Scheduler:
    def schedule(self):
        {step}
    def _preempt_request(self, request):
        {preempt}
    def update_from_output(self, output):
        {update}
"""}  # fmt: skip


def cases() -> Iterator[Case]:
    """What each probe must say of the smallest text that holds the telling lines."""
    loop, free = "preempted_req = max(self.running)", "self.manager.free(request)"
    evict = "self.manager.evict_blocks(self.unwritten(request)); self.manager.free(request)"
    yield "withdrawn-blocks", "lacking", scheduler(loop, free)
    yield "withdrawn-blocks", "present", scheduler(loop, evict)
    yield "withdrawn-blocks", "not-applicable", scheduler("self.running.pop()", free)
    yield "withdrawn-blocks", "not-applicable", {SCHEDULER: "class Scheduler: ..."}

    refused = "errors = set(self.grammar_compile_error_reqs)"
    answered = "self.grammar_compile_error_reqs.add(request)"
    yield "hopeless-request", "lacking", scheduler(preempt=free, update=refused)
    yield "hopeless-request", "present", scheduler(preempt=answered, update=refused)
    ended = "self.finish_requests(request, RequestStatus.FINISHED_ERROR)"
    yield "hopeless-request", "present", scheduler(preempt=ended, update=refused)
    yield "hopeless-request", "not-applicable", scheduler(preempt=free)

    yield "connector-hits", "present", scheduler("blocks, hit_diverged = self.look_up()")
    yield "connector-hits", "lacking", scheduler("hit = max(per_group_hits)")
    yield "connector-hits", "not-applicable", scheduler("blocks, hit = self.look_up()")

    yield "external-hits", "present", split("return num_external_computed_tokens + new")
    yield "external-hits", "lacking", split("assert num_external_computed_tokens == 0, 'no'")
    yield "external-hits", "not-applicable", split("return new")
    yield "external-hits", "not-applicable", {SCHEDULER: "class Scheduler: ..."}

    beside = "self.scheduled_running_reqs or num_computed_tokens > 0"
    alone = "num_computed_tokens > 0"
    computed = f"self.scheduled_running_reqs and {alone}"
    yield "lone-prompt-padding", "lacking", scheduler(padding(f"({beside})"))
    yield "lone-prompt-padding", "lacking", scheduler(padding("self.scheduled_running_reqs"))
    yield "lone-prompt-padding", "present", scheduler(padding(alone))
    yield "lone-prompt-padding", "present", scheduler(padding(computed))
    yield "lone-prompt-padding", "not-applicable", scheduler("if tokens == 1: self.pad()")
    yield "lone-prompt-padding", "not-applicable", scheduler("pad_spec_decode = False")

    copy, load = "utils.preprocess_mamba(self)", "self.maybe_get_kv_connector_output()"
    yield "loads-before-copies", "lacking", runner(copy, load)
    yield "loads-before-copies", "present", runner(load, copy)
    yield "loads-before-copies", "not-applicable", runner(load, "...")
    yield "loads-before-copies", "not-applicable", {RUNNER: "class GPUModelRunner: ..."}

    address, bytes_too = "cache.device, cache.data_ptr()", "cache.data_ptr(), cache.shape"
    yield "half-copied-blocks", "lacking", copies(f"key = ({address})")
    yield "half-copied-blocks", "present", copies(f"key = ({bytes_too})")
    storage = "ptr = (cache.device, cache.untyped_storage().data_ptr())"
    yield "half-copied-blocks", "not-applicable", copies(storage)
    yield "half-copied-blocks", "not-applicable", {UTILS: "def bind_kv_cache(): ..."}

    amid = "found = self._checkpoints.get(request)"
    evicts = "self.block_pool._maybe_evict_cached_block(block)"
    yield "passed-block-end", "lacking", states("...", amid)
    yield "passed-block-end", "present", states(evicts, amid)
    yield "passed-block-end", "not-applicable", states("...", "...")
    yield "passed-block-end", "not-applicable", {MANAGERS: "class MambaManager: ..."}


def padding(condition: str) -> str:
    """A step that pads a waiting request to the width of drafts, under a condition."""
    asked = f"self.num_spec_tokens > 0 and not prefill_scheduled and {condition}"
    return f"""
        if {asked}:
            pad_spec_decode = True
"""


def split(line: str) -> dict[str, str]:
    """A scheduler that cuts prompts at the ends of blocks in this way."""
    return {SCHEDULER: f"""
class Scheduler:
    def _mamba_block_aligned_split(self, request, new):
        {line}
"""}  # fmt: skip


def copies(line: str) -> dict[str, str]:
    """A copy of blocks that looks at each layer's cache in this way."""
    return {UTILS: f"""
def copy_kv_cache_blocks_inplace(kv_caches, num_blocks, copies):
    for cache in kv_caches:
        {line}
"""}  # fmt: skip


def states(caching: str, partial: str) -> dict[str, str]:
    """A manager of Mamba states that does this when blocks are cached, and that for the last."""
    return {MANAGERS: f"""
class MambaManager:
    def cache_blocks(self, request, tokens):
        {caching}
    def _cache_partial_tail_block(self, request, tokens):
        {partial}
"""}  # fmt: skip


def runner(first: str, second: str) -> dict[str, str]:
    """A model runner that does this in a step, and then that."""
    return {RUNNER: f"""
class GPUModelRunner:
    def execute_model(self, scheduled):
        {first}
        {second}
"""}  # fmt: skip
