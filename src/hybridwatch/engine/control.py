"""The harness's side of the control channel: our plugin's methods, over ``/collective_rpc``."""

import time
from collections.abc import Mapping
from typing import Any, Final

import httpx

from hybridwatch.engine.server import EngineServer
from hybridwatch.errors import BuildError
from hybridwatch.record.identity import FixState

_TIMEOUT_S: Final = 30.0
_DRAIN_S: Final = 20.0
_POLL_S: Final = 0.02


class EngineControl:
    """Speaks to the plugin in a running engine.

    Args:
        server: The engine.
    """

    def __init__(self, server: EngineServer) -> None:
        self._server = server
        self._http = httpx.Client(base_url=server.url, timeout=_TIMEOUT_S, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def identity(self) -> dict[str, Any]:
        """Distribution, release, wheel digest and the state of each fix, from the engine itself."""
        return self._call("identity")

    def switch(self, fixes: Mapping[str, bool]) -> dict[str, FixState]:
        """Turn fixes on or off on the live engine.

        Args:
            fixes: Fix id to whether it shall be in.

        Returns:
            The state of every fix afterwards.

        Raises:
            BuildError: This release does not allow it.
        """
        for fix_id, wanted in fixes.items():
            answer = self._call("switch", fix_id, wanted)
            if "error" in answer:
                raise BuildError(answer["error"])
        return {fix: FixState(state) for fix, state in self.identity()["fixes"].items()}

    def start_probe(self, name: str) -> None:
        """Let a probe count from zero."""
        self._call("probe_start", name)

    def stop_probe(self, name: str) -> dict[str, Any]:
        """Stop a probe and hand out what it saw."""
        return self._call("probe_stop", name)

    def stale_rows(self) -> frozenset[int]:
        """Batch rows that finished requests left looking as if they were still prefilling."""
        return frozenset(self._call("stale_rows")["rows"])

    def reset(self) -> None:
        """Bring the engine to the state of a fresh one: drained, nothing cached, no stale rows.

        Raises:
            EngineError: Requests are still running after a while, or the engine is mute.
        """
        deadline = time.monotonic() + _DRAIN_S
        while self._call("clear_rows")["requests"]:
            if time.monotonic() > deadline:
                raise self._server.error(f"requests still ran after {_DRAIN_S:.0f} s of draining")
            time.sleep(_POLL_S)
        self._post("/reset_prefix_cache")

    def _call(self, method: str, *arguments: object) -> dict[str, Any]:
        body = {"method": f"hybridwatch_{method}", "args": list(arguments)}
        answer = self._post("/collective_rpc", body).json()
        # One entry per worker; workers of one engine run the same code in step.
        first = answer["results"][0]
        return first if first is not None else {}

    def _post(self, path: str, body: Mapping[str, object] | None = None) -> httpx.Response:
        try:
            return self._http.post(path, json=body).raise_for_status()
        except httpx.HTTPError as error:
            raise self._server.error(f"no answer from the engine to {path}: {error}") from error
