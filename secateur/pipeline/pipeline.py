"""The pipeline: the start of chains of stages, and the DAG that they become when each has reached its sink."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, overload

import pyarrow as pa

from secateur.client.dbapi.connection import Connection
from secateur.client.jobs.job import Job
from secateur.client.jobs.light_job import LightJob
from secateur.connectors.batches import batch_source
from secateur.connectors.files import file_source
from secateur.connectors.generator import GeneratorFunction, generator_source
from secateur.connectors.iterable import iterable_source
from secateur.connectors.rows import BATCH_ROWS_OF_PYTHON
from secateur.connectors.table import table_source
from secateur.dag.dag import FrozenDAG
from secateur.dag.job_config import JobConfig
from secateur.dag.processor import Params
from secateur.errors import DagError
from secateur.pipeline.stage import Stage
from secateur.pipeline.step import Maker, PipelineStep, dag_of, made

__all__ = ["Pipeline"]


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
        where: Mapping[str, Any] | None = None,
        partitions: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
    ) -> Stage:
        """Read the rows of a table: all, those of some keys or values, or those of some partitions.

        With these, only the members that own the partitions take part in the job, in all of its stages. See
        :func:`~secateur.connectors.table.table_source`.

        Raises:
            DagError: Several of them are given, or the keys name different columns.
        """
        return self._stage(
            f"read {name}", lambda: table_source(name, keys=keys, where=where, partitions=partitions, columns=columns)
        )

    def read_files(
        self,
        pattern: str | Path,
        *,
        format: str | None = None,
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
        """The rows of a Python iterable of dicts or batches; see :func:`~secateur.connectors.iterable.iterable_source`.

        A job that reads nothing else runs on one member, the coordinator; ``JobConfig(member_pruning=False)`` gives its
        later stages all of them.

        Raises:
            DagError: ``items`` is no such iterable, or a generator.
        """
        return self._stage("read rows", lambda: iterable_source(items, schema=schema))

    def read_batches(self, rows: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]) -> Stage:
        """Arrow rows in hand, which travel with the job; see :func:`~secateur.connectors.batches.batch_source`.

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

        See :func:`~secateur.connectors.generator.generator_source`.

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
            params: The values of the :class:`~secateur.dag.parameter.Param` in keys.
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
