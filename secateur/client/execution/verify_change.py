"""Check changes under ``SET pruning = verify`` against DuckDB's reading of their text.

The rows that a change would leave are compared with those that DuckDB leaves when it runs the user's own text over
copies of the tables.

The change is planned as a query for the rows that it touches. What is made of the user's text before that, such as the
query itself, is the same in a pruned and an unpruned run; only DuckDB's reading of the text shows whether it is right.
The copies live in a closed database of this process, which is imported with the first such change.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from secateur.client.execution.execute import StatementCall
from secateur.client.execution.select import run_query, run_select
from secateur.client.execution.verify import same_rows
from secateur.client.session import Session
from secateur.errors import PruningMismatchError
from secateur.partitioning.tables.row_ids import WITH_ROW_IDS, without_row_ids
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.arrow_layout import without_struct_offsets
from secateur.partitioning.types.sql_text import CLOCKS, quoted
from secateur.protocol.changes import DuplicateMatchPolicy
from secateur.protocol.statements import (
    ChangeKind,
    ChangeStatement,
    CoordinatedChange,
    ResultColumn,
    SelectStatement,
)

if TYPE_CHECKING:
    import duckdb

_ROUNDS: Final = 3
_FOUND: Final = "rows that the change finds"
_OURS: Final = "rows that the change leaves"

_Change = ChangeStatement[SelectStatement] | CoordinatedChange[SelectStatement]

_Rows = tuple[pa.Table, Sequence[ResultColumn]]


def check_change(call: StatementCall[_Change]) -> None:
    """Compare a change that has not been made yet with what DuckDB makes of its text.

    A difference that comes from rows written in between does not last, so it has to show three times. Nothing is
    compared where the text leaves open what becomes of a row, such as a random value or one of several matches, where
    row policies hold for the changed table, which may let fewer rows be changed than seen, and where DuckDB refuses the
    text over the copies: then the change itself says what is wrong. The time is that at which the change starts.

    Raises:
        PruningMismatchError: They leave different rows. Nothing was changed.

    Cost: reads all tables of the statement, and takes memory of this process for their rows.
    """
    change = call.statement
    left: tuple[pa.Table, pa.Table] | None = None
    for _ in range(_ROUNDS):
        selected = run_select(call.of(change.select))
        if _is_guarded(change) or not change.select.deterministic:
            return
        names = sorted({change.table.name, *(scan.table for scan in change.select.scans)})
        tables = {name: _read(call.session, f"SELECT * FROM {quoted(name)}") for name in names}
        stored = tables[change.table.name]
        if change.table.has_row_ids:
            stored = _read(call.session, f"SELECT * FROM {quoted(WITH_ROW_IDS)}.{quoted(change.table.name)}")
        found = selected.rows.take_table(), selected.rows.columns
        left = _left(call, tables, stored, found)
        if left is None or same_rows(*left):
            return
    assert left is not None
    ours, theirs = left
    raise PruningMismatchError(
        f"the change would leave other rows in {change.table.name} than DuckDB leaves when it runs the text over copies"
        f" of the tables ({ours.num_rows} rows against {theirs.num_rows}), for {call.sql!r} with parameters"
        f" {call.params!r}; nothing was changed; please report it",
        sql=call.sql,
        rows_pruned=ours.num_rows,
        rows_unpruned=theirs.num_rows,
    )


def _is_guarded(change: _Change) -> bool:
    """Whether row policies hold for the changed table, whose owners may say what becomes of the rows of DO NOTHING."""
    scans = [scan for scan in change.select.scans if scan.table == change.table.name]
    meets_rows = isinstance(change, ChangeStatement) or change.duplicate_match is DuplicateMatchPolicy.FIRST
    return any(scan.is_guarded for scan in scans) or (meets_rows and not scans)


def _read(session: Session, sql: str) -> _Rows:
    rows = run_query(session, sql).rows
    return rows.take_table(), rows.columns


def _left(
    call: StatementCall[_Change], tables: Mapping[str, _Rows], stored: _Rows, found: _Rows
) -> tuple[pa.Table, pa.Table] | None:
    """The rows that the change leaves, by what it has found and by DuckDB; None where they cannot be compared.

    Args:
        call: The change.
        tables: The rows of each table that it reads.
        stored: Those of the table that it changes, with the ids that a table without a primary key has.
        found: What it has found.
    """
    import duckdb  # a hard dependency, but some 20 ms to load

    from secateur.memory_database import open_database

    change = call.statement
    table = change.table
    if not all(default.is_constant for default in table.defaults.values()):
        return None
    with open_database(enable_external_access="false") as database:
        try:
            database.execute("SET TimeZone = 'UTC'")
            for name, rows in tables.items():
                _create(database, name, rows, table if name == table.name else None)
            _create(database, _OURS, stored)
            _create(database, _FOUND, found)
            decided = _delete(database, change) if isinstance(change, ChangeStatement) else _apply(database, change)
            if not decided:
                return None
            for sql in _views(call.session):
                with contextlib.suppress(duckdb.Error):  # a view of tables that the statement does not read
                    database.execute(sql)
            if change.select.reads_clock:
                _set_clock(database, call.started)
            database.execute(call.sql, call.params)
            target = database.table(quoted(table.name)).to_arrow_table()
            return without_row_ids(database.table(quoted(_OURS)).to_arrow_table()), target
        except duckdb.Error:
            return None


def _set_clock(database: duckdb.DuckDBPyConnection, started: float) -> None:
    """Have the functions of the clock tell the time at which the change starts."""
    instant = f"TIMESTAMPTZ '{datetime.fromtimestamp(started, UTC).isoformat()}'"
    for name, casts in CLOCKS.items():
        database.execute(f"CREATE MACRO {quoted(name)}() AS {'::'.join((instant, *casts))}")


def _views(session: Session) -> list[str]:
    """The statements that make the views, in an order in which they can be made."""
    rows, _ = _read(session, "SELECT sql FROM secateur.tables WHERE table_type = 'VIEW'")
    return [str(sql) for sql in rows.column(0).to_pylist()]


def _create(database: duckdb.DuckDBPyConnection, name: str, rows: _Rows, definition: TableDef | None = None) -> None:
    table, columns = rows
    said = [f"{quoted(column.name)} {column.type}" for column in columns]
    if definition is not None:
        known = definition.visible_columns
        defaults = ("" if column.default is None else f" DEFAULT {column.default}" for column in known)
        said = [f"{column}{default}" for column, default in zip(said, defaults, strict=True)]
        if definition.declared_key:
            said.append(f"PRIMARY KEY ({', '.join(map(quoted, definition.declared_key))})")
    database.execute(f"CREATE TABLE {quoted(name)} ({', '.join(said)})")
    database.register("arrow", without_struct_offsets(table))
    database.execute(f"INSERT INTO {quoted(name)} SELECT * FROM arrow")
    database.unregister("arrow")


def _delete(database: duckdb.DuckDBPyConnection, change: ChangeStatement[SelectStatement]) -> bool:
    """Apply what an UPDATE or DELETE of single partitions has found: new rows, or keys of rows that go."""
    same = " AND ".join(f"f.{quoted(name)} = o.{quoted(name)}" for name in change.table.primary_key)
    database.execute(f"DELETE FROM {quoted(_OURS)} AS o USING {quoted(_FOUND)} AS f WHERE {same}")
    if change.kind is ChangeKind.UPDATE:
        database.execute(f"INSERT INTO {quoted(_OURS)} BY NAME FROM {quoted(_FOUND)}")
    return True


def _apply(database: duckdb.DuckDBPyConnection, change: CoordinatedChange[SelectStatement]) -> bool:
    """Apply a table of row changes; False where it says several things of one row."""
    key, columns = change.table.primary_key, change.table.columns
    names = ["action", *(f"old {at}" for at in range(len(key))), *(f"new {column.name}" for column in columns)]
    listed = ", ".join(map(quoted, names))
    database.execute(f'CREATE TABLE "changes" AS FROM {quoted(_FOUND)} AS f({listed})')
    old = ", ".join(quoted(f"old {at}") for at in range(len(key)))
    new = ", ".join(quoted(f"new {name}") for name in key)
    for of, actions in ((old, "('UPDATE')"), (new, "('UPDATE', 'INSERT')")):
        again = f'SELECT 1 FROM "changes" WHERE "action" IN {actions} GROUP BY {of} HAVING count(*) > 1'
        if database.execute(again).fetchone() is not None:
            return False
    same = " AND ".join(f"{quoted(f'old {at}')} = o.{quoted(name)}" for at, name in enumerate(key))
    database.execute(
        f"DELETE FROM {quoted(_OURS)} AS o USING \"changes\" WHERE \"action\" IN ('UPDATE', 'DELETE') AND {same}"
    )
    values = ", ".join(quoted(f"new {column.name}") for column in columns)
    database.execute(
        f"INSERT INTO {quoted(_OURS)} SELECT {values} FROM \"changes\" WHERE \"action\" IN ('UPDATE', 'INSERT')"
    )
    return True
