"""Connects a command to the cluster that its options, the environment, or an earlier ``secateur start`` name."""

from __future__ import annotations

import typer

import secateur
from secateur.cli.failures import CommandError
from secateur.cli.local_clusters import running
from secateur.client.address import parse_address
from secateur.client.connect import ADDRESS_VARIABLE
from secateur.errors import InterfaceError

__all__ = ["connected", "located", "tls_at"]


def located(address: str | None, token: str | None) -> tuple[str, str | None]:
    """Return address and token: the given ones, else those of the only cluster that runs here.

    Args:
        address: As given, or of the environment.
        token: As given, or of the environment.

    Raises:
        CommandError: No address was given, and not exactly one cluster runs here.
        BadParameter: The address has another form.
    """
    here = running()
    if address is None:
        if not here:
            raise CommandError(
                "no cluster was named, and none was started here: run `secateur start`, or pass the address of one"
                f" (or set {ADDRESS_VARIABLE})"
            )
        if len(here) > 1:
            listed = ", ".join(f"{cluster.name} ({cluster.address})" for cluster in here)
            raise CommandError(f"several clusters run here: pass the address of one of {listed}")
        address = here[0].address
    try:
        parse_address(address)
    except InterfaceError as error:
        raise typer.BadParameter(error.message) from error
    if token is None:
        token = next((cluster.token for cluster in here if cluster.address == address), None)
    return address, token


def connected(address: str | None, token: str | None) -> secateur.Connection:
    """Connect to the cluster that is meant."""
    found, secret = located(address, token)
    return secateur.connect(found, secret, tls=tls_at(found))


def tls_at(address: str) -> secateur.Tls | None:
    """How connections to a cluster are encrypted, if it was started here; None leaves it to the environment."""
    return next((cluster.tls for cluster in running() if cluster.address == address), None)
