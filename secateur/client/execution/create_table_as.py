"""``CREATE TABLE ... AS``: the client reads the query's rows, has the controller make the table, and loads them.

The rows are read before the table exists, so the query may read the table that it replaces, and a query that fails
changes nothing. If the load fails, the new table is dropped, unless somebody else has begun to use it. The price is
that the rows pass through the client, and that a replaced table is empty during the load.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from secateur.client.copy.table_file import open_table_file
from secateur.client.execution.execute import StatementCall
from secateur.client.execution.select import run_select
from secateur.client.loads.create_table import create_table_sql, dropped_on_failure
from secateur.client.loads.load import LoadMode, load_rows
from secateur.client.session import Session
from secateur.errors import DuplicateKeyError
from secateur.partitioning.tables.conform import conform, first_positions
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.topology.owner_routing import split
from secateur.protocol.statements import CreateTableAs, CreateTableFrom, SelectStatement


def create_table_as(call: StatementCall[CreateTableAs[SelectStatement]]) -> int:
    """Make the table with the rows of the query; returns their number.

    Raises:
        DuplicateKeyError, NullKeyError, NoRangeError: The rows do not fit into the table; nothing was made or replaced.
        TableExistsError: A table of that name has been made meanwhile.
        Error: As :func:`~secateur.client.execution.select.run_select` and
            :func:`~secateur.client.loads.load.load_rows`; after an error of the load there is no table, unless it has
            got rows meanwhile.
    """
    session, statement = call.session, call.statement
    table = statement.table
    if statement.select is None:
        session.prepare_anew(statement.create, [])
        return 0
    rows = run_select(call.of(statement.select)).rows.take_table().rename_columns(table.visible_schema.names)
    _check(rows, table)
    session.prepare_anew(statement.create, [])
    created = session.table(table.name)
    with dropped_on_failure(session, created):
        return load_rows(session, created, rows, LoadMode.APPEND).rows


def _check(rows: pa.Table, table: TableDef) -> None:
    """Find out that rows do not fit while nothing has been replaced by them."""
    rows = conform(rows, table)
    if not table.has_row_ids and (first := first_positions(rows, table)) is not None:
        raise DuplicateKeyError(
            f"{table.name}: the query returns {rows.num_rows:,} rows, but only {len(first):,} different"
            f" values of the key ({', '.join(table.primary_key)}): choose a key that is unique",
            table=table.name,
        )
    if not table.replicated and not table.scheme.makes_ranges:
        split(rows, table)


def create_table_from(session: Session, statement: CreateTableFrom) -> int:
    """Make the table with the rows of the file; returns their number.

    The rows of a table that replaces another one are read before: in memory, so that a file that cannot be read changes
    nothing.

    Raises:
        ProgrammingError: The file is not to be had.
        ParameterError: The key names a column that it does not have.
        DataError: It does not read.
        TableExistsError: There is a table of that name.
        Error: As :func:`~secateur.client.loads.load.load_rows`; then there is no table.
    """
    with open_table_file(Path(statement.path)) as opened:
        columns = [Column(column.name, column.type) for column in opened.columns]
        create = create_table_sql(
            statement.name, columns, primary_key=statement.primary_key, or_replace=statement.or_replace
        )
        rows = opened.reader.read_all() if statement.or_replace and statement.with_data else opened.reader
        session.prepare_anew(f"{create} {statement.clauses}", [])
        if not statement.with_data:
            return 0
        created = session.table(statement.name)
        with dropped_on_failure(session, created):
            return load_rows(session, created, rows, LoadMode.APPEND).rows
