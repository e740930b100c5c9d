"""``/api/v1/tokens``, for callers whose own token has the role ``admin``: the cluster refuses all others."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from secateur.errors import ProgrammingError
from secateur.protocol.tokens import SIGNED_CHARS_MAX, GrantedToken
from secateur.server import forms
from secateur.server.answers import json_answer
from secateur.server.state import Server

router = APIRouter(prefix="/api/v1")

_Text = Annotated[str, Field(max_length=1000)]
_GivenToken = Annotated[str, Path(pattern=rf"^[0-9A-Za-z_.:-]{{1,{SIGNED_CHARS_MAX}}}$")]


class TokenForm(BaseModel):
    """A token to be made."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"role": "read on orders", "name": "the dashboards"}]}
    )

    role: Annotated[str, Field(min_length=1)] | Annotated[list[str], Field(min_length=1, max_length=100)] = Field(
        description="`read`, `write`, `admin` or `code`; the name of a role that CREATE ROLE has made, or a list of"
        " them; or what it is granted itself, as `read on orders, items; write on carts`"
    )
    name: _Text = Field(default="", description="what it is for")
    principal: _Text = Field(default="", description="whom its bearer acts for")
    claims: dict[str, str] = Field(
        default={}, description='what row policies read of its bearer: `{"tenant": "C2"}` is `session(\'tenant\')`'
    )
    expires_s: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="seconds after which it ends; null for never"
    )


class NewTokenForm(BaseModel):
    """A token that was made."""

    id: str
    token: str = Field(description="the secret, which is told this once")


class TokenStatus(BaseModel):
    """A token without its secret."""

    id: str
    name: str
    principal: str
    role: str = Field(description="what it was made with")
    claims: dict[str, str]
    created: str | None = Field(description="a moment in ISO 8601, UTC; null for a JWT")
    expires: str | None = Field(description="when it ends; null for never")
    revoked: str | None = Field(description="when it was revoked, of a JWT; null for a token that is valid")


class TokenList(BaseModel):
    """Tokens that are valid, oldest first, and JWTs that were revoked. That of the cluster is not among them."""

    items: list[TokenStatus]


class RevokedToken(BaseModel):
    """A token that is not valid any more."""

    id: str


@router.post("/tokens", status_code=201, responses={201: {"model": NewTokenForm}}, summary="Make a token")
async def post_token(server: Server, body: TokenForm) -> Response:
    """Make a token, which every member accepts when the answer comes. It needs the role `admin`.

    The secret is told once, and kept nowhere, so a request that is sent again makes another token.
    """
    made = await server.ask(
        lambda connection: connection.tokens.create(
            body.role, body.name, principal=body.principal, claims=body.claims, expires=body.expires_s
        )
    )
    return json_answer({"id": made.id, "token": made.token}, 201)


@router.get("/tokens", responses={200: {"model": TokenList}}, summary="List tokens")
async def list_tokens(server: Server) -> Response:
    """The tokens that are valid, oldest first, and JWTs that were revoked. It needs the role `admin`."""
    found = await server.ask(lambda connection: connection.tokens.list())
    return json_answer({"items": [_status(token) for token in found]})


@router.delete("/tokens/{token_id}", responses={200: {"model": RevokedToken}}, summary="Revoke a token")
async def delete_token(server: Server, token_id: _GivenToken) -> Response:
    """Make a token invalid and close its connections. It needs the role `admin`.

    It is named by its id, or by itself; a JWT by itself alone.
    """
    try:
        revoked = await server.ask(lambda connection: connection.tokens.revoke(token_id))
    except ProgrammingError as error:  # there is no such token
        raise HTTPException(404, error.message) from error
    return json_answer({"id": revoked.id})


def _status(token: GrantedToken) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "principal": token.principal,
        "role": token.title,
        "claims": dict(token.claims),
        "created": forms.iso_moment(token.created or None),
        "expires": forms.iso_moment(token.expires),
        "revoked": forms.iso_moment(token.revoked),
    }
