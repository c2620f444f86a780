"""A KV connector that keeps nothing and restores nothing.

vLLM loads it by its name (``kv_connector_module_path``) where a scenario asks for
``engine.kv_connector = "empty"``. An engine must answer with it as without it; but with any
connector attached the scheduler looks prompts up in the prefix cache in another way.
"""

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    SupportsHMA,
)


class EmptyConnector(KVConnectorBase_V1, SupportsHMA):  # type: ignore[misc]  # vLLM has no types here
    """Says of every prompt that it has nothing of it."""

    def get_num_new_matched_tokens(self, *_: Any) -> tuple[int, bool]:
        """Nothing can be loaded."""
        return 0, False

    def update_state_after_alloc(self, *_: Any) -> None:
        """Nothing is to be loaded."""

    def build_connector_meta(self, _: Any) -> KVConnectorMetadata:
        """Nothing is to be done in this step."""
        return KVConnectorMetadata()

    def request_finished_all_groups(self, *_: Any) -> tuple[bool, None]:
        """The blocks may go."""
        return False, None

    def start_load_kv(self, *_: Any, **__: Any) -> None:
        """Load nothing."""

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Wait for nothing."""

    def save_kv_layer(self, *_: Any, **__: Any) -> None:
        """Save nothing."""

    def wait_for_save(self) -> None:
        """Wait for nothing."""
