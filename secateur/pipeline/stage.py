"""A stage of a pipeline: a stream of rows, and the operations on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pyarrow as pa

from secateur.connectors.table_sink import TableSink
from secateur.dag.edge import Edge
from secateur.engine.processors.result_sink import ResultSink
from secateur.errors import DagError
from secateur.pipeline.keyed_stage import KeyedStage
from secateur.pipeline.step import Maker, PipelineStep, Route, StepInput, is_local, made
from secateur.processors import (
    AggregateExpression,
    AggregateOperation,
    SortKey,
    accumulate,
    combine,
    distinct,
    filter_dicts,
    filter_rows,
    flat_map_dicts,
    hash_join,
    key_by,
    map_batches,
    map_dicts,
    merge_runs,
    sort,
    sort_runs,
    top_n,
    union,
)

if TYPE_CHECKING:
    from secateur.pipeline.pipeline import Pipeline

__all__ = ["Stage"]

BatchFunction = Callable[[pa.RecordBatch], pa.RecordBatch | Iterable[pa.RecordBatch]]
MaskFunction = Callable[[pa.RecordBatch], pa.Array | pa.ChunkedArray]
KeyFunction = Callable[[pa.RecordBatch], pa.Array]

_FIRST: Final = -1
"""The priority of an edge that is drained before the others."""


def _to_one(edge: Edge) -> Edge:
    return edge.all_to_one().distributed()


def _anywhere(edge: Edge) -> Edge:
    return edge.distributed()


def _to_all_first(edge: Edge) -> Edge:
    return edge.broadcast().distributed().with_priority(_FIRST)


def _to_owners(table: str) -> Route:
    return lambda edge: edge.partitioned(table=table).distributed()


def _by(columns: Sequence[str], priority: int) -> Route:
    """A route to the owner of the key's partition."""
    return lambda edge: edge.partitioned(*columns).distributed().with_priority(priority)


@dataclass(frozen=True, slots=True)
class Stage:
    """Rows on their way through a pipeline.

    Every method returns the next stage; ``name`` names its vertex in errors, metrics and plans.

    Rows stay on their member until a stage needs them elsewhere: aggregates, distinct rows and joins by key, sorting,
    :meth:`rebalance`.

    Attributes:
        pipeline: The chains that are complete already.
        step: The last step so far.
    """

    pipeline: Pipeline
    step: PipelineStep

    def map(self, function: BatchFunction, *, cooperative: bool = False, name: str | None = None) -> Stage:
        """Apply a function to each RecordBatch; it returns a batch, or an iterable of none, one or more.

        See :func:`secateur.processors.map_batches`.
        """
        return self.apply(lambda: map_batches(function, cooperative=cooperative), kind="map", name=name)

    def map_rows(
        self, function: Callable[[dict[str, Any]], Mapping[str, Any]], schema: pa.Schema, *, name: str | None = None
    ) -> Stage:
        """Make one row of each row, as dicts; see :func:`secateur.processors.map_dicts`."""
        return self.apply(lambda: map_dicts(function, schema), kind="map rows", name=name)

    def flat_map_rows(
        self,
        function: Callable[[dict[str, Any]], Iterable[Mapping[str, Any]]],
        schema: pa.Schema,
        *,
        name: str | None = None,
    ) -> Stage:
        """Make any number of rows of each row, as dicts; see :func:`secateur.processors.flat_map_dicts`."""
        return self.apply(lambda: flat_map_dicts(function, schema), kind="flat map rows", name=name)

    def filter(self, mask: MaskFunction, *, cooperative: bool = False, name: str | None = None) -> Stage:
        """Keep the rows for which a function of the batch is true; see :func:`secateur.processors.filter_rows`."""
        return self.apply(lambda: filter_rows(mask, cooperative=cooperative), kind="filter", name=name)

    def filter_rows(self, predicate: Callable[[dict[str, Any]], bool], *, name: str | None = None) -> Stage:
        """Keep the rows for which a function of a dict is true; see :func:`secateur.processors.filter_dicts`."""
        return self.apply(lambda: filter_dicts(predicate), kind="filter rows", name=name)

    def key_by(self, *columns: str, name: str | None = None, **made_keys: str | KeyFunction) -> KeyedStage:
        """Go on by key.

        Args:
            columns: Columns of the rows.
            name: The name of the vertex that computes the keys, if there has to be one.
            made_keys: Key columns to put in front of the rows: each from another column, by name, or by a function of
                the batch.

        Raises:
            DagError: No key is named, or one twice.
        """
        before = self.apply(lambda: key_by(made_keys), kind="key by", name=name) if made_keys else self
        return KeyedStage.of(before, (*columns, *made_keys))

    def aggregate(self, *, name: str | None = None, **aggregates: AggregateExpression | AggregateOperation) -> Stage:
        """Aggregate all rows into one, with partial and final aggregation.

        Each argument is a result column: ``aggregate(n=count_rows(), total=sum_of("x"))``.

        Raises:
            DagError: There are no aggregates, or built-in aggregates are mixed with custom operations.
        """
        values: Any = aggregates
        return self.in_two(
            lambda: accumulate((), values), lambda: combine((), values), _to_one, ("accumulate", "combine"), name
        )

    def distinct(self, *, name: str | None = None) -> Stage:
        """Each row once; one processor sees the last of it.

        Of rows with the same key: ``key_by(...).distinct()``, which all members share.
        """
        return self.in_two(distinct, distinct, _to_one, ("distinct here", "distinct"), name)

    def sort(
        self, *by: str | SortKey, limit: int | None = None, at_members: bool = False, name: str | None = None
    ) -> Stage:
        """Order all rows, in one processor; see :func:`secateur.processors.sort`.

        What follows keeps the order as long as it does not :meth:`rebalance`.

        Args:
            by: Columns by name, or as :func:`secateur.processors.desc`.
            limit: Only the first so many: each member then sends no more than these.
            at_members: Each member sorts its own rows, and the one processor merges them as they come: for more rows
                than one processor may keep. It takes more than twice the work of one sort.
            name: The name of the vertex.

        Raises:
            DagError: No column is named, or one twice, or ``limit`` is negative.
        """
        if limit is not None:
            return self.in_two(
                lambda: top_n(limit, *by), lambda: top_n(limit, *by), _to_one, ("top n here", "top n"), name
            )
        if at_members:
            return self.in_two(lambda: sort_runs(*by), lambda: merge_runs(*by), _to_one, ("sort here", "sort"), name)
        return self.apply(lambda: sort(*by), kind="sort", name=name, route=_to_one)

    def union(self, *others: Stage, schema: pa.Schema | None = None, name: str | None = None) -> Stage:
        """Unite the rows of this stage and of others with the same columns, in any order.

        See :func:`secateur.processors.union`.

        Raises:
            DagError: There is no other stage.
        """
        inputs = [StepInput(stage.step) for stage in (self, *others)]
        step = made("union", name, lambda: union(schema), inputs)
        return Stage(self.pipeline.together(*(other.pipeline for other in others)), step)

    def hash_join(
        self,
        build: Stage,
        on: Sequence[str] | Mapping[str, str],
        *,
        how: str = "inner",
        build_schema: pa.Schema | None = None,
        probe_schema: pa.Schema | None = None,
        build_suffix: str = "_build",
        partitioned: bool = False,
        name: str | None = None,
    ) -> Stage:
        """Join these rows with those of a smaller stage, which is read first and kept in memory.

        See :func:`secateur.processors.hash_join`.

        Args:
            build: The smaller side.
            on: The columns of the key: names that both sides have, or for each column of this side its partner in
                ``build``.
            how: ``inner``, ``left``, ``right``, ``full``, ``semi`` or ``anti``.
            build_schema: The columns of ``build``; needed for ``left`` and ``full``.
            probe_schema: The columns of these rows; needed for ``right`` and ``full``.
            build_suffix: Appended to the name of a column of ``build`` that this side has too.
            partitioned: False: these rows stay on their member and every participant gets all of ``build``. True: both
                sides are repartitioned by the key, so each processor keeps only its part of ``build``.
            name: The name of the vertex.

        Raises:
            DagError: There is no key, ``how`` is none of these, a schema is missing, or a ``right`` or ``full`` join is
                not ``partitioned``. In ``to_dag``, when both sides come from one stage: the job would deadlock; read
                the source twice.
        """
        if how in ("right", "full") and not partitioned:
            raise DagError(
                f"stage 'hash join' after {self.step.name!r}: a {how} join needs partitioned=True: where every member"
                " has all of the build side, none can tell which of its rows have no partner anywhere"
            )
        to_probe: Route = is_local
        to_build: Route = _to_all_first
        if partitioned:
            pairs = dict(on) if isinstance(on, Mapping) else {column: column for column in on}
            to_probe = _by(tuple(pairs), 0)
            to_build = _by(tuple(pairs.values()), _FIRST)
        inputs = [StepInput(self.step, to_probe), StepInput(build.step, to_build)]
        make = partial(
            hash_join, on, how, build_schema=build_schema, probe_schema=probe_schema, build_suffix=build_suffix
        )
        step = made("hash join", name, make, inputs)
        return Stage(self.pipeline.together(build.pipeline), step)

    def rebalance(self, *columns: str) -> Stage:
        """Repartition the rows over all participants: by turns, or so that rows that agree in some columns meet."""
        route = _by(columns, 0) if columns else _anywhere
        return self.apply(lambda: map_batches(_same), kind="rebalance", route=route)

    def apply(
        self,
        make: Callable[[], Maker],
        *,
        kind: str = "apply",
        name: str | None = None,
        route: Route = is_local,
        local_parallelism: int | None = None,
    ) -> Stage:
        """Continue with custom processors.

        Args:
            make: Makes an argument of :meth:`DAG.new_vertex`: a supplier, a meta-supplier, or (as a class does) a
                processor.
            kind: Name of the vertex where ``name`` is None; gets a number where several are equal.
            name: The name of the vertex.
            route: How rows reach it, such as ``lambda edge: edge.partitioned("a").distributed()``; they stay on their
                member otherwise.
            local_parallelism: Processors on each member.

        Raises:
            DagError: ``make`` makes no processors, or refuses its arguments; names the stage.
        """
        return replace(self, step=made(kind, name, make, [StepInput(self.step, route)], local_parallelism))

    def write_to(self, sink: Maker, *, name: str | None = None, route: Route | None = None) -> Pipeline:
        """End the chain.

        Args:
            sink: Such as :func:`~secateur.connectors.collect.collect`,
                :func:`~secateur.connectors.table_sink.table_sink`,
                :func:`~secateur.connectors.parquet_sink.parquet_sink`, or anything that :meth:`DAG.new_vertex` takes.
            name: The name of the vertex; ``JobResult`` has the collected rows under it.
            route: How rows reach it; None: to the coordinator for :func:`collect`, to the owners of its partitions for
                a table, otherwise they stay on their member.

        Returns:
            The pipeline, to be run, or to begin another chain of the same job.

        Raises:
            DagError: It makes no processors.
        """
        way: Route
        match sink:
            case ResultSink():
                kind, way = "collect", _anywhere
            case TableSink():
                kind, way = f"write {sink.table}", _to_owners(sink.table)
            case _:
                kind, way = "write", is_local
        return self.pipeline.with_sink(made(kind, name, lambda: sink, [StepInput(self.step, route or way)]))

    def submit(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: rows that reach no sink are not a job.

        Raises:
            DagError: Always; explains how to end the chain.
        """
        self.freeze()

    def freeze(self) -> NoReturn:
        """As :meth:`submit`; :meth:`Connection.submit <secateur.Connection.submit>` calls it.

        Raises:
            DagError: Always; explains how to end the chain.
        """
        raise DagError(
            f"the rows of the stage {self.step.name!r} go nowhere: end the chain with write_to(...), such as "
            ".write_to(secateur.connectors.collect()), and submit the pipeline that it returns"
        )

    def in_two(
        self,
        first: Callable[[], Maker],
        second: Callable[[], Maker],
        route: Route,
        kinds: tuple[str, str],
        name: str | None,
    ) -> Stage:
        """Two steps for one idea: one where the rows are, another where they meet. ``name`` is that of the second."""
        return self.apply(first, kind=kinds[0]).apply(second, kind=kinds[1], name=name, route=route)


def _same(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch
