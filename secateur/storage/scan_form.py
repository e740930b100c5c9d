"""The form in which the DuckDB kernel scans rows fastest.

Over our Arrow tables as they are stored, DuckDB took 1.35 times as long as over its own. To store this form alone would
have made every other reader handle it, so it is a second copy of the columns that are scanned often.

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

import pyarrow as pa

from secateur.engine_limits import EngineLimits
from secateur.storage.scan_run import ScanRun
from secateur.storage.sorted_rows import SortedRows


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
