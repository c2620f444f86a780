"""Every error that hybridwatch raises on purpose.

Messages name the file, the key, what was found and what was expected.
"""

from pathlib import Path


class HybridwatchError(Exception):
    """Root of the tree: one clear line for a person; the command line exits with 2."""


class ScenarioError(HybridwatchError):
    """A scenario file is not valid."""


class BuildError(HybridwatchError):
    """An engine build is unknown, is not installed, or does not fit the request."""


class MissingError(HybridwatchError):
    """What a page of the dashboard is to show is not in the store."""


class GpuError(HybridwatchError):
    """A GPU is needed, and the machine has none, no driver, or one that does not answer."""


class MachineError(HybridwatchError):
    """The machine lacks something without which no engine comes up; a line for each."""


class CampaignError(HybridwatchError):
    """A campaign's plan says something we do not understand, or its folder cannot be used."""


class FleetError(HybridwatchError):
    """A fleet's file says something we do not understand, or its queue or hosts cannot be used."""


class LostProbeError(FleetError):
    """A measurement that a search waits for does not come; what it knows already stands."""


class RecordError(HybridwatchError):
    """A record cannot be read, or cannot be written."""


class RecordConflictError(RecordError):
    """The store holds another record of the same run; records never change."""


class IngestError(HybridwatchError):
    """A file of another tool cannot be read; the message names key, what was found and expected."""


class ExportError(HybridwatchError):
    """Records cannot be written in the form of another tool."""


class ComparisonError(HybridwatchError):
    """Two runs cannot be compared."""


class HistoryError(HybridwatchError):
    """A history cannot be read, or holds values in which no change can be looked for."""


class PolicyError(HybridwatchError):
    """The policy of a gate is not valid."""


class DatabaseError(HybridwatchError):
    """The database of what records gave cannot be reached, read or written."""


class TriageError(HybridwatchError):
    """What people decided about alerts cannot be read or kept, or is nothing to be kept."""


class TokenError(HybridwatchError):
    """A token of the API cannot be made, is not known, or cannot be kept."""


class ApiError(HybridwatchError):
    """A server of the API refused a request, gave no answer of ours, or could not be reached."""


class GithubError(HybridwatchError):
    """GitHub refused a request, or something that came from there must not be used.

    Args:
        message: What happened, in one line.
        status: Of GitHub's answer; ``None`` where there is none.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class NotifyError(HybridwatchError):
    """A file of channels says something we do not understand, or news cannot be sent or kept."""


class ServerCheckError(HybridwatchError):
    """A server cannot be checked: its address is none, or it does not answer."""


class MeasurementError(HybridwatchError):
    """A trial gave no measurement (a *failed trial*): the session records it and goes on."""


class EngineError(MeasurementError):
    """The engine died, hung, or answered something that is no answer.

    Args:
        message: What happened, in one line.
        log_tail: The last lines of the engine's log, empty if it wrote none.

    Attributes:
        log: The whole log, where it is kept.
    """

    def __init__(self, message: str, log_tail: str = "") -> None:
        super().__init__(message)
        self.log_tail = log_tail
        self.log: Path | None = None

    @property
    def cause(self) -> str:
        """The message, and in a second line where the whole log is kept, if it is."""
        return str(self) if self.log is None else f"{self}\nlog: {self.log}"


class LateEngineError(EngineError):
    """The engine was not up in time, as on a slow machine: that says nothing of what it is."""
