"""``BACKUP``: the client reads tables and writes them as Parquet files, with a manifest.

The files are written into a folder beside the one that was asked for. It takes that name when all of it is on disk, so
an interrupted backup is never taken for a whole one.
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from secateur.client.backup.table_files import (
    FORMAT,
    MANIFEST,
    VERSION,
    BackedUpColumn,
    BackedUpDefinition,
    BackedUpFile,
    BackedUpIndex,
    BackedUpRange,
    BackedUpTable,
    Manifest,
    TableFiles,
    to_disk,
)
from secateur.client.dbapi.rows import StreamedRows, as_table
from secateur.client.execution.execute import StatementCall
from secateur.client.execution.select import RunOptions, run_select
from secateur.client.session import Session
from secateur.errors import InterfaceError, ProgrammingError, UnknownTableError
from secateur.partitioning.tables.conform import conform
from secateur.partitioning.tables.row_ids import without_row_ids
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.sql_text import quoted
from secateur.protocol.statements import BackupTo, SelectStatement

_RELATIONS: Final = "SELECT table_name, table_type, sql, partitioning FROM secateur.tables ORDER BY table_id"
_RANGES: Final = (
    "SELECT table_name, partition, range FROM secateur.partitions WHERE range IS NOT NULL ORDER BY partition"
)
_TYPES: Final = "SELECT type_name, sql FROM secateur.types ORDER BY type_name"
_TABLE: Final = "BASE TABLE"
_VIEW: Final = "VIEW"


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, external table or view.

    Attributes:
        name: Its name.
        kind: Its kind, as ``secateur.tables`` says it.
        sql: The statement that makes it; None for an external table that no statement has made.
        partitioning: The text after PARTITION BY, for tables.
    """

    name: str
    kind: str
    sql: str | None
    partitioning: str | None

    @property
    def is_table(self) -> bool:
        """Whether members keep its rows."""
        return self.kind == _TABLE

    @property
    def is_view(self) -> bool:
        return self.kind == _VIEW

    @property
    def word(self) -> str:
        """The word for it in DROP."""
        return _VIEW if self.is_view else "TABLE"


def relations_of(session: Session) -> list[Relation]:
    """All relations, in the order in which they were made."""
    return [Relation(*row) for row in _rows(session, _RELATIONS)]


def types_of(session: Session) -> list[tuple[str, str]]:
    """The named types: the name of each, and the statement that makes it."""
    return [(name, sql) for name, sql in _rows(session, _TYPES)]


def ranges_of(session: Session) -> dict[str, list[tuple[int, str]]]:
    """The partitions of tables with ranges, each with its range, by the name of the table."""
    found: dict[str, list[tuple[int, str]]] = {}
    for name, partition, text in _rows(session, _RANGES):
        found.setdefault(name, []).append((partition, text))
    return found


def tables_of(session: Session, sql: str) -> Generator[pa.Table]:
    """The rows of a query, as they come; close the iterator to leave the rest."""
    prepared, cached = session.prepare(sql, [])
    if not isinstance(prepared, SelectStatement):
        raise InterfaceError(f"{sql!r} should be a query")
    call = StatementCall(session, sql, [], prepared, cached, time.perf_counter(), time.time())
    selected = run_select(call, RunOptions.ROWS_IN_PARTS)
    first = as_table(selected.result, selected.columns)
    if selected.rest is None:
        yield first
        return
    rows = StreamedRows(first, selected.rest, selected.columns)
    try:
        yield from rows.tables()
    finally:
        rows.close()


def _rows(session: Session, sql: str) -> Iterator[tuple[Any, ...]]:
    for table in tables_of(session, sql):
        yield from zip(*(column.to_pylist() for column in table.columns), strict=True)


def back_up(session: Session, backup: BackupTo) -> int:
    """Write tables into a new folder; returns the number of their rows.

    Each table is read by one statement, so its rows are those of one publication of loads and changes. Tables are read
    one after another. The memory that this takes does not depend on their size.

    Raises:
        ProgrammingError: The folder exists and is not empty, or cannot be written.
        UnknownTableError: A table was dropped meanwhile.
        Error: As :func:`~secateur.client.execution.select.run_select`. After any error there is no folder.
    """
    target = Path(backup.path)
    if not target.name:
        raise ProgrammingError(f"{backup.path!r} is not the path of a folder: BACKUP TO needs one")
    partial = target.with_name(f".partial-{uuid.uuid4().hex[:12]}-{target.name}")
    try:
        _check_free(target)
        partial.mkdir()
        try:
            rows = _write(session, backup, partial)
            partial.replace(target)  # takes the place of an empty folder as well
            to_disk(target.parent)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise ProgrammingError(
            f"{backup.path!r} cannot be written on the machine of this client, where BACKUP writes: {error}"
        ) from error
    return rows


def _check_free(target: Path) -> None:
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise ProgrammingError(f"{str(target)!r} exists already: BACKUP TO writes a new folder, or an empty one")


def _write(session: Session, backup: BackupTo, folder: Path) -> int:
    created = datetime.now(UTC).isoformat(timespec="seconds")
    relations, ranges = relations_of(session), ranges_of(session)
    wanted = {name.casefold() for name in backup.tables}
    chosen = [one for one in relations if one.is_table and (not wanted or one.name.casefold() in wanted)]
    if missing := wanted - {one.name.casefold() for one in chosen}:
        raise UnknownTableError(f"there is no table {min(missing)!r} any more: nothing was backed up")
    tables = []
    for number, relation in enumerate(chosen):
        table = session.table(relation.name)
        files = list(_write_table(session, table, folder, _folder_name(number, table.name)))
        assert relation.sql is not None
        tables.append(
            BackedUpTable(
                name=table.name,
                sql=relation.sql,
                columns=tuple(BackedUpColumn(c.name, str(c.type), c.nullable) for c in table.visible_columns),
                primary_key=table.declared_key,
                partitioning=None if table.replicated else relation.partitioning,
                ranges=tuple(BackedUpRange(*one) for one in ranges.get(table.name, ())),
                backups=table.backups,
                replicated=table.replicated,
                indexes=tuple(BackedUpIndex(index.name, index.columns) for index in table.indexes),
                rows=sum(file.rows for file in files),
                files=tuple(files),
            )
        )
    views = () if wanted else tuple(BackedUpDefinition(one.name, one.sql or "") for one in relations if one.is_view)
    types = () if wanted else tuple(BackedUpDefinition(*one) for one in types_of(session))
    manifest = folder / MANIFEST
    manifest.write_bytes(Manifest(FORMAT, VERSION, created, tuple(tables), views, types).encoded())
    to_disk(manifest)
    to_disk(folder)
    return sum(table.rows for table in tables)


def _write_table(session: Session, table: TableDef, folder: Path, name: str) -> Iterator[BackedUpFile]:
    """Write the rows of a table; yields each file when it is complete."""
    (folder / name).mkdir(parents=True)
    schema = table.visible_schema
    columns = ", ".join(map(quoted, schema.names))
    written = TableFiles(folder, name, schema)
    with closing(tables_of(session, f"SELECT {columns} FROM {quoted(table.name)}")) as parts, closing(written):
        for rows in parts:
            session.check_control()
            yield from written.add(without_row_ids(conform(rows.rename_columns(schema.names), table)))
        yield from written.finish()
    to_disk(folder / name)


def _folder_name(number: int, table: str) -> str:
    """A name that every file system takes; tables may have any characters in theirs."""
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in table)[:40]
    return f"tables/{number:05}-{plain}"
