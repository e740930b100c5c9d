"""``secateur jobs`` and ``secateur kill``."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from secateur.cli.connecting import connected
from secateur.cli.failures import failing_with_a_message
from secateur.cli.options import AddressOption, AsJson, Token
from secateur.cli.rendering import print_done, print_records
from secateur.partitioning.tables.identifier import text_literal

__all__ = ["jobs", "kill"]

_JOBS: Final = (
    "SELECT id, name, status, attempt, coordinator, submitted, ended, reason FROM secateur.jobs ORDER BY submitted DESC"
)


@failing_with_a_message
def jobs(address: AddressOption = None, token: Token = None, as_json: AsJson = False) -> None:
    """List the jobs on record, newest first."""
    with connected(address, token) as connection:
        found = connection.execute(_JOBS).fetch_arrow_table().to_pylist()
    print_records(found, as_json=as_json, empty="there are no jobs")


@failing_with_a_message
def kill(
    work: Annotated[str, typer.Argument(help="The id of a statement, such as m2:17, or the id or name of a job.")],
    address: AddressOption = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """End a statement of any connection, or a job.

    Statements and their ids are in the table secateur.statements.
    """
    what = "" if ":" in work else "JOB "
    with connected(address, token) as connection:
        connection.execute(f"KILL {what}{text_literal(work)}")
    print_done(f"{work} was ended", {"ended": work}, as_json=as_json)
