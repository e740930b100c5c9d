"""``secateur status``: the members of a cluster and its tables."""

from __future__ import annotations

import sys

import msgspec
import typer

from secateur.cli.connecting import Address, AsJson, ClusterName, Token, connected
from secateur.cli.rendering import OutputFormat, write_rows

_MEMBERS = (
    "SELECT id, address, node, state, partitions_primary, partitions_backup, rows, bytes, memory_used, memory_limit,"
    " running_statements, waiting_statements, draining FROM secateur.members ORDER BY id"
)
_TABLES = (
    "SELECT t.table_name, t.partitioning, t.partitions, t.backups, t.rows, t.bytes,"
    " coalesce(sum(p.copies_missing), 0)::BIGINT AS copies_missing FROM secateur.tables t LEFT JOIN secateur.partitions"
    " p ON p.table_name = t.table_name WHERE t.table_type = 'BASE TABLE' GROUP BY ALL ORDER BY t.table_name"
)


def status(address: Address = None, name: ClusterName = None, token: Token = None, as_json: AsJson = False) -> None:
    """Show the members of a cluster, its tables, and the copies that are missing.

    The exit code is 1 if no cluster answers.

    For example:

        secateur status

        secateur status --json | jq '.members[].state'
    """
    with connected(name, address, token) as connection:
        if as_json:
            answers = {"members": connection.execute(_MEMBERS), "tables": connection.execute(_TABLES)}
            told = {name: cursor.fetch_arrow_table().to_pylist() for name, cursor in answers.items()}
            typer.echo(msgspec.json.encode({"address": connection.address, **told}).decode())
            return
        typer.echo(f"cluster {connection.address}")
        for sql in (_MEMBERS, _TABLES):
            with connection.execute(sql) as cursor:
                write_rows(cursor, OutputFormat.TABLE, into=sys.stdout)
