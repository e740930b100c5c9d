"""``RESTORE``: the client makes the tables of a backup and loads their rows.

Everything that can be wrong with the files is found before anything is changed: every file is compared with its
checksum first. Each table then gets all of its rows or none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from secateur import errors
from secateur.client.backup.backup import Relation, relations_of, types_of
from secateur.client.backup.table_files import (
    BackedUpDefinition,
    BackedUpTable,
    checksum,
    from_parquet,
    parquet_schema,
    read_manifest,
)
from secateur.client.loads.load import LoadMode, load_rows
from secateur.client.session import Session
from secateur.partitioning.tables.conform import conform
from secateur.partitioning.tables.row_ids import without_row_ids
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.sql_text import quoted
from secateur.protocol.statements import RestoreFrom

_ATTEMPTS_MAX: Final = 5
"""A load that reads files is not repeated by itself while partitions move."""
_MOVED: Final = (errors.LoadFailedError, errors.PartitionLostError, errors.TopologyChangedError)


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
