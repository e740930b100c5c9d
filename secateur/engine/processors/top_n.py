"""Top-n: the first rows of an order, without keeping the others."""

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
from secateur.errors import DagError


def top_n(n: int, *by: str | SortKey, bytes_max: int = BYTES_MAX) -> TopNSupplier:
    """A vertex that emits its first ``n`` rows in an order, in that order. Of equal rows, those that arrived first.

    Each processor handles its own input. For the first ``n`` of everything use two: one where the rows are, and one
    after an ``all_to_one().distributed()`` edge; at most ``n`` rows of each processor are then sent.

    Args:
        n: At least 0.
        by: As for :func:`~secateur.engine.processors.sort.sort`.
        bytes_max: Bound on the rows kept.

    Raises:
        DagError: ``n`` is negative, no column is named, or one twice. Running, when the input has no such column.
        LimitExceededError: Running, past ``bytes_max``.
    """
    if n < 0:
        raise DagError(f"top_n() was called with n = {n}; n must be at least 0")
    return TopNSupplier(n, sort_keys(by, "top_n()"), bytes_max)


@portable("top-n")
@dataclass(eq=False)
class TopNSupplier(KernelSupplier):
    """The supplier of :func:`top_n`."""

    n: int
    keys: tuple[SortKey, ...]
    bytes_max: int

    def get(self, count: int) -> Sequence[Processor]:
        return [_TopN(self.kernel, self.n, self.keys, self.bytes_max) for _ in range(count)]


class _TopN(GatheringProcessor):
    def __init__(self, kernel: Kernel, n: int, keys: tuple[SortKey, ...], bytes_max: int) -> None:
        super().__init__(
            bytes_max, "ask for fewer rows, select fewer columns upstream, or raise bytes_max", kernel.limits
        )
        self._kernel = kernel
        self._n = n
        self._keys = keys

    def reduce(self, kept: pa.Table | None, new: pa.Table) -> pa.Table:
        table = together(kept, new)
        relation = numbered(table, [key.column for key in self._keys])
        return table.take(
            self._kernel.rows(
                f"SELECT row FROM rows ORDER BY {order_by(self._keys)} LIMIT {self._n:d}", {"rows": relation}
            )
        )
