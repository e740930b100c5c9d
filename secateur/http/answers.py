"""What the HTTP server and its client know of an answer: the state of its statement, and its rows as an Arrow stream.

Beside the schema of an Arrow stream stands what a JSON answer says of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec
import pyarrow as pa

from secateur.errors import ProtocolError

ARROW_TYPE: Final = "application/vnd.apache.arrow.stream"
"""The media type of an Arrow IPC stream."""
_KEY: Final = b"secateur"


class StatementState(StrEnum):
    """The state of a statement; the last three are final."""

    WAITING = "waiting"
    """It waits for a thread of the server."""
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether it will not change any more."""
        return self in (StatementState.DONE, StatementState.FAILED, StatementState.CANCELLED)


def described(schema: pa.Schema, description: Mapping[str, Any]) -> pa.Schema:
    """A schema with the JSON answer, without its rows, among its metadata."""
    return schema.with_metadata({**(schema.metadata or {}), _KEY: msgspec.json.encode(description)})


def description_of(schema: pa.Schema) -> bytes:
    """The JSON that :func:`described` has put there.

    Raises:
        ProtocolError: There is none.
    """
    found: bytes | None = (schema.metadata or {}).get(_KEY)
    if found is None:
        raise ProtocolError(
            "an Arrow stream came without the description that secateur's HTTP server sends with it: does the address"
            " belong to another service, or to an older server?"
        )
    return found
