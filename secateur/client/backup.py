"""BACKUP and RESTORE: the client writes tables as Parquet files with a manifest, and makes tables of them again.

The files are written into a folder beside the one that was asked for. It takes that name when all of it is on disk, so
an interrupted backup is never taken for a whole one.

Everything that can be wrong with the files is found before anything is changed: every file is compared with its
checksum first. Each table then gets all of its rows or none.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from secateur import errors
from secateur.client.backup_files import (
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
    checksum,
    from_parquet,
    parquet_schema,
    read_manifest,
    to_disk,
)
from secateur.client.execution.reads import RunOptions
from secateur.client.execution.select import run_query
from secateur.client.loads.load import LoadMode, load_rows
from secateur.client.session import Session
from secateur.errors import ProgrammingError, UnknownTableError
from secateur.partitioning.tables.conform import conform
from secateur.partitioning.tables.row_ids import without_row_ids
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.sql_text import quoted
from secateur.protocol.statements import BackupTo, RestoreFrom

_RELATIONS: Final = "SELECT table_name, table_type, sql, partitioning FROM secateur.tables ORDER BY table_id"
_RANGES: Final = (
    "SELECT table_name, partition, range FROM secateur.partitions WHERE range IS NOT NULL ORDER BY partition"
)
_TYPES: Final = "SELECT type_name, sql FROM secateur.types ORDER BY type_name"
_TABLE: Final = "BASE TABLE"
_VIEW: Final = "VIEW"

_ATTEMPTS_MAX: Final = 5
"""A load that reads files is not repeated by itself while partitions move."""
_MOVED: Final = (errors.LoadFailedError, errors.PartitionLostError, errors.TopologyChangedError)


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, external table or view, as ``secateur.tables`` says it.

    An external table that no statement has made has no ``sql``, and only tables have the text after PARTITION BY.
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
    return [Relation(*row) for row in run_query(session, _RELATIONS).rows.take_all()]


def types_of(session: Session) -> list[tuple[str, str]]:
    """The named types: the name of each, and the statement that makes it."""
    return [(name, sql) for name, sql in run_query(session, _TYPES).rows.take_all()]


def ranges_of(session: Session) -> dict[str, list[tuple[int, str]]]:
    """The partitions of tables with ranges, each with its range, by the name of the table."""
    found: dict[str, list[tuple[int, str]]] = {}
    for name, partition, text in run_query(session, _RANGES).rows.take_all():
        found.setdefault(name, []).append((partition, text))
    return found


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
    selected = run_query(session, f"SELECT {columns} FROM {quoted(table.name)}", wanted=RunOptions.ROWS_IN_PARTS)
    with closing(selected.rows) as parts, closing(written):
        for rows in parts.tables():
            session.check_control()
            yield from written.add(without_row_ids(conform(rows.rename_columns(schema.names), table)))
        yield from written.finish()
    to_disk(folder / name)


def _folder_name(number: int, table: str) -> str:
    """A name that every file system takes; tables may have any characters in theirs."""
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in table)[:40]
    return f"tables/{number:05}-{plain}"


def restore(session: Session, asked: RestoreFrom) -> int:
    """Make the tables of a backup, with their rows; returns the number of these.

    A table of the same name and definition gets the rows of the backup in place of its own, at once. One of another
    definition is dropped first. Both only with ``or_replace``.

    Raises:
        ProgrammingError: The folder is no backup.
        DataError: A file is missing, or is not as it was written; nothing was changed.
        TableExistsError: A table or view exists already, without ``or_replace``; nothing was changed.
        UnknownTableError: The backup has no such table; nothing was changed.
        Error: As :func:`~secateur.client.loads.load.load_rows`; the table that was being restored is as it was, or is
            not there. Tables before it are restored.
    """
    folder = Path(asked.path)
    manifest = read_manifest(folder)
    tables = _chosen(manifest.tables, asked.tables, folder)
    views = () if asked.tables else manifest.views
    types = _new_types(session, () if asked.tables else manifest.types, or_replace=asked.or_replace)
    existing = {relation.name.casefold(): relation for relation in relations_of(session)}
    if not asked.or_replace:
        for name in (*(table.name for table in tables), *(view.name for view in views)):
            if (relation := existing.get(name.casefold())) is not None:
                raise errors.TableExistsError(
                    f"{relation.word} {relation.name!r} exists already: DROP it first, or use RESTORE OR REPLACE;"
                    " nothing was restored",
                    table=relation.name,
                )
    for table in tables:
        _verify(session, table, folder)
    for named in types:
        session.prepare_anew(named.sql.replace("CREATE TYPE", "CREATE OR REPLACE TYPE", 1), [])
    for table in tables:
        _restore_table(session, table, folder, existing.get(table.name.casefold()))
    _restore_views(session, views, existing)
    return sum(table.rows for table in tables)


def _new_types(session: Session, types: Sequence[BackedUpDefinition], *, or_replace: bool) -> list[BackedUpDefinition]:
    """The types that are not there yet.

    Raises:
        ProgrammingError: One has a name that another type has, without ``or_replace``.
    """
    there = {name.casefold(): sql for name, sql in types_of(session)}
    new = [named for named in types if there.get(named.name.casefold()) != named.sql]
    taken = next((named.name for named in new if named.name.casefold() in there), None)
    if taken is not None and not or_replace:
        raise errors.ProgrammingError(
            f"type {taken!r} exists already with other values: DROP it first, or use RESTORE OR REPLACE; nothing was"
            " restored"
        )
    return new


def _chosen(tables: Sequence[BackedUpTable], names: Sequence[str], folder: Path) -> Sequence[BackedUpTable]:
    if not names:
        return tables
    by_name = {table.name.casefold(): table for table in tables}
    for name in names:
        if name.casefold() not in by_name:
            listed = ", ".join(table.name for table in tables) or "no tables"
            raise errors.UnknownTableError(f"the backup {str(folder)!r} has no table {name!r}; it has {listed}")
    return [by_name[folded] for folded in dict.fromkeys(name.casefold() for name in names)]


def _verify(session: Session, table: BackedUpTable, folder: Path) -> None:
    """Compare the files of a table with what the manifest says of them.

    Raises:
        DataError: They differ.
    """
    for file in table.files:
        session.check_control()
        path = folder / file.path
        try:
            size = path.stat().st_size
            found = checksum(path) if size == file.bytes else None
            if found == file.sha256 and pq.read_metadata(path).num_rows == file.rows:
                continue
        except (OSError, pa.ArrowException) as error:
            raise errors.DataError(
                f"the backup of table {table.name} is damaged: {error}; nothing was restored"
            ) from error
        raise errors.DataError(
            f"the backup of table {table.name} is damaged: {str(path)!r} has {size:,} bytes with SHA-256 {found},"
            f" expected {file.bytes:,} bytes with {file.sha256}; nothing was restored"
        )
    if sum(file.rows for file in table.files) != table.rows:
        raise errors.DataError(
            f"the backup of table {table.name} is damaged: its files do not have {table.rows:,} rows"
        )


def _restore_table(session: Session, table: BackedUpTable, folder: Path, existing: Relation | None) -> None:
    if existing is not None and existing.is_table and existing.sql == table.sql:
        _load(session, session.table(table.name), table, folder, LoadMode.OVERWRITE)
        _restore_indexes(session, table)
        return
    if existing is not None:
        session.prepare_anew(f"DROP {existing.word} {quoted(existing.name)}", [])
    session.prepare_anew(table.sql, [])
    try:
        _load(session, session.table(table.name), table, folder, LoadMode.APPEND)
        _restore_indexes(session, table)
    except BaseException:
        with suppress(errors.Error):
            session.prepare_anew(f"DROP TABLE IF EXISTS {quoted(table.name)}", [])
        raise


def _load(session: Session, table: TableDef, backed_up: BackedUpTable, folder: Path, mode: LoadMode) -> None:
    attempts = 0
    while True:
        reader = pa.RecordBatchReader.from_batches(table.visible_schema, _batches(session, table, backed_up, folder))
        attempts += 1
        try:
            loaded = load_rows(session, table, reader, mode, same_table=True)
        except _MOVED:
            if attempts == _ATTEMPTS_MAX:
                raise
            session.check_control()
            session.refresh_topology()
            continue
        if loaded.rows != backed_up.rows:
            raise errors.DataError(f"table {table.name} got {loaded.rows:,} rows, its backup has {backed_up.rows:,}")
        return


def _batches(session: Session, table: TableDef, backed_up: BackedUpTable, folder: Path) -> Iterator[pa.RecordBatch]:
    expected = parquet_schema(table.visible_schema)
    for file in backed_up.files:
        with pq.ParquetFile(folder / file.path) as parquet:
            if parquet.schema_arrow.names != expected.names:
                raise errors.DataError(
                    f"{file.path!r} has the columns {', '.join(parquet.schema_arrow.names)}, expected"
                    f" {', '.join(expected.names)}"
                )
            for batch in parquet.iter_batches():
                session.check_control()
                rows = pa.Table.from_batches([from_parquet(batch, table.visible_schema)])
                yield from without_row_ids(conform(rows, table)).to_batches()


def _restore_indexes(session: Session, table: BackedUpTable) -> None:
    for index in table.indexes:
        columns = ", ".join(map(quoted, index.columns))
        session.prepare_anew(f"CREATE INDEX IF NOT EXISTS {quoted(index.name)} ON {quoted(table.name)} ({columns})", [])


def _restore_views(session: Session, views: Sequence[BackedUpDefinition], existing: dict[str, Relation]) -> None:
    """Make the views, in the order in which they can be made: a view may read other views."""
    waiting: list[BackedUpDefinition] = []
    for view in views:
        relation = existing.get(view.name.casefold())
        if relation is None or relation.sql != view.sql:
            if relation is not None:
                session.prepare_anew(f"DROP {relation.word} {quoted(relation.name)}", [])
            waiting.append(view)
    while waiting:
        failed: list[tuple[BackedUpDefinition, errors.ProgrammingError]] = []
        for view in waiting:
            try:
                session.prepare_anew(view.sql, [])
            except errors.ProgrammingError as refused:
                failed.append((view, refused))
        if len(failed) == len(waiting):
            view, error = failed[0]
            raise errors.ProgrammingError(
                f"all tables are restored, but not the view {view.name!r}: {error.message}", view=view.name
            ) from error
        waiting = [view for view, _ in failed]
