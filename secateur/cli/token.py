"""``secateur token``: tokens with a role."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
import typer

from secateur.cli.connecting import AddressOption, AsJson, ClusterName, Token, connected
from secateur.cli.rendering import print_done, print_records

token = typer.Typer(no_args_is_help=True, help="Make, list and revoke tokens with a role.", rich_markup_mode=None)


@token.command()
def create(
    role: Annotated[
        str,
        typer.Option(
            help="read, write, admin or code; each may do what those before it may. For some tables only: 'read on"
            " orders, items; write on carts'."
        ),
    ],
    purpose: Annotated[str, typer.Option("--for", help="What it is for, as `token list` shows it.")] = "",
    address: AddressOption = None,
    name: ClusterName = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it; it cannot be looked up later.

    For example:

        secateur token create --role read --for grafana

        secateur token create --role 'read on orders; write on carts' --for shop
    """
    with connected(name, address, token) as connection:
        made = connection.tokens.create(role, purpose)
    typer.echo(msgspec.json.encode(made).decode() if as_json else made.token)
    if not as_json:
        revoke = f"secateur token revoke {made.id} --address {connection.address}"
        typer.echo(f"its id is {made.id}: `{revoke}` makes it invalid", err=True)


@token.command("list")
def list_tokens(
    address: AddressOption = None, name: ClusterName = None, token: Token = None, as_json: AsJson = False
) -> None:
    """List the tokens that are valid, oldest first. That of the cluster itself is not among them.

    For example:

        secateur token list
    """
    with connected(name, address, token) as connection:
        found = connection.tokens.list()
    rows = [
        {
            "id": one.id,
            "role": one.title,
            "name": one.name,
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one.created)),
        }
        for one in found
    ]
    print_records(rows, as_json=as_json, empty="there are no tokens beside that of the cluster")


@token.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the token.")],
    address: AddressOption = None,
    name: ClusterName = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Make a token invalid and close its connections.

    For example:

        secateur token revoke 5f0c1a9e
    """
    with connected(name, address, token) as connection:
        connection.tokens.revoke(token_id)
    print_done(f"token {token_id} is not valid any more", {"revoked": token_id}, as_json=as_json)
