"""The partial part of a statement over an external table, computed by the processor that reads the rows.

Any division of the rows into pieces gives the same final rows, so a reader holds the rows of one piece at a time. The
larger a piece, the fewer partial rows there are.

Source: aggregation that is pushed below the exchange, as in Trino and Spark; the division into partial and final is
    that of :mod:`secateur.planner.fragments.partial_final`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from secateur.dag.supplier import SupplierContext
from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.runtime.services import MemberServices
from secateur.engine.sql.fragment_call import positional


@dataclass(frozen=True, slots=True)
class PartialRows:
    """Computes partial rows in the threads of the readers of one member.

    Attributes:
        fragment: The partial part, over one relation.
        services: The services of the member.
        cancellation: Ends the kernel calls of the job.
        params: The parameters of the statement.
    """

    fragment: Fragment
    services: MemberServices
    cancellation: Cancellation
    params: tuple[object, ...]

    @classmethod
    def of(cls, fragment: Fragment, context: SupplierContext) -> PartialRows:
        """From the services of the member and the parameters of the job."""
        params = tuple(positional(context.params))
        return cls(fragment, context.service(MemberServices), context.service(Cancellation), params)

    def over(self, rows: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Yield the partial rows of some rows; none if there are none."""
        held: list[pa.Table] = []
        held_bytes = 0
        for table in rows:
            if not table.num_rows:
                continue
            held.append(table)
            held_bytes += table.nbytes
            if held_bytes >= self.services.limits.piece_bytes_max:
                yield self._partial(held)
                held, held_bytes = [], 0
        if held:
            yield self._partial(held)

    def _partial(self, tables: list[pa.Table]) -> pa.Table:
        (relation,) = self.fragment.relations
        return self.services.run_fragment(
            self.fragment, {relation: pa.concat_tables(tables)}, self.params, cancellation=self.cancellation
        )
