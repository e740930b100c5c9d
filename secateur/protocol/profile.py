"""The profile of a query or a change, by stage and member: the figures of EXPLAIN ANALYZE."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import asdict


class StageWork(msgspec.Struct, frozen=True, array_like=True):
    """The work of one stage of a query on one member.

    Attributes:
        stage: Its name, as EXPLAIN has it; a query that one member answers whole has the one stage ``local``, what is
            changed in several partitions ends with the stage ``publish``, what is changed in one with ``copy``, for the
            members that keep a backup of it.
        member: Id of the member.
        partitions: Partitions read there, a replicated table counting as one; 0 for a stage that reads none.
        rows_in: Rows that came from other stages; for ``local``, the rows read from the partitions.
        rows_out: Rows made.
        bytes_out: Their bytes.
        sent_bytes: Bytes sent to other members.
        kernel_ms: Milliseconds spent in kernel calls in threads.
        busy_ms: Milliseconds spent on the event loop, also in kernel calls over a few rows; for ``publish`` and rows
            that a client sends, until the member had answered.
    """

    stage: str
    member: str
    partitions: int = 0
    rows_in: int = 0
    rows_out: int = 0
    bytes_out: int = 0
    sent_bytes: int = 0
    kernel_ms: float = 0.0
    busy_ms: float = 0.0


class RunProfile(msgspec.Struct, frozen=True):
    """The work of a run of a query.

    Attributes:
        rows: Rows of its result.
        bytes: Their bytes.
        work: In the order of the stages; of a query in steps, those of each step before those of the rest, with the
            number of the step before their names.
    """

    rows: int
    bytes: int
    work: tuple[StageWork, ...]

    @property
    def kernel_ms(self) -> float:
        """Milliseconds spent in kernel calls in threads, of all stages and members together."""
        return sum(work.kernel_ms for work in self.work)

    @property
    def exchange_bytes(self) -> int:
        """Bytes that members sent to one another."""
        return sum(work.sent_bytes for work in self.work)

    @property
    def stages(self) -> dict[str, list[StageWork]]:
        """The work of each stage, by its name."""
        stages: dict[str, list[StageWork]] = {}
        for work in self.work:
            stages.setdefault(work.stage, []).append(work)
        return stages

    def to_json(self) -> dict[str, Any]:
        """The JSON form in ``EXPLAIN (ANALYZE, FORMAT JSON)``."""
        stages = [
            {
                "name": name,
                "rows": sum(work.rows_out for work in works),
                "bytes": sum(work.bytes_out for work in works),
                "members": [{key: value for key, value in asdict(work).items() if key != "stage"} for work in works],
            }
            for name, works in self.stages.items()
        ]
        return {
            "result_bytes": self.bytes,
            "kernel_ms": self.kernel_ms,
            "exchange_bytes": self.exchange_bytes,
            "stages": stages,
        }
