"""COPY from the client: files are read and written in this process.

Members never open a path that a user names. DuckDB reads and writes the files: code of our own for CSV and JSON, which
was tried first, returned other values for 7 of 32 types.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain
from typing import Final

import pyarrow as pa

from secateur.client.copy.reading import read_batches
from secateur.client.copy.writing import write_file
from secateur.client.dbapi.rows import StreamedRows, as_table
from secateur.client.execution.select import RunOptions, run_select
from secateur.client.execution.statement_call import StatementCall
from secateur.client.loads.load import LoadMode, load_rows
from secateur.client.session import Session
from secateur.partitioning.tables.conform import conform
from secateur.protocol.statements import CopyFrom, CopyTo, SelectStatement

_HELD_BYTES_MAX: Final = 256 << 20


def copy_from(session: Session, copy: CopyFrom) -> int:
    """Load the rows of files into a table: all of them, or none. Returns their number.

    Raises:
        ProgrammingError: A file is not to be had.
        DataError: It does not read, or has a value that its column cannot hold.
        Error: As :func:`~secateur.client.loads.load.load_rows`.
    """
    now = datetime.now(UTC)
    columns, schema = [copy.table.column(name) for name in copy.columns], copy.table.arrow_schema
    batches = (
        batch for read in read_batches(copy.file, columns) for batch in conform(read, copy.table, now=now).to_batches()
    )
    held: list[pa.RecordBatch] = []
    nbytes = 0
    for batch in batches:
        held.append(batch)
        nbytes += batch.nbytes
        if nbytes > _HELD_BYTES_MAX:
            stream = pa.RecordBatchReader.from_batches(schema, chain(held, batches))
            return load_rows(session, copy.table, stream, LoadMode.APPEND).rows
    # Held rows can be sent again, should partitions move meanwhile.
    return load_rows(session, copy.table, pa.Table.from_batches(held, schema=schema), LoadMode.APPEND).rows


def copy_to(call: StatementCall[CopyTo[SelectStatement]]) -> int:
    """Write the rows of a query into a file, as they come. Returns their number.

    Raises:
        ProgrammingError: The file cannot be written.
        Error: As :func:`~secateur.client.execution.select.run_select`.
    """
    copy = call.statement
    selected = run_select(call.of(copy.select), RunOptions.ROWS_IN_PARTS)
    first = as_table(selected.result, selected.columns)
    if selected.rest is None:
        return write_file(copy.file, [first], selected.columns)
    rows = StreamedRows(first, selected.rest, selected.columns)
    try:
        return write_file(copy.file, rows.tables(), selected.columns)
    finally:
        rows.close()
