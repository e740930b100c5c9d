"""``secateur sql``: statements of the command line, of standard input, or of a shell."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

import secateur
from secateur.cli.connecting import connected
from secateur.cli.failures import failing_with_a_message
from secateur.cli.options import Address, AsJson, ClusterName, Token
from secateur.cli.rendering import OutputFormat, write_rows

_BYTE_ORDER_MARK: Final = "\ufeff"
"""Editors on Windows put it in front of UTF-8."""


@failing_with_a_message
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
    exit code 1.

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
    texts = [*(command or []), *([file.read()] if file is not None else [])]
    if not texts:
        texts = [sys.stdin.read()]
    texts = [text.removeprefix(_BYTE_ORDER_MARK) for text in texts]
    with connected(name, address, token) as connection:
        for text in texts:
            for statement in _statements(text):
                _execute(connection, statement, output_format)


def _statements(text: str) -> list[str]:
    if ";" not in text:
        return [text] if text.strip() else []
    from secateur.planner.text.statements import split_statements  # half a second, which one statement need not wait

    return split_statements(text)


def _execute(connection: secateur.Connection, statement: str, output_format: OutputFormat) -> None:
    with connection.execute(statement) as cursor:
        if cursor.description is not None:
            write_rows(cursor, output_format)
        elif cursor.rowcount >= 0:
            typer.echo(f"{cursor.rowcount:,} row{'' if cursor.rowcount == 1 else 's'} changed", err=True)
