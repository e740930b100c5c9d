"""The tables that a member hosts, by id, and its partitions of each.

A *read version* is the version of a table when it was read, so that a later read can detect changes. The reader chooses
a token and sends it with both reads; nothing is sent back. A member that does not have the token, or
has dropped it, reports a change.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from secateur.errors import OperationalError, PartitionLostError, TopologyChangedError, UnknownTableError
from secateur.storage.change import ChangeCount
from secateur.storage.layout import TableLayout
from secateur.storage.partition import Partition


@dataclass(slots=True)
class HostedTable:
    """One table on one member.

    Attributes:
        layout: Its description, and what is derived from it.
        partitions: The partitions on this member, by number.
        changes: Counts changes of any kind.
        published: Number of the last published load; 0 before the first.
        arriving: The partitions whose rows are on their way from another member. Nobody counts on those.
    """

    layout: TableLayout
    partitions: dict[int, Partition]
    changes: ChangeCount
    published: int = 0
    arriving: set[int] = field(default_factory=set)

    def partition(self, number: int) -> Partition:
        """One partition.

        Raises:
            TopologyChangedError: It is not here.
            PartitionLostError: It is that of a replicated table, which no member has any more.
        """
        try:
            return self.partitions[number]
        except KeyError:
            raise self._not_here(number) from None

    def pick(self, numbers: Iterable[int]) -> list[Partition]:
        """Several partitions; one that is named twice comes once.

        Raises:
            Error: As :meth:`partition`.
        """
        try:
            return [self.partitions[number] for number in dict.fromkeys(numbers)]
        except KeyError as missing:
            raise self._not_here(missing.args[0]) from None

    def _not_here(self, number: int) -> OperationalError:
        name = self.layout.tdef.name
        if self.layout.tdef.replicated:  # every member has it, unless this one has found none to copy it from
            return PartitionLostError(
                f"every member that had the rows of replicated table {name} has left the cluster: they are lost. DROP"
                " the table, CREATE it again and load it; with a data directory they survive the end of all members",
                table=name,
                partition=number,
            )
        return TopologyChangedError(
            f"partition {number} of {name} is not on this member; fetch the topology again and retry",
            table=name,
            partition=number,
        )


class HostedTables(dict[int, HostedTable]):
    """The tables by id."""

    def table(self, table_id: int) -> HostedTable:
        """One table.

        Raises:
            UnknownTableError: It is not here.
        """
        try:
            return self[table_id]
        except KeyError:
            message = (
                f"this member has no table with id {table_id}; it was dropped or altered, or the catalog here is"
                " older than yours"
            )
            raise UnknownTableError(message, table_id=table_id) from None


_MARKS_MAX: Final = 4096
"""Reads whose second half is milliseconds away, each for some tables."""


class ReadVersions:
    """The marks of one member. Lives on its event loop.

    Args:
        marks_max: How many are kept; the oldest go first.
    """

    def __init__(self, marks_max: int = _MARKS_MAX) -> None:
        self._changes: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._marks_max = marks_max

    def note(self, mark: str, table_id: int, changes: int) -> None:
        """Record that a table was read under a token after ``changes`` changes; of several reads, the first counts."""
        self._changes.setdefault((mark, table_id), changes)
        if len(self._changes) > self._marks_max:
            self._changes.popitem(last=False)

    def is_unchanged(self, mark: str, table_id: int, changes: int) -> bool:
        """Whether a table with ``changes`` changes was read under a token and has not changed since."""
        return self._changes.get((mark, table_id)) == changes
