"""The form in which the DuckDB kernel scans rows fastest.

Arrays are long, short decimals are as wide as DuckDB stores them, and texts of few values are dictionaries. The values
are the same in other Arrow types, so the form is only for readers that do not depend on the type. A decimal of up to 18
digits is then not narrowed row by row in each scan, and a condition on a text is evaluated once for each distinct
value: DuckDB takes a fifth less processor time for the queries of TPC-H.

Small partitions are scanned together, as *runs*, because every array costs DuckDB and Arrow some microseconds a column.
Over 271 arrays a table the 99 queries of TPC-DS at scale factor 0.1 took DuckDB 1.56 times as long as over one array a
table (two threads).

A column is converted and joined for its second scan, in the thread that scans, because a change may replace it before
that. Like an index, the result belongs to sorted rows, which never change, and is freed with them; a converted column
has about half of the bytes of the stored one, one that is only joined has as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from weakref import ref

import numpy as np
import pyarrow as pa

from secateur.engine_limits import EngineLimits

if TYPE_CHECKING:
    from secateur.storage.sorted_rows import SortedRows

__all__ = ["ScanRun", "scanned"]

_SAMPLE_ROWS: Final = 2048
_SAMPLED_VALUES_MAX: Final = 256
_VALUES_MAX: Final = 1024
_INDEX: Final = pa.int16()
_DECIMALS: Final = ((9, pa.decimal32), (18, pa.decimal64))


class ScanRun:
    """The columns of some partitions that are scanned together, as far as scans have asked for them.

    Kept by the first of the partitions (:attr:`SortedRows.scan_run`). Threads that ask at one time make equal columns,
    and either may stay.

    Args:
        pieces: The rows of the partitions. They are not kept alive.
        bytes_max: A column of more bytes is not joined.
    """

    __slots__ = ("_asked", "_bytes_max", "_converted", "_joined", "_pieces", "nbytes")

    def __init__(self, pieces: Sequence[SortedRows], bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._pieces = tuple(map(ref, pieces))
        self._asked: set[int] = set()
        self._joined: dict[int, list[pa.Array]] = {}
        self._converted: dict[int, pa.Array | None] = {}
        self.nbytes = 0
        """Bytes of the buffers that were made for scans."""

    def is_of(self, pieces: Sequence[SortedRows]) -> bool:
        """Whether it consists of these rows."""
        return len(self._pieces) == len(pieces) and all(
            known() is piece for known, piece in zip(self._pieces, pieces, strict=True)
        )

    def stored(self, pieces: Sequence[SortedRows], position: int) -> list[pa.Array]:
        """A column in its stored type: in one array once a scan has asked for it before.

        Args:
            pieces: The rows.
            position: The column.
        """
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

    def converted(self, pieces: Sequence[SortedRows], position: int) -> pa.Array | None:
        """A column in converted form; None where it is to be read as it is stored, or no scan has asked for it before.

        Args:
            pieces: The rows.
            position: The column.
        """
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


def scanned(
    pieces: Sequence[SortedRows],
    positions: Sequence[int] | None,
    schema: pa.Schema,
    limits: EngineLimits,
    *,
    converts: bool = True,
) -> pa.Table:
    """All rows of some partitions as one table for a kernel. In any thread.

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
