"""``secateur backup`` and ``secateur restore``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secateur.cli.connecting import AddressOption, AsJson, ClusterName, Token, connected
from secateur.cli.rendering import print_done
from secateur.drawing.quantity import count_text
from secateur.partitioning.types.sql_text import quoted, text_literal


def backup(
    folder: Annotated[Path, typer.Argument(help="A new folder of this machine.", file_okay=False)],
    tables: Annotated[list[str] | None, typer.Option("--table", help="Only this table; may be given again.")] = None,
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
    tables: Annotated[list[str] | None, typer.Option("--table", help="Only this table; may be given again.")] = None,
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
