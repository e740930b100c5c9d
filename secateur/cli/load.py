"""``secateur load``: rows of files into a table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from secateur.cli.connecting import connected
from secateur.cli.failures import CommandError, failing_with_a_message
from secateur.cli.options import AddressOption, AsJson, ClusterName, Token
from secateur.cli.rendering import print_done
from secateur.client.copy.table_file import FORMATS, open_table_file
from secateur.client.loads.load import LoadMode
from secateur.client.loads.load import Progress as OnProgress
from secateur.client.loads.table_handle import TableHandle
from secateur.errors import DuplicateKeyError

__all__ = ["load"]


@failing_with_a_message
def load(
    files: Annotated[list[Path], typer.Argument(help=f"Files of {', '.join(FORMATS)}.", exists=True, dir_okay=False)],
    table: Annotated[str, typer.Option(help="The table.")],
    create: Annotated[
        bool, typer.Option("--create", help="Create the table with the columns of the first file.")
    ] = False,
    primary_key: Annotated[
        str | None, typer.Option(help="With --create: the columns of the key, separated by commas.")
    ] = None,
    partition_by: Annotated[
        str | None, typer.Option(help='With --create: such as "HASH (customer_id) PARTITIONS 16".')
    ] = None,
    backups: Annotated[int | None, typer.Option(min=0, help="With --create: backups of each partition.")] = None,
    mode: Annotated[LoadMode, typer.Option(help="What happens to keys that are there already.")] = LoadMode.APPEND,
    file_format: Annotated[
        str | None, typer.Option("--format", help="The format, where the names of the files do not say it.")
    ] = None,
    address: AddressOption = None,
    name: ClusterName = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Load files into a table; the rows of each file become visible at once, or none of them do.

    For example:

        secateur load orders.parquet --table orders

        secateur load orders.csv --table orders --create --primary-key customer_id,order_id
    """
    if not create and (primary_key or partition_by or backups is not None):
        raise typer.BadParameter("--primary-key, --partition-by and --backups are of a table that --create creates")
    if create and not primary_key:
        raise typer.BadParameter("--create needs --primary-key, the columns that identify a row")
    with connected(name, address, token) as connection:
        total = 0
        for number, path in enumerate(files):
            with open_table_file(path, file_format) as opened:
                created: TableHandle | None = None
                if create and number == 0:
                    created = connection.create_table(
                        table,
                        opened.reader.schema,
                        primary_key=[column.strip() for column in (primary_key or "").split(",")],
                        partition_by=partition_by,
                        backups=backups,
                    )
                with (
                    _shown_progress(path.name, opened.rows) as progress,
                    nullcontext() if created is None else created.dropped_on_failure(),
                ):
                    try:
                        total += connection.table(table).load(opened.reader, mode.value, progress=progress)
                    except DuplicateKeyError as error:
                        if mode is not LoadMode.APPEND:
                            raise
                        raise CommandError(
                            f"{type(error).__name__}: {error.message}; with --mode upsert, the rows of a file replace"
                            " those that the table has"
                        ) from error
    print_done(f"{total:,} rows loaded into {table}", {"table": table, "rows": total}, as_json=as_json)


@contextmanager
def _shown_progress(title: str, rows: int | None) -> Iterator[OnProgress | None]:
    """A progress bar on standard error, if it is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=rows)
        yield lambda done: bar.update(task, completed=done)
