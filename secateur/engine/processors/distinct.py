"""Distinct: emits each row, or each key, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.processor import Processor
from secateur.engine.exchange.row_buffer import together
from secateur.engine.processors.gathering import BYTES_MAX, GatheringProcessor
from secateur.engine.processors.kernel import Kernel, KernelSupplier, numbered


def distinct(*columns: str, bytes_max: int = BYTES_MAX) -> DistinctSupplier:
    """A vertex that emits, of equal rows, the one that arrived first; at the end, in the order of arrival.

    As in SQL, NULL equals NULL, NaN equals NaN, and 0.0 equals -0.0. Each processor handles its own input: feed it
    through an edge that is ``partitioned()`` by the same columns. Another ``distinct`` before that edge reduces what is
    sent.

    Args:
        columns: The columns that have to agree; none: all columns.
        bytes_max: Bound on the rows kept.

    Raises:
        DagError: Running, when the input has no such column.
        LimitExceededError: Running, past ``bytes_max``.
    """
    return DistinctSupplier(columns, bytes_max)


@portable("distinct")
@dataclass(eq=False)
class DistinctSupplier(KernelSupplier):
    """The supplier of :func:`distinct`."""

    columns: tuple[str, ...]
    bytes_max: int

    def get(self, count: int) -> Sequence[Processor]:
        return [_Distinct(self.kernel, self.columns, self.bytes_max) for _ in range(count)]


class _Distinct(GatheringProcessor):
    def __init__(self, kernel: Kernel, columns: tuple[str, ...], bytes_max: int) -> None:
        super().__init__(
            bytes_max,
            "compare fewer columns, partition the edge over more processors, or raise bytes_max",
            kernel.limits,
        )
        self._kernel = kernel
        self._columns = columns

    def reduce(self, kept: pa.Table | None, new: pa.Table) -> pa.Table:
        table = together(kept, new)
        if not table.num_columns:
            return table.slice(0, 1)
        relation = numbered(table, self._columns or range(table.num_columns))
        keys = ", ".join(relation.column_names[1:])
        return table.take(
            self._kernel.rows(f"SELECT min(row) AS row FROM rows GROUP BY {keys} ORDER BY row", {"rows": relation})
        )
