"""The load registry of one member: the loads in progress, and the outcomes of those that have ended."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from secateur.errors import LimitExceededError, LoadFailedError
from secateur.storage.block import message_bytes
from secateur.storage.change import ChangeOperation
from secateur.storage.layout import TableLayout
from secateur.storage.load import PreparedPart, StagedLoad
from secateur.storage.merge import common_row

_RELEASE_BYTES_MIN: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LoadOutcome:
    """The outcome of a load: published or aborted.

    Attributes:
        published: Whether it was published.
        rows: The rows that it has changed on all members, each once; -1 if that is not known here.
        number: The number of the publication, the same on all members.
    """

    published: bool
    rows: int
    number: int = 0


class LoadRegistry:
    """Keeps loads by id, and the last ``outcomes_max`` outcomes.

    All loads together may have staged ``staged_bytes_max`` bytes of rows; None for no limit.
    """

    def __init__(self, staged_bytes_max: int | None, clock: Callable[[], float], outcomes_max: int) -> None:
        self._outcomes_max = outcomes_max
        self._loads: dict[str, StagedLoad] = {}
        self._outcomes: OrderedDict[str, LoadOutcome] = OrderedDict()
        self.staged_bytes = 0
        """Bytes of the rows of all loads that have not ended."""
        self._staged_bytes_max = staged_bytes_max
        self._clock = clock

    def find(self, load_id: str) -> StagedLoad | None:
        """The load, when it is under way."""
        return self._loads.get(load_id)

    def outcome(self, load_id: str) -> LoadOutcome | None:
        """The outcome of a load; None if it is not remembered."""
        return self._outcomes.get(load_id)

    def of_table(self, table_id: int) -> list[StagedLoad]:
        """The loads under way into a table."""
        return [load for load in self._loads.values() if load.table_id == table_id]

    def all(self) -> list[StagedLoad]:
        """All loads under way: those that are neither published nor aborted. The client of one may be gone."""
        return list(self._loads.values())

    def outcomes(self) -> list[tuple[str, LoadOutcome]]:
        """The outcomes that are remembered, the oldest first."""
        return list(self._outcomes.items())

    def idle(self, seconds: float) -> list[str]:
        """The loads that are not prepared and have got no row for so many seconds. Costs little: it is asked often."""
        since_s = self._clock() - seconds
        return [load.load_id for load in self._loads.values() if load.operation is None and load.touched_s < since_s]

    def age_s(self, load_id: str) -> float:
        """Seconds since the first row of a load arrived; 0 if it is not under way."""
        load = self._loads.get(load_id)
        return 0.0 if load is None else self._clock() - load.began_s

    def open(self, load_id: str, table_id: int) -> StagedLoad:
        """The load that can still be prepared; an unknown id begins one.

        Raises:
            LoadFailedError: It has ended, is prepared, or loads another table.
        """
        load = self._loads.get(load_id)
        if load is None:
            if load_id in self._outcomes:
                raise self.ended(load_id)
            load = self._loads[load_id] = StagedLoad(load_id, table_id, self._clock(), self._clock())
        if load.table_id != table_id:
            raise LoadFailedError(
                f"load {load_id} loads table {load.table_id}, not {table_id}; use a load id of its own for every load",
                load_id=load_id,
            )
        if load.operation is not None:
            raise LoadFailedError(
                f"load {load_id} is prepared already and takes no more rows; use a new load id", load_id=load_id
            )
        return load

    def stage(self, load: StagedLoad, partition: int, attempt: int, rows: pa.Table) -> int:
        """Add rows to an open load.

        Returns:
            Rows of this partition and attempt so far.

        Raises:
            LoadFailedError: Rows of the load have been sorted already.
            LimitExceededError: More would be staged than allowed.
        """
        if load.sorted:
            raise LoadFailedError(
                f"load {load.load_id} is being prepared and takes no more rows; use a new load id", load_id=load.load_id
            )
        nbytes = message_bytes(rows)
        if self._staged_bytes_max is not None and self.staged_bytes + nbytes > self._staged_bytes_max:
            raise LimitExceededError(
                f"load {load.load_id} needs {nbytes} bytes, but {self.staged_bytes} of {self._staged_bytes_max} are"
                " taken by staged rows; publish or abort other loads, or raise the limit",
                load_id=load.load_id,
            )
        kept = load.staged.setdefault((partition, attempt), [])
        kept.append(rows)
        load.rows += rows.num_rows
        load.nbytes += nbytes
        load.touched_s = self._clock()
        self.staged_bytes += nbytes
        return sum(table.num_rows for table in kept)

    def unstage(self, table_id: int, partition: int) -> None:
        """Forget the rows of a partition in all loads under way into its table."""
        for load in self.of_table(table_id):
            load.sorted.pop(partition, None)
            for key in [key for key in load.staged if key[0] == partition]:
                for rows in load.staged.pop(key):
                    nbytes = message_bytes(rows)
                    load.rows -= rows.num_rows
                    load.nbytes -= nbytes
                    self.staged_bytes -= nbytes

    def check_others(
        self, layout: TableLayout, load: StagedLoad, operation: ChangeOperation, part: PreparedPart
    ) -> None:
        """Check that publication works in either order: of two loads with a key in common, none may be an append.

        Raises:
            LoadFailedError: Another prepared load has a key in common.
        """
        for other in self.of_table(load.table_id):
            theirs = other.parts.get(part.partition)
            if other is load or theirs is None or ChangeOperation.APPEND not in (operation, other.operation):
                continue
            row = common_row(layout, theirs.rows, part.rows)
            if row is not None:
                raise LoadFailedError(
                    f"{layout.tdef.name}: load {load.load_id} has key {layout.order.describe(part.rows.table, row)}, "
                    f"and so has load {other.load_id}, which is about to be published; try again after it",
                    load_id=load.load_id,
                    table=layout.tdef.name,
                )

    def end(self, load_id: str, outcome: LoadOutcome) -> None:
        """Forget a load, known or not, and remember how it ended."""
        load = self._loads.pop(load_id, None)
        if load is not None:
            self.staged_bytes -= load.nbytes
            load.staged.clear()
            load.sorted.clear()
            if load.nbytes >= _RELEASE_BYTES_MIN:
                # The frames that brought the rows are free now, but the allocator would keep their memory.
                # Costs a few milliseconds.
                pa.default_memory_pool().release_unused()
        self._outcomes[load_id] = outcome
        while len(self._outcomes) > self._outcomes_max:
            self._outcomes.popitem(last=False)

    def ended(self, load_id: str) -> LoadFailedError:
        """Return the error for a call that names a load that has ended or has not begun."""
        outcome = self._outcomes.get(load_id)
        if outcome is None:
            what = "is not prepared on this member; stage its rows and prepare it first"
        elif outcome.published:
            what = "was published already; use a new load id"
        else:
            what = "was aborted; use a new load id"
        return LoadFailedError(f"load {load_id} {what}", load_id=load_id)
