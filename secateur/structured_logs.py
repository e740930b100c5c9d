"""Log lines of secateur as JSON, one object a line, for whatever collects and searches logs.

It is about the logger ``secateur`` and those beneath it, in processes whose logging is secateur's own: members and the
controller on Ray, and the commands. Nothing is done unless it is asked for.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import msgspec

from secateur.tracing import current_trace

FIELDS: Final = "secateur_fields"
"""The attribute of a record that has its values by name; its message is then the text in front of the first colon."""
LOG_FORMATS: Final = ("text", "json")
"""The values of the setting ``log_format``."""


class StructuredFormatter(logging.Formatter):
    """Formats a record as JSON: ``timestamp``, ``level``, ``logger``, ``member``, ``message``.

    Where they apply, there are also ``fields``, ``exception`` with the traceback, and ``trace_id`` and ``span_id``.

    Args:
        member: The member, or ``controller``, whose process this is; None for a process that is neither.
    """

    def __init__(self, member: str | None = None) -> None:
        super().__init__()
        self._member = member

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, FIELDS, None)
        line: dict[str, Any] = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
            "level": record.levelname,
            "logger": record.name,
            "member": self._member,
            "message": record.getMessage() if fields is None else str(record.msg).partition(":")[0],
        }
        if fields is not None:
            line["fields"] = fields
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        trace = current_trace()
        if trace is not None:
            line["trace_id"], line["span_id"] = trace
        try:
            return msgspec.json.encode(line, enc_hook=str).decode()
        except UnicodeEncodeError:  # half a surrogate pair, which JSON can only escape
            return json.dumps(line, default=str)


def use_log_format(log_format: str, member: str | None = None) -> None:
    """Have the lines of this process written as ``log_format`` says: ``text`` changes nothing.

    Args:
        log_format: One of :data:`LOG_FORMATS`.
        member: As for :class:`StructuredFormatter`.
    """
    if log_format == "json":
        write_structured_logs(member)


def write_structured_logs(member: str | None = None, into: TextIO | None = None) -> None:
    """Write the lines of secateur in this process as JSON from now on, and nowhere else.

    Calling it again replaces what it has done before.

    Args:
        member: As for :class:`StructuredFormatter`.
        into: Where; None for standard error.
    """
    logger = logging.getLogger("secateur")
    for handler in list(logger.handlers):
        if isinstance(handler.formatter, StructuredFormatter):
            logger.removeHandler(handler)
    handler = logging.StreamHandler(sys.stderr if into is None else into)
    handler.setFormatter(StructuredFormatter(member))
    logger.addHandler(handler)
    logger.propagate = False
