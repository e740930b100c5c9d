"""Rows in primary-key order, and what was derived from them.

A :class:`SortedTable` has the order and the binary search; a :class:`ScanRun` the columns of partitions that are
scanned together, in the form in which the DuckDB kernel scans them fastest.

A secondary index has row positions in the order of some other columns. It belongs to sorted rows, which never change,
so it never needs maintenance: the first search that needs it makes it, all later ones share it, and it is freed with
the rows when a merge replaces them. Later writes lie beside the rows (:mod:`~secateur.storage.snapshot`) and are
searched separately.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import reduce
from typing import Any, Final
from weakref import ref

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.engine_limits import EngineLimits
from secateur.storage.block import single_array
from secateur.storage.key_column import Cell, CellView
from secateur.storage.key_order import CellRange, Cells, KeyOrder
from secateur.storage.stored_columns import StoredColumns, native_rows

_FENCED_ROWS: Final = 16
"""Of so many rows, the first one's leading cell is kept as an object where a view has to make each that it is asked
for: most of a search then compares without a call. That is 4 bytes a row for short texts.
"""

_UNKNOWN: Final = object()
"""Stands for what has not been made yet."""


class SortedTable:
    """An immutable table that owns its memory: one chunk a column, sorted by a key.

    Safe to read from any thread. The views on the key columns are made at the first search, so that partitions that are
    only scanned never pay for them.

    The table is in that form already; this is not checked.
    """

    __slots__ = ("__weakref__", "_columns", "_fences", "_native", "_order", "_views", "own_bytes", "rows", "table")

    def __init__(self, table: pa.Table, order: KeyOrder) -> None:
        self.table = table
        self.rows: int = table.num_rows
        self.own_bytes: int = table.get_total_buffer_size()
        self._order = order
        self._views: tuple[CellView, ...] | None = None
        self._fences: list[Cell] | None = None
        self._columns: StoredColumns | None = None
        self._native: Any = _UNKNOWN

    @property
    def columns(self) -> StoredColumns:
        """The columns of the table; asking Arrow for them would cost as much as reading a row."""
        columns = self._columns
        if columns is None:
            columns = self._columns = StoredColumns(self.table.columns)
        return columns

    @property
    def native(self) -> Any | None:
        """The rows for the native executor, made at the first call; None without it."""
        rows = self._native
        if rows is _UNKNOWN:
            rows = self._native = native_rows(self.table, self._order.names)
        return rows

    @property
    def is_searched(self) -> bool:
        """Whether keys were searched, so that the next search costs less."""
        return self._views is not None or self._native not in (_UNKNOWN, None)

    @property
    def is_read(self) -> bool:
        """Whether values of few rows were read, so that the next ones cost less."""
        return self._columns is not None and self._columns.is_read

    def ready_as(self, before: SortedTable) -> None:
        """Make now what searches and readers need, if they did in the rows that this table takes the place of.

        Otherwise the next read of each partition would make it, which takes a look-up by key a third longer.

        Cost: some ten microseconds.
        """
        if before.is_searched and self.native is None:
            self._key_views()
        if before.is_read:
            self.columns.be_read()

    def equal_range(self, prefix: Cells) -> tuple[int, int]:
        """Return the positions ``[start, stop)`` of the rows whose key begins with a prefix.

        Without such rows both are the position where it would be inserted.

        Costs up to two binary searches per column of the prefix, each inside the range that the columns before it left:
        2 to 3 us for 4,000 rows, and a quarter of that with the native executor.
        """
        native = self._native
        if native is _UNKNOWN:
            native = self.native
        if native is not None:
            found: tuple[int, int] | None = native.equal_range(prefix)
            if found is not None:
                return found
        views = self._views or self._key_views()
        fences, start, stop = self._fences, 0, self.rows
        for view, cell in zip(views, prefix, strict=False):
            if fences is None:
                start = bisect_left(view, cell, start, stop)
                stop = _run_end(view, cell, start, stop)
            else:
                start, stop = _fenced_run(view, fences, cell, stop)
                fences = None
        return start, stop

    def position(self, key: Cells) -> int | None:
        """The position of the first row with a whole key; None without one.

        Costs a binary search per column of the key: 1 us for one column of 4,000 rows.
        """
        start, stop = self.equal_range(key)
        return start if start < stop else None

    def bound(self, prefix: Cells, *, after: bool) -> int:
        """Return the position of the first row whose key, cut to the prefix's length, is not less than the prefix.

        With ``after`` it is the first row whose cut key is greater.

        Args:
            prefix: Leading cells of a key; without any, the answer is the start or the end.
            after: Which of the two.
        """
        if not prefix:
            return self.rows if after else 0
        *leading, last = prefix
        start, stop = self.equal_range(tuple(leading))
        return (bisect_right if after else bisect_left)(self._key_views()[len(leading)], last, start, stop)

    def _key_views(self) -> tuple[CellView, ...]:
        views = self._views
        if views is None:
            # Two threads may both get here; they make equal views and either may stay.
            views = self._order.views(self.table)
            leading = views[0]
            if self.rows > _FENCED_ROWS and not isinstance(leading, memoryview):
                self._fences = [leading[row] for row in range(0, self.rows, _FENCED_ROWS)]
            self._views = views
        return views


def _fenced_run(view: CellView, fences: Sequence[Cell], cell: Cell, rows: int) -> tuple[int, int]:
    """The run of cells equal to ``cell`` among all rows; empty, at the position where it would be, if there is none."""
    fence = bisect_left(fences, cell)
    start = bisect_left(view, cell, max(_FENCED_ROWS * (fence - 1) + 1, 0), min(_FENCED_ROWS * fence, rows))
    if start == rows or view[start] != cell:
        return start, start
    if start + 1 == rows or view[start + 1] != cell:
        return start, start + 1
    fence = bisect_right(fences, cell, fence)
    return start, bisect_right(
        view, cell, max(_FENCED_ROWS * (fence - 1) + 1, start + 2), min(_FENCED_ROWS * fence, rows)
    )


def _run_end(view: CellView, cell: Cell, start: int, stop: int) -> int:
    """End of the run of cells equal to ``cell`` that begins at ``start``, which equals ``start`` when there is none."""
    if start == stop or view[start] != cell:
        return start
    # Complete keys, the usual search, have runs of one: two comparisons instead of a second search.
    if start + 1 == stop or view[start + 1] != cell:
        return start + 1
    return bisect_right(view, cell, start + 2, stop)


class SortedIndex:
    """The rows of a partition in the order of its columns.

    Rows with a NULL in one of them are left out, because no comparison finds them.

    Safe to read from any thread.

    Args:
        table: The rows, in the order of their positions.
        order: The columns, most significant first.
    """

    __slots__ = ("_positions", "_sorted", "nbytes")

    def __init__(self, table: pa.Table, order: KeyOrder) -> None:
        known = pc.indices_nonzero(reduce(pc.and_, (single_array(table, name).is_valid() for name in order.names)))
        table = table.select(order.names)
        if len(known) < table.num_rows:
            table = table.take(known)
        names = [str(position) for position in range(len(order.names))]
        arranged = pc.sort_indices(
            pa.RecordBatch.from_arrays(order.sortable(table), names=names),
            sort_keys=[(name, "ascending") for name in names],
        )
        self._positions: npt.NDArray[np.int64] = known.take(arranged).to_numpy().astype(np.int64)
        self._sorted = SortedTable(table.take(arranged).combine_chunks(), order)
        self.nbytes: int = self._positions.nbytes + self._sorted.own_bytes

    def find(self, windows: Sequence[CellRange]) -> npt.NDArray[np.int64]:
        """Return the positions of the rows in some windows, ascending.

        Cost: two binary searches for each window, and a sort of the positions found.
        """
        found = []
        for window in windows:
            start = self._sorted.bound(window.lower, after=window.after_lower)
            stop = self._sorted.bound(window.upper, after=window.after_upper)
            if start < stop:
                found.append(self._positions[start:stop])
        return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)


class SortedRows(SortedTable):
    """A table sorted by primary key, every key once."""

    __slots__ = ("_indexes", "scan_run")

    def __init__(self, table: pa.Table, order: KeyOrder) -> None:
        super().__init__(table, order)
        self._indexes: dict[tuple[str, ...], SortedIndex] = {}
        self.scan_run: ScanRun | None = None
        """The columns that were made for scans of these rows, and of those of other partitions that are scanned
        together with them.
        """

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and of everything derived from them."""
        if self.scan_run is None and not self._indexes:
            return self.own_bytes
        scanned = 0 if self.scan_run is None else self.scan_run.nbytes
        return self.own_bytes + scanned + sum(index.nbytes for index in self._indexes.values())

    @property
    def indexed(self) -> list[tuple[str, ...]]:
        """The columns of each secondary index that was made of them."""
        return list(self._indexes)

    def index(self, order: KeyOrder) -> SortedIndex:
        """The secondary index by some columns. The first call sorts the rows, for all after it."""
        names = tuple(order.names)
        index = self._indexes.get(names)
        if index is None:
            # Two threads may both get here; they make equal indexes and either may stay.
            index = self._indexes[names] = SortedIndex(self.table, order)
        return index


_SAMPLE_ROWS: Final = 2048
_SAMPLED_VALUES_MAX: Final = 256
_VALUES_MAX: Final = 1024
_INDEX: Final = pa.int16()
_DECIMALS: Final = ((9, pa.decimal32), (18, pa.decimal64))


class ScanRun:
    """The columns of some partitions that are scanned together, as far as scans have asked for them.

    The first of the partitions keeps it (``SortedRows.scan_run``). Threads that ask at one time make equal columns,
    and either may stay.

    Args:
        pieces: The rows of the partitions. They are not kept alive.
        bytes_max: A column of more bytes is not joined.
    """

    __slots__ = ("_asked", "_bytes_max", "_converted", "_joined", "_pieces", "nbytes")

    def __init__(self, pieces: Sequence[SortedTable], bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._pieces = tuple(map(ref, pieces))
        self._asked: set[int] = set()
        self._joined: dict[int, list[pa.Array]] = {}
        self._converted: dict[int, pa.Array | None] = {}
        self.nbytes = 0
        """Bytes of the buffers that were made for scans."""

    def is_of(self, pieces: Sequence[SortedTable]) -> bool:
        """Whether it consists of these rows."""
        return len(self._pieces) == len(pieces) and all(
            known() is piece for known, piece in zip(self._pieces, pieces, strict=True)
        )

    def stored(self, pieces: Sequence[SortedTable], position: int) -> list[pa.Array]:
        """A column in its stored type: in one array once a scan has asked for it before."""
        joined = self._joined.get(position)
        if joined is not None:
            return joined
        chunks = [chunk for piece in pieces for chunk in piece.table.column(position).chunks]
        if position not in self._asked:
            self._asked.add(position)
            return chunks
        if len(chunks) > 1 and sum(chunk.nbytes for chunk in chunks) <= self._bytes_max:
            chunks = [pa.concat_arrays(chunks)]
            self.nbytes += chunks[0].get_total_buffer_size()
        self._joined[position] = chunks
        return chunks

    def converted(self, pieces: Sequence[SortedTable], position: int) -> pa.Array | None:
        """A column in converted form; None where it is read as it is stored, or no scan has asked for it before."""
        if position not in self._asked:
            return None
        if position not in self._converted:
            chunks = self.stored(pieces, position)
            converted = _converted(chunks[0]) if len(chunks) == 1 else None
            if converted is not None:
                self.nbytes += converted.get_total_buffer_size()
                if len(pieces) > 1 and self._joined.pop(position, None) is not None:
                    # The joined column is not read any more. If another run cannot be converted, it is joined again.
                    self.nbytes -= chunks[0].get_total_buffer_size()
            self._converted[position] = converted
        return self._converted[position]


def _converted(stored: pa.Array) -> pa.Array | None:
    kind = stored.type
    if pa.types.is_decimal128(kind):
        narrow = next((make for digits, make in _DECIMALS if kind.precision <= digits), None)
        return None if narrow is None else stored.cast(narrow(kind.precision, kind.scale))
    return _dictionary(stored) if pa.types.is_string(kind) else None


def _dictionary(texts: pa.Array) -> pa.Array | None:
    """The texts as a dictionary, if they are few different ones."""
    if len(texts) > _SAMPLE_ROWS:
        sample = texts.take(pa.array(np.linspace(0, len(texts) - 1, _SAMPLE_ROWS, dtype=np.int64)))
        if len(sample.unique()) > _SAMPLED_VALUES_MAX:
            return None
    encoded = texts.dictionary_encode()
    if len(encoded.dictionary) > _VALUES_MAX:
        return None
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(_INDEX), encoded.dictionary)


def scanned(
    pieces: Sequence[SortedRows],
    positions: Sequence[int] | None,
    schema: pa.Schema,
    limits: EngineLimits,
    *,
    converts: bool = True,
) -> pa.Table:
    """All rows of some partitions as one table for a kernel. In any thread.

    Over our Arrow tables as they are stored, DuckDB took 1.35 times as long as over its own. To store this form alone
    would have made every other reader handle it, so it is a second copy of the columns that are scanned often.

    Arrays are long, short decimals are as wide as DuckDB stores them, and texts of few values are dictionaries. The
    values are the same in other Arrow types, so the form is only for readers that do not depend on the type. A decimal
    of up to 18 digits is then not narrowed row by row in each scan, and a condition on a text is evaluated once for
    each distinct value: DuckDB takes a fifth less processor time for the queries of TPC-H.

    Small partitions are scanned together, as *runs*, because every array costs DuckDB and Arrow some microseconds a
    column. Over 271 arrays a table the 99 queries of TPC-DS at scale factor 0.1 took DuckDB 1.56 times as long as over
    one array a table (two threads).

    A column is converted and joined for its second scan, in the thread that scans, because a change may replace it
    before that. Like an index, the result belongs to sorted rows, which never change, and is freed with them; a
    converted column has about half of the bytes of the stored one, one that is only joined has as many.

    Args:
        pieces: The rows of the partitions.
        positions: The columns wanted, at least one; None for all.
        schema: The schema of all columns, as they are stored.
        limits: From how many rows on columns are converted, and partitions read by themselves.
        converts: Whether columns may have the types of the converted form, as the DuckDB kernel takes them.

    Returns:
        At most one chunk per partition that has rows; of small partitions, one for several. Columns have their names,
        and their types or those of the converted form.
    """
    wanted = range(len(schema)) if positions is None else positions
    filled = [piece for piece in pieces if piece.rows]
    rows = sum(piece.rows for piece in filled)
    runs = [(run, _kept(run, limits)) for run in _runs(filled, rows, limits)]
    columns = [
        _column(runs, position, schema.field(position).type, converts=converts and rows >= limits.scan_form_rows_min)
        for position in wanted
    ]
    return pa.Table.from_arrays(columns, names=[schema.names[position] for position in wanted])


def _runs(pieces: Sequence[SortedRows], rows: int, limits: EngineLimits) -> list[Sequence[SortedRows]]:
    """Group the partitions that are scanned together.

    The groups are of equal size, a power of two, so that they stay the same when partitions grow a little.
    """
    if not pieces:
        return []
    length = 1 << (max(1, limits.scan_run_rows_min * len(pieces) // rows) - 1).bit_length()
    return [pieces[start : start + length] for start in range(0, len(pieces), length)]


def _kept(pieces: Sequence[SortedRows], limits: EngineLimits) -> ScanRun:
    """Return what earlier scans made of a run, and drop another run that begins with the same partition."""
    kept = pieces[0].scan_run
    if kept is None or not kept.is_of(pieces):
        kept = pieces[0].scan_run = ScanRun(pieces, limits.scan_run_bytes_max)
    return kept


def _column(
    runs: Sequence[tuple[Sequence[SortedRows], ScanRun]], position: int, type_: pa.DataType, *, converts: bool
) -> pa.ChunkedArray:
    """Return a column, converted if all its runs are."""
    if converts:
        found = [array for pieces, run in runs if (array := run.converted(pieces, position)) is not None]
        if len(found) == len(runs):
            return pa.chunked_array(found)
    return pa.chunked_array([array for pieces, run in runs for array in run.stored(pieces, position)], type_)
