"""Rows of files into tables, and into files again: ``secateur load``, ``export``, ``backup`` and ``restore``."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from secateur.cli.clusters import AddressOption, AsJson, ClusterName, Token, connected
from secateur.cli.rendering import CommandError, print_done
from secateur.client.copy.load_options import FORMATS, FileOptions
from secateur.client.copy.table_file import TableFile, open_table_file
from secateur.client.loads.create_table import create_table_sql
from secateur.client.loads.load import LoadMode
from secateur.client.loads.load_progress import progress_line
from secateur.client.loads.table_handle import TableHandle
from secateur.drawing.quantity import count_text
from secateur.errors import DuplicateKeyError
from secateur.partitioning.tables.conform import MissingColumns, conform
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.sql_text import quoted, text_literal

_Tables: TypeAlias = Annotated[list[str] | None, typer.Option("--table", help="Only this table; may be given again.")]


def load(
    files: Annotated[list[Path], typer.Argument(help=f"Files of {', '.join(FORMATS)}.", exists=True, dir_okay=False)],
    table: Annotated[str, typer.Option(help="The table.")],
    create: Annotated[
        bool, typer.Option("--create", help="Create the table with the columns of the first file.")
    ] = False,
    primary_key: Annotated[
        str | None,
        typer.Option(help="With --create: the columns of the key, separated by commas; else rows may be there twice."),
    ] = None,
    partition_by: Annotated[
        str | None, typer.Option(help='With --create: such as "HASH (customer_id) PARTITIONS 16".')
    ] = None,
    backups: Annotated[int | None, typer.Option(min=0, help="With --create: backups of each partition.")] = None,
    mode: Annotated[LoadMode, typer.Option(help="What happens to keys that are there already.")] = LoadMode.APPEND,
    missing: Annotated[
        Literal["null"] | None,
        typer.Option(
            help="NULL in columns that a file lacks, which else are kept by an upsert, and otherwise an error."
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help='Types of columns, such as "a INTEGER, b DECIMAL(10,2)"; without a header, all in order.'),
    ] = None,
    delimiter: Annotated[str | None, typer.Option(help="CSV: the character between values.")] = None,
    header: Annotated[
        bool | None, typer.Option(help="CSV: whether the first line has names.", show_default=False)
    ] = None,
    quote: Annotated[str | None, typer.Option(help='CSV: the character around values, " if it is not said.')] = None,
    null: Annotated[
        list[str] | None, typer.Option(help="CSV: a text that means NULL; may be given several times.")
    ] = None,
    date_format: Annotated[
        str | None, typer.Option(help="CSV, JSON: how dates are written, such as %d/%m/%Y; otherwise 2025-12-31.")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="CSV, JSON: such as latin-1; otherwise UTF-8.")] = None,
    file_format: Annotated[
        str | None, typer.Option("--format", help="The format, where the names of the files do not say it.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read the files, print what would be done, and load nothing.")
    ] = False,
    address: AddressOption = None,
    name: ClusterName = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Load files into a table; the rows of each file become visible at once, or none of them do.

    Columns are matched by name, and values are read by the types of the table: exactly, or the load fails with the
    line. --create takes the types from all rows of the first file, as far as --columns does not say them.

    For example:

        secateur load orders.parquet --table orders

        secateur load orders.csv --table orders --create --primary-key customer_id,order_id

        secateur load old.csv --table orders --delimiter ";" --date-format "%d/%m/%Y" --encoding latin-1 --dry-run
    """
    if not create and (primary_key or partition_by or backups is not None):
        raise typer.BadParameter("--primary-key, --partition-by and --backups are of a table that --create creates")
    nulls = None if null is None else tuple(null)
    options = FileOptions(file_format, columns, delimiter, header, quote, nulls, date_format, encoding)
    lacking = MissingColumns.of_load(missing, is_upsert=mode is LoadMode.UPSERT)
    key = [column.strip() for column in primary_key.split(",")] if primary_key else []
    done: dict[str, Any] = {"table": table, "rows": 0}
    with connected(name, address, token) as connection:
        known = None if create else connection.table(table).columns
        for path in files:
            with (
                open_table_file(path, options, known, same_names=missing is None) as opened,
                ExitStack() as until_loaded,
            ):
                creation = None
                if known is None:
                    known = opened.columns
                    for hint in opened.hints:
                        typer.echo(f"{path.name}: {hint}", err=True)
                    creation = create_table_sql(
                        table, known, primary_key=key, partition_by=partition_by, backups=backups
                    )
                if dry_run:
                    definition = None if create else connection.table(table).definition
                    done["rows"] += _tried(path, opened, definition, lacking)
                    if creation is not None:
                        done["create"] = creation
                    continue
                if creation is not None:
                    connection.execute(creation)
                    until_loaded.enter_context(connection.table(table).dropped_on_failure())
                done["rows"] += _loaded(connection.table(table), path, opened, mode, missing)
    if not dry_run:
        print_done(f"{count_text(done['rows'], 'row')} loaded into {table}", done, as_json=as_json)
        return
    if "create" in done and not as_json:
        typer.echo(f"{done['create']};")
    print_done(
        f"{count_text(done['rows'], 'row')} would be loaded into {table}", {**done, "dry_run": True}, as_json=as_json
    )


def _tried(path: Path, opened: TableFile, table: TableDef | None, missing: MissingColumns) -> int:
    """Read and convert the rows of a file, and say on standard error what they are. Returns their number."""
    rows = 0
    for batch in opened.reader:
        rows += batch.num_rows
        if table is not None:
            conform(batch, table, missing, first_row=rows - batch.num_rows + 1)
    columns = ", ".join(f"{column.name} {column.type}" for column in opened.columns)
    typer.echo(f"{path.name}: {count_text(rows, 'row')} of {columns}", err=True)
    return rows


def _loaded(table: TableHandle, path: Path, opened: TableFile, mode: LoadMode, missing: Literal["null"] | None) -> int:
    """Load the rows of a file. Returns their number."""
    with progress_line(path.name, opened.rows, sys.stderr.isatty()) as progress:
        try:
            return table.load(opened.reader, mode.value, missing=missing, progress=progress)
        except DuplicateKeyError as error:
            if mode is not LoadMode.APPEND:
                raise
            raise CommandError(
                f"{type(error).__name__}: {error.message}; with --mode upsert, the rows of a file replace those of the"
                " table"
            ) from error


def export(
    file: Annotated[Path, typer.Argument(help="The file; its ending says the format: parquet, csv or json.")],
    table: Annotated[str | None, typer.Option(help="The table.")] = None,
    query: Annotated[str | None, typer.Option(help="A query, instead of a table.")] = None,
    address: AddressOption = None,
    name: ClusterName = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Write rows into a file of this machine, as they come.

    For example:

        secateur export orders.parquet --table orders

        secateur export c2.csv --query "SELECT * FROM orders WHERE customer_id = 'C2'"
    """
    if (table is None) == (query is None):
        raise typer.BadParameter("name a --table, or a --query")
    rows = quoted(table) if table is not None else f"({(query or '').strip().rstrip(';')})"
    with connected(name, address, token) as connection:
        cursor = connection.execute(f"COPY {rows} TO {text_literal(str(file.absolute()))}")
    done = {"file": str(file), "rows": cursor.rowcount}
    print_done(f"{count_text(cursor.rowcount, 'row')} written to {file}", done, as_json=as_json)


def backup(
    folder: Annotated[Path, typer.Argument(help="A new folder of this machine.", file_okay=False)],
    tables: _Tables = None,
    address: AddressOption = None,
    name: ClusterName = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Write tables, by default all, as Parquet files, with a manifest and checksums; Spark and DuckDB read them.

    For example:

        secateur backup ./backup

        secateur backup ./backup --table orders --table customers
    """
    with connected(name, address, token) as connection:
        cursor = connection.execute(f"BACKUP {_named(tables)}TO {text_literal(str(folder.absolute()))}")
    done = {"folder": str(folder), "rows": cursor.rowcount}
    print_done(f"{count_text(cursor.rowcount, 'row')} written to {folder}", done, as_json=as_json)


def restore(
    folder: Annotated[Path, typer.Argument(help="The folder of a backup.", exists=True, file_okay=False)],
    tables: _Tables = None,
    replace: Annotated[bool, typer.Option("--replace", help="Take the place of tables that are there.")] = False,
    address: AddressOption = None,
    name: ClusterName = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Create the tables of a backup again, with their rows.

    For example:

        secateur restore ./backup

        secateur restore ./backup --table orders --replace
    """
    with connected(name, address, token) as connection:
        cursor = connection.execute(
            f"RESTORE {'OR REPLACE ' if replace else ''}{_named(tables)}FROM {text_literal(str(folder.absolute()))}"
        )
    done = {"folder": str(folder), "rows": cursor.rowcount}
    print_done(f"{count_text(cursor.rowcount, 'row')} restored from {folder}", done, as_json=as_json)


def _named(tables: list[str] | None) -> str:
    return f"TABLE {', '.join(map(quoted, tables))} " if tables else ""
