"""The commands of ``secateur``, by name."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import secateur
from secateur.cli.dashboard import dashboard
from secateur.cli.demo import demo
from secateur.cli.doctor import doctor
from secateur.cli.jobs import jobs, kill
from secateur.cli.load import backup, export, load, restore
from secateur.cli.rendering import failing_with_a_message
from secateur.cli.sql import sql
from secateur.cli.start import start, status, stop
from secateur.cli.token import token


class _Commands(TyperGroup):
    """The commands, each of which ends with the message of its error."""

    @failing_with_a_message
    def invoke(self, ctx: Any) -> Any:
        return super().invoke(ctx)


app = typer.Typer(
    name="secateur",
    cls=_Commands,
    help="Tables in memory, partitioned over members; SQL runs only on the members that own what it needs.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _command in (start, stop, status, sql, load, export, kill, backup, restore, dashboard, doctor, demo):
    app.command()(_command)

app.add_typer(jobs, name="jobs")
app.add_typer(token, name="token")


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"secateur {secateur.__version__}")
        raise typer.Exit


@app.callback()
def _secateur(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Tables in memory, partitioned over members; SQL runs only on the members that own what it needs."""
