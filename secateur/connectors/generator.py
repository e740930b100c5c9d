"""Generators and iterables as the source of a DAG: each processor makes its own stream, which need not end."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

import pyarrow as pa

from secateur.connectors.pull import Pull
from secateur.connectors.rows import BATCH_ROWS_OF_PYTHON, checked_batch_rows, rows_to_batches
from secateur.dag.processor import ProcessorContext
from secateur.dag.supplier import FactorySupplier, ProcessorMetaSupplier, ReplicatedMetaSupplier
from secateur.errors import DagError

GeneratorFunction = Callable[[ProcessorContext], Iterable[Any]]


def generator_source(
    function: GeneratorFunction,
    *,
    everywhere: bool = True,
    schema: pa.Schema | None = None,
    batch_rows: int = BATCH_ROWS_OF_PYTHON,
) -> ProcessorMetaSupplier:
    """A source whose processors each call a function and iterate over its result.

    Each processor has a thread, so the function may compute or wait. It may go on for ever: when the job is cancelled,
    the function is closed after the batch that it is making (one that never makes another keeps its thread, but not the
    job), and its ``finally`` runs.

    Args:
        function: Called once for each processor with its :class:`~secateur.dag.processor.ProcessorContext`;
            ``context.global_index`` and ``context.total_parallelism`` identify its share. Returns an iterable,
            mostly by ``yield``, of dicts (one for each row), RecordBatches or Tables.
        everywhere: True: processors on every member, which makes every member take part, and is refused in a job that
            is restricted to some partitions. False: one processor in the whole job, on a member that takes part anyway.
        schema: The schema of the dicts; None: taken from the first ``batch_rows`` of them.
        batch_rows: Dicts that are combined into one batch. Use 1 for a slow stream: each row is then sent at once.

    Raises:
        DagError: ``function`` cannot be called, or ``batch_rows`` is not positive.
    """
    if not callable(function):
        raise DagError(
            f"generator_source() was given a {type(function).__name__}; pass a function of the processor's context, not"
            " what it returned"
        )
    size = checked_batch_rows(batch_rows, "generator_source()")
    supplier = FactorySupplier(lambda: Pull(lambda context: rows_to_batches(function(context), schema, size)))
    return ReplicatedMetaSupplier(supplier, one_in_job=not everywhere)


def iterable_source(
    items: Iterable[Any], *, schema: pa.Schema | None = None, batch_rows: int = BATCH_ROWS_OF_PYTHON
) -> ProcessorMetaSupplier:
    """A source that iterates over Python objects, with one processor in the whole job.

    It runs on the coordinator when that takes part, so that no member is added.

    The iterable is sent with the DAG by cloudpickle; it is iterated when the job runs, anew in each run, in a thread.
    An object that reads its items lazily (its ``__iter__`` opens a file or a connection on the member's machine)
    therefore costs only its own size. For rows that are in Arrow already see
    :func:`~secateur.connectors.batches.batch_source`.

    Args:
        items: Dicts, one for each row, or RecordBatches or Tables.
        schema: The schema of the dicts; None: taken from the first ``batch_rows`` of them.
        batch_rows: Dicts that are combined into one batch.

    Raises:
        DagError: ``items`` is a generator, which cannot be pickled, is a string or mapping, or cannot be iterated.
    """
    if isinstance(items, Generator):
        raise DagError(
            "iterable_source() was given a generator, which cannot travel; pass its function to generator_source(), or"
            " a list of what it makes"
        )
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise DagError(
            f"iterable_source() was given a {type(items).__name__}; pass an iterable of dicts, one for each row, or of"
            " RecordBatches"
        )
    size = checked_batch_rows(batch_rows, "iterable_source()")
    supplier = FactorySupplier(lambda: Pull(lambda _: rows_to_batches(items, schema, size)))
    return ReplicatedMetaSupplier(supplier, one_in_job=True)
