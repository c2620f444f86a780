"""The file form of a stored verdict, schema version 1: a report and all it takes to have it again.

Field for field what ``results/README.md`` documents. Bytes only: ``verdicts`` knows the disk, and
what is inside ``report`` is documented in ``docs/json.md``.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from hybridwatch.errors import RecordError
from hybridwatch.records.pretty import pretty

VERDICT_SCHEMA: Final = 1

_Digest: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class SideRef(_Wire):
    """Where one side of a report was read.

    Attributes:
        run_id: The run.
        side: Index into its builds.
        record: The record's path, relative to the results folder; absolute when it lies elsewhere.
        sha256: Digest of the record, which holds the digest of the file of answers beside it.
    """

    run_id: str
    side: Annotated[int, Field(ge=0)]
    record: str
    sha256: _Digest


class StoredVerdict(_Wire):
    """A report with the records, the parameters and the tools it was made from.

    Attributes:
        schema_version: Of this form.
        baseline: First side.
        contender: Second side.
        parameters: Every number the rules use that no record holds.
        tools: What computed it, by name, as ``analysis.tools`` has it; of an older verdict with the
            digest of the judging code (``analysis``) in place of the version of the rules.
        report: The report as ``compare --json`` prints it.
    """

    schema_version: Literal[1] = VERDICT_SCHEMA
    baseline: SideRef
    contender: SideRef
    parameters: dict[str, JsonValue]
    tools: dict[str, str]
    report: dict[str, JsonValue]


class _Sealed(StoredVerdict):
    sha256: _Digest


def encode_verdict(verdict: StoredVerdict) -> tuple[bytes, str]:
    """Give the file form of a verdict.

    Returns:
        UTF-8 JSON, and the verdict's digest, which is inside too. Equal verdicts give equal bytes.
    """
    content = verdict.model_dump(mode="json")
    digest = _digest_of(content)
    return f"{pretty({**content, 'sha256': digest})}\n".encode(), digest


def decode_verdict(raw: bytes) -> tuple[StoredVerdict, bool]:
    """Read a verdict back.

    Returns:
        The verdict, and whether it is still as it was written.

    Raises:
        RecordError: This is no verdict, or one of a newer schema; in one line.
    """
    content = _object_of(raw)
    if "trials" in content:
        raise RecordError("not a stored verdict but a record")
    version = content.get("schema_version")
    if isinstance(version, int) and version > VERDICT_SCHEMA:
        raise RecordError(
            f"schema_version: found {version}, but this hybridwatch reads up to "
            f"{VERDICT_SCHEMA}: upgrade hybridwatch"
        )
    try:
        sealed = _Sealed.model_validate(content)
    except ValidationError as error:
        finding = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in finding["loc"])
        raise RecordError(f"not a stored verdict: {where}: {finding['msg']}") from error
    rest = {key: value for key, value in content.items() if key != "sha256"}
    verdict = StoredVerdict.model_validate(rest)
    return verdict, sealed.sha256 == _digest_of(rest)


def _object_of(raw: bytes) -> dict[str, Any]:
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not a stored verdict: expected JSON: {error}") from error
    if not isinstance(content, dict):
        raise RecordError(
            f"not a stored verdict: expected a JSON object, found {type(content).__name__}"
        )
    return content


def _digest_of(content: Mapping[str, Any]) -> str:
    # How the file is laid out does not count, what it says does.
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
