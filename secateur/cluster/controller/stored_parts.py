"""Sums up for the system tables what the members report of each table: sizes and uses of its partitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from secateur.protocol.membership import MemberStats

Answers = Iterable[tuple[str, MemberStats]]


@dataclass(slots=True)
class TableParts:
    """The size of a table on all members: rows and bytes of each partition at one copy, and the bytes of all copies."""

    rows: dict[int, int]
    partition_bytes: dict[int, int]
    bytes: int


def stored_parts(answers: Answers) -> dict[int, TableParts]:
    """Sum up the sizes of each table on all members, by table id.

    Args:
        answers: The ids of members, and their reports.
    """
    found: dict[int, TableParts] = {}
    for _, answer in answers:
        for table in answer.tables:
            parts = found.setdefault(table.table_id, TableParts({}, {}, 0))
            for partition, rows in table.rows.items():
                parts.rows[partition] = max(rows, parts.rows.get(partition, 0))
            for partition, size in table.partition_bytes.items():
                parts.partition_bytes[partition] = max(size, parts.partition_bytes.get(partition, 0))
            parts.bytes += table.bytes
    return found


class PartitionUse(NamedTuple):
    """The uses of a partition since its primary has it.

    Attributes:
        reads: Reads of statements and jobs, and look-ups of keys.
        writes: Changes, each load that was published once.
    """

    reads: int
    writes: int


class PartitionHits:
    """The uses of all partitions, as members have reported them.

    Args:
        answers: The ids of members, and their reports, with hits.
    """

    def __init__(self, answers: Answers) -> None:
        self._used = {(member, used.table_id): used for member, answer in answers for used in answer.used}

    def of(self, table_id: int, partition: int, primary: str | None) -> PartitionUse:
        """The uses of a partition at its primary, which answers all readers."""
        used = None if primary is None else self._used.get((primary, table_id))
        if used is None:
            return PartitionUse(0, 0)
        return PartitionUse(used.reads.get(partition, 0), used.writes.get(partition, 0))

    def of_replicated(self, table_id: int) -> PartitionUse:
        """The uses of a replicated table: each member answers its own readers, and all make the same changes."""
        found = [used for (_, known), used in self._used.items() if known == table_id]
        return PartitionUse(
            sum(used.reads.get(0, 0) for used in found), max((used.writes.get(0, 0) for used in found), default=0)
        )
