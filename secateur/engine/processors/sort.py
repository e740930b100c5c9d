"""Sort: emits all rows of a processor in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.processor import Processor
from secateur.engine.exchange.row_buffer import together
from secateur.engine.processors.gathering import BYTES_MAX, GatheringProcessor
from secateur.engine.processors.kernel import Kernel, KernelSupplier, numbered
from secateur.engine.processors.sort_key import SortKey, order_by, sort_keys


def sort(*by: str | SortKey, bytes_max: int = BYTES_MAX) -> SortSupplier:
    """A vertex that emits its rows in order, once it has all. Rows with equal keys stay in the order of arrival.

    Each processor sorts its own input: for one order over everything feed it through ``all_to_one().distributed()``, or
    sort where the rows are and :func:`~secateur.engine.processors.merge.merge`.

    Args:
        by: Columns by name, or as :class:`SortKey`; see :func:`desc`.
        bytes_max: Bound on the rows that one processor keeps in memory. What the kernel needs beside them, keys and row
            numbers, spills where the member has a spill directory.

    Raises:
        DagError: No column is named, or one twice. Running, when the input has no such column.
        LimitExceededError: Running, past ``bytes_max``.
    """
    return SortSupplier(sort_keys(by, "sort()"), bytes_max)


@portable("sort")
@dataclass(eq=False)
class SortSupplier(KernelSupplier):
    """The supplier of :func:`sort`."""

    keys: tuple[SortKey, ...]
    bytes_max: int

    def get(self, count: int) -> Sequence[Processor]:
        return [SortProcessor(self.kernel, self.keys, self.bytes_max) for _ in range(count)]


class SortProcessor(GatheringProcessor):
    """Keeps everything, and sorts it at the end."""

    def __init__(self, kernel: Kernel, keys: tuple[SortKey, ...], bytes_max: int) -> None:
        super().__init__(
            bytes_max,
            "sort fewer rows (top_n() keeps n), select fewer columns upstream, spread the rows over more processors, or"
            " raise bytes_max",
            kernel.limits,
        )
        self._kernel = kernel
        self._keys = keys

    def is_full(self) -> bool:
        return False  # there is nothing to leave out before the end

    def reduce(self, kept: pa.Table | None, new: pa.Table) -> pa.Table:
        table = together(kept, new)
        relation = numbered(table, [key.column for key in self._keys])
        return table.take(
            self._kernel.rows(f"SELECT row FROM rows ORDER BY {order_by(self._keys)}", {"rows": relation})
        )
