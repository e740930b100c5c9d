"""Logs statements that took long at a member: one line each, with the reason.

The member knows the times; the controller knows the text and how it is pruned, and is asked once for each line. When it
does not answer soon, the line has neither.

Source: PostgreSQL's ``log_min_duration_statement``.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import msgspec

from secateur.errors import Error
from secateur.protocol.query import StatementDescription, StatementEntry
from secateur.structured_logs import FIELDS

_log = logging.getLogger("secateur.slow_statements")

_ASKED_MAX: Final = 16
"""Lines that wait for the controller at once: while everything is slow, it has more to do than this."""
_ANSWER_WAIT_S: Final = 2.0
_TEXT_MAX: Final = 2000
_LARGE_SHARE: Final = 0.5
_UNKNOWN: Final = StatementDescription(None, None, None, None)


class TimeSplit(msgspec.Struct, frozen=True):
    """The time that a statement spent waiting, between the reads of its client, and in kernels.

    Attributes:
        queued_s: Seconds for which it waited for its turn.
        reading_s: Seconds between the parts of its result, in which it waited for its reader.
        kernel_s: Seconds spent in kernel calls in threads, of all stages and members together: more than it took, if
            they ran at the same time. Those for parts of a result that were made after the first do not count.
    """

    queued_s: float = 0.0
    reading_s: float = 0.0
    kernel_s: float = 0.0


class SlowStatements:
    """Writes the lines. Lives on the event loop of a member.

    Args:
        describe: Asks the controller about a statement that has ended.
        start: Begins a task of the member, given its name: one that waits for an answer.
    """

    def __init__(
        self,
        member_id: str,
        describe: Callable[[StatementEntry], Awaitable[StatementDescription]],
        start: Callable[[Coroutine[Any, Any, None], str], None],
    ) -> None:
        self._member_id = member_id
        self._describe = describe
        self._start = start
        self._asked = 0

    def note(self, entry: StatementEntry, split: TimeSplit) -> None:
        """Log a statement that has ended; the line comes when the controller has answered."""
        if self._asked >= _ASKED_MAX:
            self._write(entry, split, _UNKNOWN)
        else:
            self._asked += 1
            self._start(self._ask_and_write(entry, split), f"slow statement {entry.number}")

    async def _ask_and_write(self, entry: StatementEntry, split: TimeSplit) -> None:
        described = _UNKNOWN
        try:
            described = await asyncio.wait_for(self._describe(entry), _ANSWER_WAIT_S)
        except (Error, TimeoutError):
            pass  # the times are worth a line of their own
        finally:
            self._asked -= 1
            self._write(entry, split, described)

    def _write(self, entry: StatementEntry, split: TimeSplit, described: StatementDescription) -> None:
        text = described.statement
        line: dict[str, Any] = {
            "id": f"{self._member_id}:{entry.number}",
            "fingerprint": described.fingerprint,
            "elapsed_ms": round(entry.elapsed_ms, 3),
            "queued_ms": round(1000 * split.queued_s, 3),
            "kernel_ms": round(1000 * split.kernel_s, 3),
            "reading_ms": round(1000 * split.reading_s, 3),
            "why": why_slow(entry, split, described.reason),
            "execution": entry.execution,
            "partitions_read": entry.partitions_read,
            "partitions_total": entry.partitions_total,
            "members": entry.members,
            "members_total": described.members_total,
            "rows": entry.rows,
            "error": entry.error,
            "plan": entry.plan_id,
            "statement": text if text is None or len(text) <= _TEXT_MAX else text[:_TEXT_MAX] + "...",
        }
        _log.warning("slow statement: %s", json.dumps(line, ensure_ascii=False), extra={FIELDS: line})


def why_slow(entry: StatementEntry, split: TimeSplit, reason: str | None) -> str:
    """Say in one sentence where to look first.

    Args:
        entry: The statement.
        split: The split of its time.
        reason: Why it read every partition; None if it did not, or if that is not known.
    """
    large_s = _LARGE_SHARE * entry.elapsed_ms / 1000
    if split.queued_s >= large_s:
        return "queued: it waited for its turn: run fewer statements at once, or raise max_running_statements"
    if split.reading_s >= large_s:
        return "reading: it waited for its client to read the rows: fetch faster, or ask for fewer rows"
    if reason is not None:
        return f"not pruned: {reason}"
    if split.kernel_s >= large_s:
        read = "the rows" if entry.partitions_read is None else f"the rows of {entry.partitions_read} partitions"
        return f"kernel: it computed over {read}: EXPLAIN ANALYZE has the stages"
    if entry.execution in ("distributed", "scatter"):
        return "exchange: it waited for other members: EXPLAIN ANALYZE has the bytes that they sent"
    return (
        "waiting: neither kernel nor queue took the time: look for a busy member, threads that are all in use, or"
        " writes of the same rows"
    )
