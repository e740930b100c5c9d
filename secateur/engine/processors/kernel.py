"""The member's kernel for processors: it computes over *keys and row numbers*, and Arrow takes the rows.

A processor that sorts, joins or groups passes only the key columns to the kernel, under names of its own, with the
number of each row. The result consists of row numbers, and the rows themselves stay in Arrow: their types, dictionaries
and column names do not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.dag.supplier import ProcessorSupplier, SupplierContext
from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.runtime.services import FragmentRunner, MemberServices
from secateur.engine_limits import EngineLimits
from secateur.errors import DagError, InternalError


class Kernel:
    """Runs SELECTs of one job over tables in memory. For threads: a call may take long, and releases the GIL.

    Attributes:
        limits: Those of the member.
    """

    def __init__(self, run: FragmentRunner, cancellation: Cancellation, limits: EngineLimits | None = None) -> None:
        self.limits = limits or EngineLimits()
        self._run = run
        self._cancellation = cancellation

    @classmethod
    def of(cls, context: SupplierContext) -> Kernel:
        """The kernel of a member, for one job: calls end with the job."""
        services = context.service(MemberServices)
        return cls(services.run_fragment, context.service(Cancellation), services.limits)

    def select(self, sql: str, relations: Mapping[str, pa.Table], columns: Sequence[tuple[str, str]]) -> pa.Table:
        """Answer one SELECT over the names of ``relations``, whose result has columns of these names and SQL types."""
        return self._run(Fragment(sql, tuple(relations), tuple(columns)), relations, cancellation=self._cancellation)

    def rows(self, sql: str, relations: Mapping[str, pa.Table]) -> pa.ChunkedArray:
        """Answer one SELECT whose only column is a row number; int64, in the order of the statement."""
        return self.select(sql, relations, [("row", "BIGINT")]).column(0)


class KernelSupplier(ProcessorSupplier):
    """A supplier whose processors use the member's kernel."""

    init_is_cooperative = True
    close_is_cooperative = True
    _kernel: Kernel | None = None

    def init(self, context: SupplierContext) -> None:
        self._kernel = Kernel.of(context)

    @property
    def kernel(self) -> Kernel:
        """The kernel of the member; only after :meth:`init`."""
        if self._kernel is None:
            raise InternalError(f"{type(self).__name__}.get() was called before its init()")
        return self._kernel


def numbered(table: pa.Table, columns: Sequence[str | int]) -> pa.Table:
    """Some columns of a table, by name or position, as ``k0``, ``k1``, ... behind the number of the row, ``row``.

    Raises:
        DagError: The table has no such column, or several.
    """
    found: dict[str, Any] = {"row": pa.array(np.arange(table.num_rows, dtype=np.int64))}
    for index, column in enumerate(columns):
        found[f"k{index}"] = table.column(column if isinstance(column, int) else column_of(table.schema, column))
    return pa.table(found)


def column_of(schema: pa.Schema, name: str) -> int:
    """The position of a column.

    Raises:
        DagError: The schema has none of that name, or several.
    """
    match schema.get_all_field_indices(name):
        case [position]:
            return int(position)
        case []:
            raise DagError(
                f"there is no column {name!r} in the input, which has"
                f" {', '.join(map(repr, schema.names)) or 'no column'}"
            )
        case several:
            raise DagError(f"the input has {len(several)} columns {name!r}; rename them upstream, so that one is meant")
