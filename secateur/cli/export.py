"""``secateur export``: the rows of a table or a query into a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secateur.cli.connecting import AddressOption, AsJson, ClusterName, Token, connected
from secateur.cli.rendering import print_done
from secateur.drawing.quantity import count_text
from secateur.partitioning.tables.identifier import quoted, text_literal


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
