"""The fixes that scenarios and engine builds can name, and how they hang together.

The plugin in the engine says what each of them does (``hybridwatch_engine.fixes``); a test
holds the two lists against each other.
"""

from collections.abc import Mapping
from typing import Final, Literal, get_args

FixId = Literal[
    "padded-rows-prefilling",
    "single-token-extend",
    "draft-max-seq-len",
    "draft-max-seq-len-target",
    "draft-max-seq-len-draft",
    "all-cache-spec-decode",
    "all-cache-spec-decode-slots",
    "all-cache-spec-decode-graph-rows",
    "all-cache-spec-decode-anchor",
    "all-cache-spec-decode-memory",
    "stale-block-table",
    "stale-block-table-finished-rows",
    "stale-block-table-vacated-rows",
    "dummy-run-padding",
    "one-token-prompt",
    "prev-step-anchor",
    "accepted-counts",
    "conv-anchor",
    "block-end-states",
    "cpu-speculative-states",
    "draft-model-cache-group",
]
FIXES: Final[tuple[str, ...]] = get_args(FixId)
"""Ids of the fixes that can be applied or reverted; each is some scenario's known-bad control."""

FIX_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "draft-max-seq-len": ("draft-max-seq-len-target", "draft-max-seq-len-draft"),
    "all-cache-spec-decode": (
        "all-cache-spec-decode-slots",
        "all-cache-spec-decode-graph-rows",
        "all-cache-spec-decode-anchor",
        "all-cache-spec-decode-memory",
    ),
    "stale-block-table": ("stale-block-table-finished-rows", "stale-block-table-vacated-rows"),
}
"""Fixes that consist of others: the whole is switched by switching its parts."""

START_FIXES: Final[frozenset[FixId]] = frozenset(
    {
        "all-cache-spec-decode-slots",
        "all-cache-spec-decode-graph-rows",
        "all-cache-spec-decode-memory",
    }
)
"""Fixes that act while an engine starts: builds that differ in one have an engine each."""
