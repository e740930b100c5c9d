"""``secateur jobs``, ``secateur jobs logs`` and ``secateur kill``."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
import typer

from secateur.cli.clusters import AddressOption, AsJson, ClusterName, Token, connected
from secateur.cli.rendering import print_done, print_records
from secateur.partitioning.types.sql_text import text_literal

_JOBS: Final = (
    "SELECT id, name, status, attempt, coordinator, submitted, ended, reason FROM secateur.jobs ORDER BY submitted DESC"
)


jobs = typer.Typer(rich_markup_mode=None)


@jobs.callback(invoke_without_command=True)
def list_jobs(
    context: typer.Context,
    address: AddressOption = None,
    name: ClusterName = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """List the jobs on record, newest first; `secateur jobs logs ID` shows what one of them has logged.

    For example:

        secateur jobs

        secateur jobs --json | jq -r '.[0].id'
    """
    if context.invoked_subcommand is not None:
        context.default_map = {context.invoked_subcommand: context.params}  # options may stand before it, too
        return
    with connected(name, address, token) as connection:
        found = connection.execute(_JOBS).fetch_arrow_table().to_pylist()
    print_records(found, as_json=as_json, empty="there are no jobs")


@jobs.command()
def logs(
    job: Annotated[str, typer.Argument(metavar="ID", help="The id or the name of a job on record.")],
    address: AddressOption = None,
    name: ClusterName = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Show what the processors of a job have logged on the members, by time.

    For example:

        secateur jobs logs nightly-totals
    """
    with connected(name, address, token) as connection:
        found = connection.job(job).logs()
    if as_json:
        typer.echo(msgspec.json.encode(found.lines).decode())
    else:
        for line in found:
            typer.echo(str(line))
    if not found.lines and not as_json:
        typer.echo(f"the processors of {job} have logged nothing that members still have", err=True)
    if found.dropped:
        typer.echo(f"{found.dropped} further lines were not kept: the job has logged too much", err=True)
    if found.silent:
        typer.echo(f"{', '.join(found.silent)} could not be asked", err=True)


def kill(
    work: Annotated[str, typer.Argument(help="The id of a statement, such as m2:17, or the id or name of a job.")],
    address: AddressOption = None,
    name: ClusterName = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """End a statement of any connection, or a job.

    Statements and their ids are in the table secateur.statements.

    For example:

        secateur kill m2:17

        secateur kill nightly-totals
    """
    what = "" if ":" in work else "JOB "
    with connected(name, address, token) as connection:
        connection.execute(f"KILL {what}{text_literal(work)}")
    print_done(f"{work} was ended", {"ended": work}, as_json=as_json)
