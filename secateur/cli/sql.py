"""``secateur sql``: statements of the command line, of standard input, or of a shell."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

import secateur
from secateur.cli.clusters import Address, AsJson, ClusterName, Token, connected
from secateur.cli.rendering import ROWS_SHOWN, OutputFormat, extent_text, write_rows
from secateur.cli.scripts import Script, run_scripts
from secateur.drawing.quantity import count_text

_BYTE_ORDER_MARK: Final = "\ufeff"
"""Editors on Windows put it in front of UTF-8."""


def sql(
    address: Address = None,
    name: ClusterName = None,
    command: Annotated[
        list[str] | None, typer.Option("--command", "-c", help="Statements to execute; may be given several times.")
    ] = None,
    file: Annotated[
        typer.FileText | None, typer.Option("--file", "-f", help="A file of statements; - is standard input.")
    ] = None,
    output_format: Annotated[OutputFormat, typer.Option("--format", help="How rows are written.")] = OutputFormat.TABLE,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Execute SQL; without -c or -f a shell, or what standard input has.

    Statements end with a semicolon. They are executed one after the other; the first that fails ends the command with
    exit code 1, and the place in the file. A terminal shows the first 40 rows of a table, a pipe or file has all.

    For example:

        secateur sql

        secateur sql -c "SELECT * FROM orders WHERE customer_id = 'C2'" --format csv

        secateur sql -f schema.sql
    """
    if as_json:
        output_format = OutputFormat.JSON
    if command is None and file is None and sys.stdin.isatty():
        from secateur.cli.shell import Shell  # prompt_toolkit takes a tenth of a second to load

        with connected(name, address, token) as connection:
            Shell(connection, output_format).run()
        return
    scripts = [Script(text) for text in command or ()]
    if file is not None or not scripts:
        stream = file or sys.stdin
        scripts.append(Script(stream.read().removeprefix(_BYTE_ORDER_MARK), stream.name))
    with connected(name, address, token) as connection:
        run_scripts(scripts, lambda statement: _execute(connection, statement, output_format))


def _execute(connection: secateur.Connection, statement: str, output_format: OutputFormat) -> None:
    with connection.execute(statement) as cursor:
        if cursor.description is not None:
            written = write_rows(cursor, output_format, rows_max=ROWS_SHOWN)
            if output_format is OutputFormat.TABLE and sys.stdout.isatty():
                typer.echo(extent_text(cursor, written, "a pipe has all"), err=True)
        elif cursor.rowcount >= 0:
            typer.echo(f"{count_text(cursor.rowcount, 'row')} changed", err=True)
