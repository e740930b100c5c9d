"""Pipelines, and the stages of their chains.

The three classes are in one file because each makes the others: a pipeline begins chains of stages, a stage goes on by
key, and the last stage of a chain gives the pipeline back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn, overload

import pyarrow as pa

from secateur.client.dbapi.connection import Connection
from secateur.client.jobs.job import Job
from secateur.client.jobs.light_job import LightJob
from secateur.connectors.files import file_source
from secateur.connectors.functions import (
    BATCH_ROWS_OF_PYTHON,
    GeneratorFunction,
    batch_source,
    generator_source,
    iterable_source,
)
from secateur.connectors.table import TableSink, table_source
from secateur.dag.dag import FrozenDAG
from secateur.dag.processor import Params
from secateur.engine.processors.hash_join import JoinHow
from secateur.engine.processors.row_functions import BatchFunction, MaskFunction
from secateur.engine.runtime.result import ResultSink
from secateur.errors import DagError
from secateur.pipeline.step import (
    FIRST,
    Maker,
    PipelineStep,
    Route,
    StepInput,
    anywhere,
    by_key,
    dag_of,
    is_local,
    made,
    to_all_first,
    to_one,
    to_owners,
)
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
from secateur.protocol.job_description import JobConfig

KeyFunction = Callable[[pa.RecordBatch], pa.Array]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A job written as a chain of calls: sources, stages, sinks.

    Every call returns a new object and changes nothing, so chains may share their beginnings.

    >>> from secateur.connectors import collect
    >>> from secateur.processors import count_rows
    >>> lines = Pipeline().read_rows([{"word": "to"}, {"word": "be"}, {"word": "to"}])
    >>> words = lines.key_by("word").aggregate(times=count_rows()).sort("times", "word").write_to(collect())
    >>> [vertex.name for vertex in words.to_dag()]
    ['read rows', 'accumulate', 'combine', 'sort', 'collect']
    >>> import secateur
    >>> with secateur.start(members=1, runtime="embedded") as cluster, cluster.connect() as conn:
    ...     words.submit(conn).result().to_pylist()
    [{'word': 'be', 'times': 1}, {'word': 'to', 'times': 2}]

    Attributes:
        sinks: The ends of the chains that are complete.
    """

    sinks: tuple[PipelineStep, ...] = ()

    def read_table(
        self,
        name: str,
        *,
        keys: Sequence[Mapping[str, Any]] | None = None,
        where: Mapping[str, Any] | str | None = None,
        params: Sequence[Any] | Mapping[str, Any] = (),
        partitions: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
    ) -> Stage:
        """Read the rows of a table: all, those that meet a condition of SQL, of some keys, or of some partitions.

        ``read_table("readings", where="device = ? AND ts >= ?", params=[device, since], columns=["ts", "value"])``
        keeps the partitions that a SELECT would, and reads only the columns that it takes.

        With any of these, only the members that own the partitions take part in the job, in all of its stages. See
        :func:`~secateur.connectors.table.table_source`.

        Raises:
            DagError: Several of them are given, or the keys name different columns.
        """
        return self._stage(
            f"read {name}",
            lambda: table_source(name, keys=keys, where=where, params=params, partitions=partitions, columns=columns),
        )

    def read_files(
        self,
        pattern: str | Path,
        *,
        format: Literal["parquet", "csv", "arrow", "text"] | None = None,
        columns: Sequence[str] | None = None,
        schema: pa.Schema | None = None,
        shared: bool = True,
    ) -> Stage:
        """Read the rows of Parquet, CSV, Arrow or text files of the members' machines.

        See :func:`~secateur.connectors.files.file_source`.

        Raises:
            DagError: The format is unknown, or columns are picked from text.
        """
        return self._stage(
            "read files", lambda: file_source(pattern, format=format, columns=columns, schema=schema, shared=shared)
        )

    def read_rows(self, items: Iterable[Any], *, schema: pa.Schema | None = None) -> Stage:
        """Rows of a Python iterable of dicts or batches; see :func:`~secateur.connectors.functions.iterable_source`.

        A job that reads nothing else runs on one member, the coordinator; ``JobConfig(member_pruning=False)`` gives its
        later stages all of them.

        Raises:
            DagError: ``items`` is no such iterable, or a generator.
        """
        return self._stage("read rows", lambda: iterable_source(items, schema=schema))

    def read_batches(self, rows: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]) -> Stage:
        """Arrow rows in hand, which travel with the job; see :func:`~secateur.connectors.functions.batch_source`.

        Raises:
            DagError: There is no batch, or they differ in their schema.
        """
        return self._stage("read batches", lambda: batch_source(rows))

    def read_generator(
        self,
        function: GeneratorFunction,
        *,
        everywhere: bool = True,
        schema: pa.Schema | None = None,
        batch_rows: int = BATCH_ROWS_OF_PYTHON,
    ) -> Stage:
        """Read the rows that a generator function makes in each processor, perhaps without end.

        See :func:`~secateur.connectors.functions.generator_source`.

        Raises:
            DagError: ``function`` cannot be called, or ``batch_rows`` is not positive.
        """
        return self._stage(
            "read generator",
            lambda: generator_source(function, everywhere=everywhere, schema=schema, batch_rows=batch_rows),
        )

    def read_from(self, source: Maker, *, name: str = "read", local_parallelism: int | None = None) -> Stage:
        """Read the rows of a custom source: anything that :meth:`DAG.new_vertex` takes.

        Raises:
            DagError: It makes no processors.
        """
        return Stage(self, made(name, None, lambda: source, (), local_parallelism))

    def together(self, *others: Pipeline) -> Pipeline:
        """Combine several pipelines into one job; the steps that they share occur once.

        One stage can thus feed two sinks: ``s.write_to(a).together(s.write_to(b))``.
        """
        return replace(
            self, sinks=tuple(dict.fromkeys(sink for pipeline in (self, *others) for sink in pipeline.sinks))
        )

    def to_dag(self) -> FrozenDAG:
        """The DAG of all chains that have reached a sink, to be submitted as any other.

        Raises:
            DagError: There is no sink, two stages were given the same name, or two inputs of a join come from one
                source in a way that would deadlock.
        """
        if not self.sinks:
            raise DagError(
                "the pipeline has no sink: end each chain with write_to(...), and go on with the pipeline that it"
                " returns"
            )
        return dag_of(self.sinks)

    def freeze(self) -> FrozenDAG:
        """Return :meth:`to_dag`, so that :meth:`Connection.submit <secateur.Connection.submit>` accepts a pipeline."""
        return self.to_dag()

    @overload
    def submit(
        self,
        connection: Connection,
        config: JobConfig | None = None,
        params: Params = (),
        *,
        light: Literal[False] = False,
    ) -> Job: ...

    @overload
    def submit(
        self, connection: Connection, config: JobConfig | None = None, params: Params = (), *, light: Literal[True]
    ) -> LightJob: ...

    def submit(
        self, connection: Connection, config: JobConfig | None = None, params: Params = (), *, light: bool = False
    ) -> Job | LightJob:
        """Run the pipeline as a job.

        When a table is read by keys or partitions, and nothing else needs all members, a member that takes part anyway
        coordinates, and no other gets a message.

        Args:
            connection: To the cluster.
            config: The arguments of the job.
            params: The values of the :class:`~secateur.dag.processor.Param` in keys.
            light: Without a record, for jobs of milliseconds; see :meth:`Connection.submit`.

        Raises:
            DagError: As :meth:`to_dag`, or keys that lack a partitioning column.
            UnknownTableError: A table that is read by keys does not exist.
            ParameterError: A parameter is missing.
            SerializationError: A function cannot be pickled; names its stage.
        """
        dag, arguments = self.to_dag(), config or JobConfig()
        return (
            connection.submit(dag, arguments, params, light=True)
            if light
            else connection.submit(dag, arguments, params)
        )

    def with_sink(self, sink: PipelineStep) -> Pipeline:
        """Return the pipeline with one more complete chain; :meth:`Stage.write_to` calls it."""
        return replace(self, sinks=(*self.sinks, sink))

    def _stage(self, kind: str, make: Callable[[], Maker]) -> Stage:
        return Stage(self, made(kind, None, make))


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
        keys = (*columns, *made_keys)
        if not keys or len(set(keys)) < len(keys):
            raise DagError(
                f"stage 'key by' after {before.step.name!r}: the keys are {', '.join(keys) or 'none'}; name at least"
                " one column, each once"
            )
        return KeyedStage(before, keys)

    def aggregate(self, *, name: str | None = None, **aggregates: AggregateExpression | AggregateOperation) -> Stage:
        """Aggregate all rows into one, with partial and final aggregation.

        Each argument is a result column: ``aggregate(n=count_rows(), total=sum_of("x"))``.

        Raises:
            DagError: There are no aggregates, or built-in aggregates are mixed with custom operations.
        """
        return self.aggregated((), aggregates, to_one, name)

    def distinct(self, *, name: str | None = None) -> Stage:
        """Each row once; one processor sees the last of it.

        Of rows with the same key: ``key_by(...).distinct()``, which all members share.
        """
        return self.in_two(distinct, distinct, to_one, ("distinct here", "distinct"), name)

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
                lambda: top_n(limit, *by), lambda: top_n(limit, *by), to_one, ("top n here", "top n"), name
            )
        if at_members:
            return self.in_two(lambda: sort_runs(*by), lambda: merge_runs(*by), to_one, ("sort here", "sort"), name)
        return self.apply(lambda: sort(*by), kind="sort", name=name, route=to_one)

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
        how: JoinHow = "inner",
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
        to_build: Route = to_all_first
        if partitioned:
            pairs = dict(on) if isinstance(on, Mapping) else {column: column for column in on}
            to_probe = by_key(tuple(pairs))
            to_build = by_key(tuple(pairs.values()), FIRST)
        inputs = [StepInput(self.step, to_probe), StepInput(build.step, to_build)]
        make = partial(
            hash_join, on, how, build_schema=build_schema, probe_schema=probe_schema, build_suffix=build_suffix
        )
        step = made("hash join", name, make, inputs)
        return Stage(self.pipeline.together(build.pipeline), step)

    def rebalance(self, *columns: str) -> Stage:
        """Repartition the rows over all participants: by turns, or so that rows that agree in some columns meet."""
        route = by_key(columns) if columns else anywhere
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
            sink: Such as :func:`~secateur.connectors.functions.collect`,
                :func:`~secateur.connectors.table.table_sink`,
                :func:`~secateur.connectors.files.parquet_sink`, or anything that :meth:`DAG.new_vertex` takes.
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
                kind, way = "collect", anywhere
            case TableSink():
                kind, way = f"write {sink.table}", to_owners(sink.table)
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

    def aggregated(self, keys: tuple[str, ...], aggregates: Any, route: Route, name: str | None) -> Stage:
        """The steps of an aggregation; ``route`` brings together the partial results of a key."""
        first, second = (partial(make, keys, aggregates) for make in (accumulate, combine))
        return self.in_two(first, second, route, ("accumulate", "combine"), name)


@dataclass(frozen=True, slots=True)
class KeyedStage:
    """Rows with a key. Made by :meth:`Stage.key_by`.

    Attributes:
        stage: The rows.
        keys: The columns of the key.
    """

    stage: Stage
    keys: tuple[str, ...]

    def aggregate(self, *, name: str | None = None, **aggregates: AggregateExpression | AggregateOperation) -> Stage:
        """One row for each key, in two stages: partial results where the rows are, the answer where the keys meet.

        Each argument is a result column: ``key_by("a").aggregate(n=count_rows(), total=sum_of("x"))``; the columns of
        the key come first.

        Raises:
            DagError: Nothing to compute, two columns of one name, or aggregates that ship mixed with operations of
                one's own.
        """
        return self.stage.aggregated(self.keys, aggregates, by_key(self.keys), name)

    def distinct(self, *, name: str | None = None) -> Stage:
        """Keep the first row that arrives for each key."""
        return self.stage.in_two(
            lambda: distinct(*self.keys),
            lambda: distinct(*self.keys),
            by_key(self.keys),
            ("distinct here", "distinct"),
            name,
        )


def _same(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch
