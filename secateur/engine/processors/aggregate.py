"""Aggregation in one stage, or in two: partial results where the rows are, and final ones where the keys meet.

Distinct rows are groups without aggregates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from typing import Final, assert_never

import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.processor import Processor
from secateur.dag.supplier import ReplicatedMetaSupplier
from secateur.engine.exchange.batches import BATCH_ROWS, together
from secateur.engine.processors.aggregates import AggregateExpression, AggregateOperation, OperationGrouping
from secateur.engine.processors.gathering import BYTES_MAX, GatheringProcessor
from secateur.engine.processors.grouping import Grouping, KernelGrouping, checked_names
from secateur.engine.processors.kernel import Kernel, KernelSupplier, numbered
from secateur.errors import DagError

_WORTHWHILE: Final = 2
"""So many rows to a key make it worth to group partial results again with later rows; those of keys that hardly repeat
are sent on.
"""

Aggregates = Mapping[str, AggregateExpression] | Mapping[str, AggregateOperation]


class AggregationPhase(Enum):
    """Which part of an aggregation a processor does."""

    ACCUMULATE = "accumulate"
    COMBINE = "combine"
    WHOLE = "aggregate"


def aggregate(
    by: Sequence[str], aggregates: Aggregates, *, schema: pa.Schema | None = None, bytes_max: int = BYTES_MAX
) -> ReplicatedMetaSupplier:
    """A vertex that computes aggregates for each key.

    Feed it through an edge ``partitioned(*by).distributed()``. A job splits it into two stages, :func:`accumulate` and
    :func:`combine`, so that only partial results are sent; with custom operations every row is sent to the member of
    its key.

    Emits the columns of the key and then the aggregates, keys in the order of arrival. NULL is a key like any other, so
    is NaN. Without keys there is one processor in the whole job, to be fed by ``all_to_one().distributed()``; it emits
    one row, whether any came or not.

    Args:
        by: The columns of the key.
        aggregates: By the name of the result column: those of :mod:`secateur.processors` (:func:`count_rows`,
            :func:`sum_of`, ...), which travel as data, or operations of one's own; not both in one vertex.
        schema: The columns of the input, so that an answer has all its columns and types when no batch came. None:
            without rows there is no answer with keys, and one without keys has columns of type ``null``.
        bytes_max: Bound on the partial results that one processor keeps.

    Raises:
        DagError: Nothing to compute, or two columns of one name. Running, when the input lacks a column or it is of a
            type that the aggregate does not take.
        DataError: Running, when a sum of integers does not fit.
        LimitExceededError: Running, past ``bytes_max``.
    """
    return _vertex(AggregationPhase.WHOLE, by, aggregates, schema, bytes_max)


def accumulate(
    by: Sequence[str], aggregates: Aggregates, *, schema: pa.Schema | None = None, bytes_max: int = BYTES_MAX
) -> ReplicatedMetaSupplier:
    """The first of two stages: a vertex that makes partial results of the rows where they are.

    Feed it locally, and :func:`combine` from it. The arguments are those of :func:`aggregate`; many
    partial results are sent on before the end.

    Worth it when keys repeat: each processor sends on one row for each key instead of all rows.

    Raises:
        DagError, DataError, LimitExceededError: As :func:`aggregate`.
    """
    return _vertex(AggregationPhase.ACCUMULATE, by, aggregates, schema, bytes_max)


def combine(
    by: Sequence[str], aggregates: Aggregates, *, schema: pa.Schema | None = None, bytes_max: int = BYTES_MAX
) -> ReplicatedMetaSupplier:
    """The second of two stages: a vertex that combines the partial results of :func:`accumulate`.

    Both get the same arguments, which are those of :func:`aggregate`: ``schema`` has the columns of the rows, not of
    the partial results.

    Feed it as :func:`aggregate`. It may also follow several first stages over different inputs.

    Raises:
        DagError, DataError, LimitExceededError: As :func:`aggregate`.
    """
    return _vertex(AggregationPhase.COMBINE, by, aggregates, schema, bytes_max)


def _vertex(
    stage: AggregationPhase, by: Sequence[str], aggregates: Aggregates, schema: pa.Schema | None, bytes_max: int
) -> ReplicatedMetaSupplier:
    keys, what = tuple(by), f"{stage.value}()"
    checked_names(keys, tuple(aggregates), what)
    known = {name: value for name, value in aggregates.items() if isinstance(value, AggregateExpression)}
    own = {name: value for name, value in aggregates.items() if isinstance(value, AggregateOperation)}
    supplier: GroupingSupplier
    if len(known) == len(aggregates):
        supplier = AggregateSupplier(stage, KernelGrouping(keys, known), schema, bytes_max)
    elif len(own) == len(aggregates):
        supplier = GroupingSupplier(stage, OperationGrouping(keys, own), schema, bytes_max)
    else:
        found = ", ".join(f"{name} is a {type(value).__name__}" for name, value in aggregates.items())
        raise DagError(f"{what} takes aggregates, or operations of one's own, not both in one vertex: {found}")
    is_one = not keys and stage is not AggregationPhase.ACCUMULATE
    return ReplicatedMetaSupplier(supplier, works_without_input=is_one, one_in_job=is_one)


@dataclass(eq=False)
class GroupingSupplier(KernelSupplier):
    """The supplier of all three, for any grouping."""

    stage: AggregationPhase
    grouping: Grouping
    schema: pa.Schema | None
    bytes_max: int

    def get(self, count: int) -> Sequence[Processor]:
        return [_Aggregate(self.kernel, self.stage, self.grouping, self.schema, self.bytes_max) for _ in range(count)]


@portable("aggregate")
@dataclass(eq=False)
class AggregateSupplier(GroupingSupplier):
    """The supplier for the aggregates of the kernel: plain data."""

    grouping: KernelGrouping

    def in_two_stages(self, columns: Set[str]) -> tuple[AggregateSupplier, AggregateSupplier] | None:
        if self.stage is not AggregationPhase.WHOLE or not columns <= set(self.grouping.by):
            return None
        first, second = (
            AggregateSupplier(stage, self.grouping, self.schema, self.bytes_max)
            for stage in (AggregationPhase.ACCUMULATE, AggregationPhase.COMBINE)
        )
        return first, second


class _Aggregate(GatheringProcessor):
    def __init__(
        self, kernel: Kernel, stage: AggregationPhase, grouping: Grouping, schema: pa.Schema | None, bytes_max: int
    ) -> None:
        super().__init__(
            bytes_max, "group by fewer keys, partition the edge over more processors, or raise bytes_max", kernel.limits
        )
        self._kernel = kernel
        self._stage = stage
        self._grouping = grouping
        self._schema = schema
        self._rows_kept = 0
        """The number of rows that ``kept`` was made from."""

    def reduce(self, kept: pa.Table | None, new: pa.Table) -> pa.Table:
        self._rows_kept += new.num_rows
        match self._stage:
            case AggregationPhase.ACCUMULATE | AggregationPhase.WHOLE:
                partials = self._grouping.accumulate(self._kernel, new)
                return partials if kept is None else self._grouping.combine(self._kernel, together(kept, partials))
            case AggregationPhase.COMBINE:
                return self._grouping.combine(self._kernel, together(kept, new))
            case _:
                assert_never(self._stage)

    def answer(self, kept: pa.Table | None) -> pa.Table | None:
        partials = kept if kept is not None else self._grouping.of_nothing(self._kernel, self._schema)
        if partials is None or self._stage is AggregationPhase.ACCUMULATE:
            return partials
        return self._grouping.finish(partials)

    def passes_on(self, kept: pa.Table) -> bool:
        if self._stage is not AggregationPhase.ACCUMULATE:
            return False
        saves_little = kept.num_rows > BATCH_ROWS and kept.num_rows * _WORTHWHILE > self._rows_kept
        limits = self._kernel.limits
        if not saves_little and kept.num_rows <= limits.partials_max and kept.nbytes <= limits.partial_bytes_max:
            return False
        self._rows_kept = 0
        return True


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
