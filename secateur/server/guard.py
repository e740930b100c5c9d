"""The guard of all routes: a request has to pass it with its host, its token, and the type and size of its body."""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress
import socket
from collections.abc import Collection
from typing import Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from secateur.errors import Error
from secateur.server.answers import answer_to
from secateur.server.callers import Callers
from secateur.server.limits import ServerLimits

_OPEN_PATHS: Final = frozenset({"/healthz"})
_READS: Final = frozenset({"GET", "HEAD"})
_QUESTIONS: Final = frozenset({"OPTIONS"})
_OWN_SITES: Final = frozenset({"same-origin", "none"})
_CHALLENGES: Final = ('Bearer realm="secateur"', 'Basic realm="secateur"')
"""Each in a header of its own: Chromium reads only the first challenge of a header, and then asks nobody."""
_JSON: Final = "application/json"
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
)


class Guard:
    """ASGI middleware that refuses a request in a problem, and adds the headers that keep browsers careful.

    - The ``Host`` names this server, so a page of another site cannot reach it under a name of its own (DNS
      rebinding). Addresses are always allowed: rebinding needs a name.
    - Every path but ``/healthz`` needs ``Authorization: Bearer TOKEN``, with a token that the cluster accepts; the
      routes find its caller as ``request.state.caller``. Reads may use ``Basic`` with the token as the password, which
      browsers and scrapers have. So may a page of this server for other requests: a browser says with ``Origin`` where
      a request comes from.
    - A request of a page of another origin that is no read is refused, whatever it proves.
    - A body has the type JSON, which a form of another site cannot send without being asked for first; nothing here
      answers that question (no CORS).
    - A body is read up to a bound, and after the token.

    Args:
        app: What it protects.
        callers: Knows who may come in.
        hosts: Names of this server, beside ``localhost``, the name of the machine and addresses.
        limits: The bounds of a body, in bytes and seconds.
    """

    def __init__(self, app: ASGIApp, callers: Callers, hosts: Collection[str], limits: ServerLimits) -> None:
        self._application = app  # older releases of Starlette pass it by this name
        self._callers = callers
        self._hosts = {"localhost", socket.gethostname().lower(), *(host.lower() for host in hosts)}
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_carefully(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message.get("headers", ())}
                added = [entry for entry in _HEADERS if entry[0] not in present]
                message = {**message, "headers": [*message.get("headers", ()), *added]}
            await send(message)

        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            body = b"" if scope["path"] in _OPEN_PATHS else await self._admitted_body(scope, headers, receive)
        except (HTTPException, Error) as refusal:
            answer = answer_to(refusal)
            if answer.status_code == 401:
                for challenge in _CHALLENGES:
                    answer.headers.append("WWW-Authenticate", challenge)
            await answer(scope, receive, send_carefully)
            return
        is_read = False

        async def receive_again() -> Message:
            nonlocal is_read
            if is_read:
                return await receive()
            is_read = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._application(scope, receive_again, send_carefully)

    async def _admitted_body(self, scope: Scope, headers: dict[str, str], receive: Receive) -> bytes:
        """Check a request, note its caller, and read its body.

        Raises:
            HTTPException: It is refused.
            Error: The cluster does not say whether its token is good.
        """
        is_read = scope["method"] in _READS
        if not self._is_own_host(headers.get("host", "")):
            raise HTTPException(
                421,
                f"the Host header is {headers.get('host', '')!a}, which is no name of this server: use its address, or"
                " start it with that name among its hosts",
            )
        if not is_read and scope["method"] not in _QUESTIONS and not _is_of_own_page_or_none(headers):
            raise HTTPException(
                403,
                f"the request comes from a page of {headers.get('origin', 'another site')!a}, which is not this server:"
                " call it from a program, or from a page of its own; a proxy in between has to pass Host on",
            )
        token = _token_of(headers.get("authorization", ""), may_be_basic=is_read or "origin" in headers)
        caller = await self._callers.admitted(token)
        if caller is None:
            raise HTTPException(
                401,
                "the token is missing, wrong, over or revoked: send cluster.token, or a token that was made since, in"
                " the header 'Authorization: Bearer TOKEN'",
            )
        scope.setdefault("state", {})["caller"] = caller
        try:
            async with asyncio.timeout(self._limits.request_s_max):
                body = await self._body(headers, receive)
        except TimeoutError:
            seconds = self._limits.request_s_max
            raise HTTPException(408, f"the body did not arrive within {seconds:g} s") from None
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and kind != _JSON:
            raise HTTPException(
                415, f"the body has the type {kind!a}: send JSON, with the header 'Content-Type: application/json'"
            )
        return body

    def _is_own_host(self, header: str) -> bool:
        name, _, port = header.rpartition(":") if not header.endswith("]") else (header, "", "")
        if not name or not port.isdigit():
            name = header
        name = name.lower().rstrip(".")
        if name in self._hosts:
            return True
        try:
            ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return True

    async def _body(self, headers: dict[str, str], receive: Receive) -> bytes:
        most = self._limits.body_bytes_max
        refusal = HTTPException(
            413, f"the body of a request may have {most:,} bytes: bind fewer parameters, or load rows over Arrow"
        )
        declared = headers.get("content-length", "0")
        if not declared.isdigit() or int(declared) > most:
            raise refusal
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise HTTPException(400, "the connection ended before the body")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise refusal
            if not message.get("more_body", False):
                return b"".join(parts)


def _token_of(header: str, *, may_be_basic: bool) -> str | None:
    """The token in a header ``Authorization``; None if there is none."""
    scheme, _, given = header.partition(" ")
    given = given.strip()
    if scheme.lower() == "basic" and may_be_basic:
        try:
            return base64.b64decode(given, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return None
    return given if scheme.lower() == "bearer" else None


def _is_of_own_page_or_none(headers: dict[str, str]) -> bool:
    """Whether a request comes from a page of this server, or from none.

    Browsers send ``Origin`` with everything but reads, and no page can change it, nor ``Sec-Fetch-Site``.
    """
    if headers.get("sec-fetch-site", "none") not in _OWN_SITES:
        return False
    origin = headers.get("origin")
    if origin is None:
        return True
    scheme, _, place = origin.partition("://")
    host = headers.get("host", "")
    default = {"http": ":80", "https": ":443"}.get(scheme.lower())
    return default is not None and place.lower().removesuffix(default) == host.lower().removesuffix(default)
