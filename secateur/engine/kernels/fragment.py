"""A fragment: the part of a statement that one kernel call answers over tables in memory.

Pure data, the entry to both kernels, and the answer of a call, taken in parts so that it need not be held as a whole.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from secateur.engine.kernels.arrow.fragment import ArrowFragment
from secateur.engine.kernels.duckdb.result_types import arrow_type, relation_casts
from secateur.partitioning.types.arrow_layout import empty_table
from secateur.partitioning.types.column_type import SqlType
from secateur.tracing import KernelSpan, is_traced
from secateur.wire import ShortTable

if TYPE_CHECKING:
    from secateur.engine.kernels.duckdb.cancellation import Cancellation
    from secateur.engine.kernels.duckdb.kernel import DuckDBKernel


_Found = TypeVar("_Found", bound="pa.Table | ShortTable | None")


class KernelName(Enum):
    """The kernels, by the names that EXPLAIN and metrics use."""

    ARROW = "arrow"
    DUCKDB = "duckdb"


class SecurityBarrier(msgspec.Struct, frozen=True, array_like=True):
    """A condition on the rows of a relation.

    Attributes:
        relation: The relation.
        condition: The condition, in DuckDB's dialect.
        column: The column of texts that has to be equal to a parameter, where that is the whole condition, as it nearly
            always is; else empty.
        parameter: The index of that parameter.
    """

    relation: str
    condition: str
    column: str = ""
    parameter: int = 0


class Fragment(msgspec.Struct, frozen=True, array_like=True):
    """A part of a statement over named relations.

    Attributes:
        sql: A SELECT in DuckDB's dialect over the relation names, parameters written ``$1`` to ``$n``.
        relations: The relation names used in ``sql``, such as ``s0``.
        columns: Name and SQL type text of each result column.
        arrow: The same for the arrow kernel, or None when only DuckDB can answer exactly.
        casts: Per relation the columns, with their SQL types, that Arrow cannot tell from others: HUGEINT lies in
            memory as ``decimal128(38, 0)``. :meth:`over` fills it in.
        barriers: Per relation a condition, and its text is to see no other rows: not even to compute something that
            fails, and says of which value. They are applied before, each by itself.
        is_pipelineable: Whether it is known that each row of the result comes from one row of the one relation, in any
            order, whatever the other rows are: its answers over the parts of the relation are, together, its answer
            over the whole.
    """

    sql: str
    relations: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    arrow: ArrowFragment | None = None
    casts: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    is_pipelineable: bool = False
    barriers: tuple[SecurityBarrier, ...] = ()

    @classmethod
    def over(
        cls,
        sql: str,
        schemas: Mapping[str, Mapping[str, SqlType | str]],
        columns: Sequence[tuple[str, str]],
        arrow: ArrowFragment | None = None,
    ) -> Fragment:
        """Build a fragment from the SQL types of its relations' columns.

        ``schemas`` has of each relation the SQL types of its columns, or their texts. Columns that are not read need
        not be there.
        """
        casts = ((relation, relation_casts(schema)) for relation, schema in schemas.items())
        return cls(
            sql, tuple(schemas), tuple(columns), arrow, tuple((relation, cast) for relation, cast in casts if cast)
        )

    @property
    def column_names(self) -> list[str]:
        return [name for name, _ in self.columns]

    @property
    def is_row_by_row(self) -> bool:
        """Whether it may be answered part by part.

        The planner knows it of the statement, or it follows from its form for the arrow kernel.
        """
        return len(self.relations) == 1 and (
            self.is_pipelineable or (self.arrow is not None and self.arrow.is_row_by_row)
        )

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result, for an empty answer without a run. Cost: a few microseconds."""
        return pa.schema([pa.field(name, arrow_type(text)) for name, text in self.columns])


def run(
    fragment: Fragment,
    relations: Mapping[str, pa.Table],
    params: Sequence[Any] = (),
    *,
    cancellation: Cancellation | None = None,
) -> pa.Table:
    """Answer a fragment over tables in memory.

    Safe to call from several threads; DuckDB releases the GIL while it works, and so does Arrow on large inputs.

    Args:
        fragment: The fragment.
        relations: A table for each of ``fragment.relations``, columns in the Arrow form of their SQL types.
        params: Values of ``$1`` to ``$n`` as Python objects.
        cancellation: Lets another thread stop the call.

    Returns:
        The result, columns named and typed as ``fragment.columns``; the same from either kernel.

    Raises:
        DataError: A value does not fit, such as an overflow or a bad cast.
        ParameterError: Wrong number of parameters, or one that SQL has no type for.
        LimitExceededError: The kernel's memory limit is reached.
        JobCancelledError: ``cancellation`` was used.
        ProgrammingError: The statement asks for something that does not exist or is not allowed.
    """
    return run_with(fragment, relations, params, cancellation=cancellation)[0]


def answer(fragment: Fragment, relations: Mapping[str, pa.Table], params: Sequence[Any] = ()) -> pa.Table | ShortTable:
    """As :func:`run`, for an answer that is sent off: a result of a few rows comes as plain values."""
    found = answer_by_arrow(fragment, relations, params)
    return run_with(fragment, relations, params, kernel=KernelName.DUCKDB)[0] if found is None else found


def answer_by_arrow(
    fragment: Fragment, relations: Mapping[str, pa.Table], params: Sequence[Any]
) -> pa.Table | ShortTable | None:
    """As :func:`answer` by the arrow kernel alone; None if only DuckDB can give the answer."""
    if fragment.arrow is None:
        return None
    import secateur.engine.kernels.arrow.kernel as arrow_kernel

    read = relations if fragment.arrow.sources else relations[fragment.relations[0]]
    if not is_traced():
        return arrow_kernel.answer(fragment.arrow, read, params)
    arrow = fragment.arrow
    return _in_span(fragment, lambda: (arrow_kernel.answer(arrow, read, params), KernelName.ARROW))[0]


def run_with(
    fragment: Fragment,
    relations: Mapping[str, pa.Table],
    params: Sequence[Any] = (),
    *,
    kernel: KernelName | None = None,
    cancellation: Cancellation | None = None,
    duckdb: Callable[[], DuckDBKernel] | None = None,
) -> tuple[pa.Table, KernelName]:
    """As :func:`run`, with a wish for a kernel, and the name of the kernel that answered.

    ARROW is a wish: a fragment or a parameter value that it cannot answer exactly goes to DuckDB all the same. None
    takes it where possible. ``duckdb`` gives the DuckDB kernel, if one is needed; None: that of the process.
    """
    if not is_traced():
        return _run_with(fragment, relations, params, kernel, cancellation, duckdb)
    return _in_span(fragment, lambda: _run_with(fragment, relations, params, kernel, cancellation, duckdb))


def _run_with(
    fragment: Fragment,
    relations: Mapping[str, pa.Table],
    params: Sequence[Any],
    kernel: KernelName | None,
    cancellation: Cancellation | None,
    duckdb: Callable[[], DuckDBKernel] | None,
) -> tuple[pa.Table, KernelName]:
    found = None if kernel is KernelName.DUCKDB else _of_arrow(fragment, relations, params)
    if found is not None:
        return found, KernelName.ARROW
    if fragment.barriers:
        relations = _behind_barriers(fragment, relations, params, _duckdb(duckdb), cancellation)
    found = _duckdb(duckdb).run(
        fragment.sql, relations, params, names=fragment.column_names, casts=fragment.casts, cancellation=cancellation
    )
    return found, KernelName.DUCKDB


def _behind_barriers(
    fragment: Fragment,
    relations: Mapping[str, pa.Table],
    params: Sequence[Any],
    database: DuckDBKernel,
    cancellation: Cancellation | None,
) -> Mapping[str, pa.Table]:
    """The relations with the rows that pass the barriers alone."""
    passed = dict(relations)
    for barrier in fragment.barriers:
        name, rows = barrier.relation, relations[barrier.relation]
        if barrier.column and isinstance(value := params[barrier.parameter], str):
            passes = pc.equal(rows.column(barrier.column), pa.scalar(value))
        else:
            passes = database.run(
                f"SELECT ({barrier.condition}) IS TRUE AS passes FROM {name}",
                {name: rows},
                params,
                names=["passes"],
                casts=tuple(cast for cast in fragment.casts if cast[0] == name),
                cancellation=cancellation,
            ).column(0)
        if sum(chunk.true_count for chunk in passes.chunks) < len(passes):  # else pruning has left no others
            passed[name] = rows.filter(passes)
    return passed


def _in_span(fragment: Fragment, call: Callable[[], tuple[_Found, KernelName]]) -> tuple[_Found, KernelName]:
    """A kernel call as a span; of one that leaves the fragment to DuckDB, DuckDB's call is the span."""
    span = KernelSpan(fragment.sql)
    try:
        found, kernel = call()
    except BaseException as error:
        span.fail(error)
        raise
    if found is not None:
        span.end(kernel.value, found.num_rows)
    return found, kernel


def open_answer(
    fragment: Fragment,
    relations: Mapping[str, pa.Table],
    params: Sequence[Any] = (),
    *,
    cancellation: Cancellation | None = None,
    duckdb: Callable[[], DuckDBKernel] | None = None,
) -> ChunkedResult:
    """As :func:`run_with`, for an answer that is taken in parts, and closed at the end.

    Errors of the statement are raised with the first part.
    """
    if is_traced():
        found, _ = _in_span(fragment, lambda: (_of_arrow(fragment, relations, params), KernelName.ARROW))
    else:
        found = _of_arrow(fragment, relations, params)
    if found is not None:
        return CompleteResult(found)
    database = _duckdb(duckdb)
    if fragment.barriers:
        relations = _behind_barriers(fragment, relations, params, database, cancellation)
    parts = database.parts(
        fragment.sql,
        relations,
        params,
        names=fragment.column_names,
        casts=fragment.casts,
        cancellation=cancellation,
    )
    return StreamedResult(_spanned(parts, KernelSpan(fragment.sql)) if is_traced() else parts)


def _spanned(parts: Generator[pa.Table, None, None], span: KernelSpan) -> Generator[pa.Table, None, None]:
    """The parts of DuckDB's answer. The span ends with the last of them, or when they are closed."""
    rows = 0
    try:
        with closing(parts):
            for part in parts:
                rows += part.num_rows
                yield part
    except GeneratorExit:
        span.end(KernelName.DUCKDB.value, rows)
        raise
    except BaseException as error:
        span.fail(error)
        raise
    span.end(KernelName.DUCKDB.value, rows)


def _of_arrow(fragment: Fragment, relations: Mapping[str, pa.Table], params: Sequence[Any]) -> pa.Table | None:
    """The answer of the arrow kernel, if it can give it exactly."""
    if fragment.arrow is None:
        return None
    import secateur.engine.kernels.arrow.kernel as arrow_kernel

    read = relations if fragment.arrow.sources else relations[fragment.relations[0]]
    return arrow_kernel.run(fragment.arrow, read, params)


def _duckdb(given: Callable[[], DuckDBKernel] | None) -> DuckDBKernel:
    from secateur.engine.kernels.duckdb import kernel as duckdb_kernel

    return (given or duckdb_kernel.default_kernel)()


class ChunkedResult(Protocol):
    """Rows that are taken from any thread, by one consumer at a time.

    DuckDB executes a query as its rows are fetched: after sorts, groups and the build sides of joins it keeps about a
    megabyte of rows ready, and pauses until they are taken. The answer of the arrow kernel is complete at once, and
    taken in slices.
    """

    @property
    def is_done(self) -> bool:
        """Whether all rows have been taken. False may mean that it is not known yet: the next part is then empty."""

    @property
    def held_bytes(self) -> int:
        """Bytes of rows that are there and were not taken."""

    def take(self, bytes_wanted: int) -> pa.Table:
        """Return the next rows: about as many bytes as wanted, or the rest. May take long.

        The table is without rows when none remain.

        Raises:
            Error: Why there are no more; see :func:`secateur.engine.kernels.fragment.run`.
        """

    def close(self) -> None:
        """Stop the statement and free its input.

        Waits for a running ``take``; may be called twice.
        """


class CompleteResult:
    """An answer that is there."""

    def __init__(self, table: pa.Table) -> None:
        self._rest = table
        self.held_bytes = table.nbytes

    @property
    def is_done(self) -> bool:
        return not self._rest.num_rows

    def take(self, bytes_wanted: int) -> pa.Table:
        taken = slice_of_bytes(self._rest, bytes_wanted, self.held_bytes)
        # In proportion: counting the bytes of many slices costs more than sending one.
        self.held_bytes -= self.held_bytes * taken.num_rows // max(self._rest.num_rows, 1)
        self._rest = self._rest.slice(taken.num_rows)
        return taken

    def close(self) -> None:
        self._rest = self._rest.slice(0, 0)
        self.held_bytes = 0


class StreamedResult:
    """An answer that a kernel makes as it is taken.

    Args:
        parts: Makes it; the first part has the types, even without rows. Closing it frees its resources.
    """

    held_bytes = 0

    def __init__(self, parts: Generator[pa.Table, None, None]) -> None:
        self._parts = parts
        self._lock = threading.Lock()
        self._schema: pa.Schema | None = None
        self.is_done = False

    def take(self, bytes_wanted: int) -> pa.Table:
        with self._lock:
            taken: list[pa.Table] = []
            taken_bytes = 0
            try:
                while not self.is_done and taken_bytes < bytes_wanted:
                    part = next(self._parts, None)
                    if part is None:
                        self.is_done = True
                    else:
                        taken.append(part)
                        taken_bytes += part.nbytes
            except BaseException:
                self.is_done = True
                raise
            if taken:
                self._schema = taken[0].schema
            # A closed answer of which nothing was taken has no columns, which are not needed.
            return pa.concat_tables(taken) if taken else empty_table(self._schema or pa.schema([]))

    def close(self) -> None:
        with self._lock:
            self.is_done = True
            self._parts.close()


def slice_of_bytes(table: pa.Table, bytes_wanted: int, table_bytes: int) -> pa.Table:
    """The first rows of a table of that many bytes: about as many as are wanted, and at least one."""
    return (
        table if table_bytes <= bytes_wanted else table.slice(0, max(1, table.num_rows * bytes_wanted // table_bytes))
    )
