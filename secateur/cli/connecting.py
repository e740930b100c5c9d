"""Finds the cluster that the options of a command, the environment, or an earlier ``secateur start`` name.

Options that several commands have are here, so that they are written and explained alike.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal, TypeAlias

import msgspec
import typer

import secateur
from secateur.cli.failures import CommandError
from secateur.cli.local_clusters import KnownCluster, find, running, typed
from secateur.client.connect import ADDRESS_VARIABLE, TOKEN_VARIABLE, parse_address
from secateur.errors import InterfaceError


def located(name: str | None, address: str | None = None, token: str | None = None) -> KnownCluster:
    """Return the cluster that is meant: by ``--name``, by its address, or the only one that runs here.

    If several run here and nothing says which, the user is asked on a terminal.

    Args:
        name: That of ``--name``. It stands above the environment, which may speak of another cluster.
        address: As given; by default that of the environment.
        token: As given; by default that of the environment, or else that of the cluster that was started here.

    Returns:
        The cluster; one that was not started here has no name.

    Raises:
        CommandError: No cluster has the name, or none runs here.
        BadParameter: The address has another form, there are a name and an address, or several clusters run here.
    """
    if name is not None:
        if address is not None:
            raise typer.BadParameter("--name and an address each say which cluster is meant: pass one of them")
        found = _named(name)
    else:
        address = address or os.environ.get(ADDRESS_VARIABLE)
        token = os.environ.get(TOKEN_VARIABLE) if token is None else token
        found = _only() if not address else _at(address)
    return found if token is None else msgspec.structs.replace(found, token=token)


def connected(name: str | None, address: str | None, token: str | None) -> secateur.Connection:
    """Connect to the cluster that is meant."""
    found = located(name, address, token)
    return secateur.connect(found.address, found.token, tls=found.tls)


def _named(name: str) -> KnownCluster:
    found = find(name)
    if found is None:
        raise CommandError(f"no cluster {name!r} runs here: {typed('start', name)} starts one{_others()}")
    return found


def _at(address: str) -> KnownCluster:
    try:
        parse_address(address)
    except InterfaceError as error:
        raise typer.BadParameter(error.message) from error
    return next((known for known in running() if known.address == address), KnownCluster("", address, ""))


def _only() -> KnownCluster:
    here = running()
    if not here:
        raise CommandError(
            "no cluster was named, and none was started here: run `secateur start`, or pass the address of one"
            f" (or set {ADDRESS_VARIABLE})"
        )
    if len(here) == 1:
        return here[0]
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise typer.BadParameter(f"several clusters run here: pass --name to say which is meant{_others()}")
    typer.echo(f"several clusters may be meant{_others()}", err=True)
    while True:
        typer.echo("the name of the one that is meant: ", nl=False, err=True)  # input() would ask on standard output
        answer = sys.stdin.readline()
        if not answer:
            raise typer.Abort
        found = next((known for known in here if known.name == answer.strip()), None)
        if found is not None:
            return found


def _others() -> str:
    """The clusters that run here, for the end of a sentence."""
    here = ", ".join(f"{known.name} ({known.address})" for known in running())
    return f"; running here: {here}" if here else ""


# The environment is read where the cluster is found (connecting.py): what it says yields to --name.
_ADDRESS_HELP = (
    f"The cluster, secateur://host:port. Left out: that of --name, of {ADDRESS_VARIABLE}, or the one that was started"
    " here."
)
_NAME_HELP = "The name of the cluster on this machine."

Address: TypeAlias = Annotated[str | None, typer.Argument(help=_ADDRESS_HELP, show_default=False)]
AddressOption: TypeAlias = Annotated[str | None, typer.Option("--address", help=_ADDRESS_HELP, show_default=False)]
Token: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help=f"The secret of the cluster. Left out: that of the one that was started here, or {TOKEN_VARIABLE}.",
        show_default=False,
    ),
]
LogFormat: TypeAlias = Annotated[
    Literal["text", "json"],
    typer.Option("--log-format", help="text, or json: log lines on standard error, one object a line."),
]
NewName: TypeAlias = Annotated[str, typer.Option("--name", help=_NAME_HELP)]
ClusterName: TypeAlias = Annotated[
    str | None, typer.Option("--name", help=f"{_NAME_HELP} Needed where several run.", show_default=False)
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Write JSON.")]
