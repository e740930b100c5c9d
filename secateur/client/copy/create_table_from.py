"""``CREATE TABLE ... AS SELECT * FROM 'file'``: the client reads the file, has the table made, and loads the rows."""

from __future__ import annotations

from pathlib import Path

from secateur.client.copy.table_file import open_table_file
from secateur.client.loads.create_table import create_table_sql, dropped_on_failure
from secateur.client.loads.load import LoadMode, load_rows
from secateur.client.session import Session
from secateur.partitioning.tables.table import Column
from secateur.protocol.statements import CreateTableFrom


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
