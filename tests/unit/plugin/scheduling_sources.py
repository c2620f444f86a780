"""Code of a scheduler that has, lacks, or cannot have each fix of requests that are displaced."""

from collections.abc import Iterator

SCHEDULER = "v1/core/sched/scheduler.py"

Case = tuple[str, str, dict[str, str]]


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
