"""``secateur token``: tokens with a role."""

from __future__ import annotations

import re
import time
from typing import Annotated, Final

import msgspec
import typer

from secateur.cli.clusters import AddressOption, AsJson, ClusterName, Token, connected
from secateur.cli.rendering import print_done, print_records

_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION: Final = re.compile(r"([0-9]+)([smhd])")

token = typer.Typer(no_args_is_help=True, help="Make, list and revoke tokens with a role.", rich_markup_mode=None)


@token.command()
def create(
    role: Annotated[
        list[str],
        typer.Option(
            help="read, write, admin or code; each may do what those before it may. For some tables only: a role of"
            " CREATE ROLE, which may be repeated, or 'read on orders, items; write on carts'."
        ),
    ],
    purpose: Annotated[str, typer.Option("--for", help="What it is for, as `token list` shows it.")] = "",
    principal: Annotated[str, typer.Option(help="Whom its bearer acts for.")] = "",
    claim: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="What session('NAME') is for its bearer. May be repeated."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="DURATION", help="When it ends: 30s, 15m, 1h, 7d. Never by default.")
    ] = None,
    address: AddressOption = None,
    name: ClusterName = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it; it cannot be looked up later.

    For example:

        secateur token create --role read --for grafana

        secateur token create --role 'read on orders; write on carts' --for shop

        secateur token create --role reader --claim tenant=C2 --expires 1h
    """
    claims = dict(_claim(each) for each in claim or [])
    ends = None if expires is None else _seconds(expires)
    with connected(name, address, token) as connection:
        made = connection.tokens.create(
            role[0] if len(role) == 1 else role, purpose, principal=principal, claims=claims, expires=ends
        )
    typer.echo(msgspec.json.encode(made).decode() if as_json else made.token)
    if not as_json:
        revoke = f"secateur token revoke {made.id} --address {connection.address}"
        typer.echo(f"its id is {made.id}: `{revoke}` makes it invalid", err=True)


@token.command("list")
def list_tokens(
    address: AddressOption = None, name: ClusterName = None, token: Token = None, as_json: AsJson = False
) -> None:
    """List the tokens that are valid, oldest first, and JWTs that were revoked. That of the cluster is not among them.

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
            "principal": one.principal,
            "claims": ", ".join(f"{claim}={value}" for claim, value in one.claims.items()),
            "created": _moment(one.created),
            "expires": _moment(one.expires),
            "revoked": _moment(one.revoked),
        }
        for one in found
    ]
    print_records(rows, as_json=as_json, empty="there are no tokens beside that of the cluster")


@token.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the token, or itself, as for a JWT.")],
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
        revoked = connection.tokens.revoke(token_id).id
    print_done(f"token {revoked} is not valid any more", {"revoked": revoked}, as_json=as_json)


def _claim(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise typer.BadParameter(f"--claim {text!r}: NAME=VALUE, such as tenant=C2")
    return name, value


def _seconds(text: str) -> float:
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"--expires {text!r}: a number and a unit, such as 30s, 15m, 1h or 7d")
    return float(int(found[1]) * _UNITS_S[found[2]])


def _moment(seconds: float | None) -> str:
    return "" if not seconds else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
