"""``BACKUP``: the client reads tables and writes them as Parquet files, with a manifest.

The files are written into a folder beside the one that was asked for. It takes that name when all of it is on disk, so
an interrupted backup is never taken for a whole one.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from secateur.client.backup import manifest as manifests
from secateur.client.backup.relations import ranges_of, relations_of, tables_of, types_of
from secateur.client.backup.table_files import TableFiles, to_disk
from secateur.client.session import Session
from secateur.errors import ProgrammingError, UnknownTableError
from secateur.partitioning.tables.conform import conform
from secateur.partitioning.tables.identifier import quoted
from secateur.partitioning.tables.row_ids import without_row_ids
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.statements import BackupTo


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
            manifests.BackedUpTable(
                name=table.name,
                sql=relation.sql,
                columns=tuple(manifests.BackedUpColumn(c.name, str(c.type), c.nullable) for c in table.visible_columns),
                primary_key=table.declared_key,
                partitioning=None if table.replicated else relation.partitioning,
                ranges=tuple(manifests.BackedUpRange(*one) for one in ranges.get(table.name, ())),
                backups=table.backups,
                replicated=table.replicated,
                indexes=tuple(manifests.BackedUpIndex(index.name, index.columns) for index in table.indexes),
                rows=sum(file.rows for file in files),
                files=tuple(files),
            )
        )
    views = (
        ()
        if wanted
        else tuple(manifests.BackedUpDefinition(one.name, one.sql or "") for one in relations if one.is_view)
    )
    types = () if wanted else tuple(manifests.BackedUpDefinition(*one) for one in types_of(session))
    manifest = folder / manifests.MANIFEST
    manifest.write_bytes(
        manifests.Manifest(manifests.FORMAT, manifests.VERSION, created, tuple(tables), views, types).encoded()
    )
    to_disk(manifest)
    to_disk(folder)
    return sum(table.rows for table in tables)


def _write_table(session: Session, table: TableDef, folder: Path, name: str) -> Iterator[manifests.BackedUpFile]:
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
