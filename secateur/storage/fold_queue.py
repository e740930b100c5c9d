"""Which partitions are to be merged with their recent changes while nobody waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from secateur.storage.hosted_tables import HostedTables
from secateur.storage.partition import Partition

_CALLS_MAX: Final = 10
"""A partition with few recent changes is named after so many calls without another."""
_NEVER: Final = (-1, 0)


class FoldQueue:
    """Names the partitions that were written and are quiet again. On the member's loop thread.

    Without it, the first reader of a whole partition merges its recent changes, and a reader of a part of it merges
    that part each time. A partition that is written all the time is left to its bound of recent changes: a merge that
    is outdated when it is done helps nobody. One with few recent changes is quiet for longer before it is merged,
    because a merge copies all of its rows: single rows that are written to many partitions in turn would otherwise
    each cost a merge.

    Backups are left to their bound as well, since nobody reads them: merging them would take as much of the processor
    again as merging what is read.
    """

    def __init__(self, tables: HostedTables) -> None:
        self._tables = tables
        self._seen: dict[tuple[int, int], tuple[int, int]] = {}  # version, and in how many calls it was still that
        self._unread: set[tuple[int, int]] = set()
        self._owners_version = 0

    def due(self, is_read: Callable[[int, int], bool], owners_version: int) -> list[Partition]:
        """The partitions that have changed, but not since the last call; with few changes, not for some calls.

        Each is named once until it changes again. Cost: a microsecond for each table, and for each partition that was
        written since.

        Args:
            is_read: Whether a partition of a table is read here. Others are named once they are.
            owners_version: Of what ``is_read`` says: it is asked again when this changes.
        """
        if owners_version != self._owners_version:
            self._owners_version = owners_version
            for table_id, number in self._unread:
                if table_id in self._tables:
                    self._tables[table_id].changes.unfolded.add(number)
            self._unread.clear()
        due: list[Partition] = []
        seen: dict[tuple[int, int], tuple[int, int]] = {}
        for table_id, table in self._tables.items():
            unfolded = table.changes.unfolded
            for number in list(unfolded):
                partition = table.partitions.get(number)
                if partition is None:
                    unfolded.discard(number)
                    continue
                version, calls = self._seen.get((table_id, number), _NEVER)
                if partition.version != version:
                    seen[table_id, number] = partition.version, 0
                    continue
                if calls < _CALLS_MAX and (calls or partition.has_few_changes):
                    seen[table_id, number] = version, calls + 1
                    continue
                unfolded.discard(number)
                if not partition.pays_to_fold:
                    continue
                if is_read(table_id, number):
                    due.append(partition)
                else:
                    self._unread.add((table_id, number))
        self._seen = seen
        return due
