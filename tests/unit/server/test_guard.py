from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from secateur.server import Guard, ServerLimits


class Callers:
    """Everybody has a token."""

    async def admitted(self, _: str | None) -> object:
        return object()


def status_of(method: str, headers: dict[str, str]) -> int:
    """The status of the answer to a request without a body."""
    told: list[int] = []

    async def application(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            told.append(message["status"])

    guard = Guard(application, Callers(), ["db.example"], ServerLimits())  # type: ignore[arg-type]
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "path": "/api/v1/statements", "method": method, "headers": encoded}
    asyncio.run(guard(scope, receive, send))
    return told[0]


@pytest.mark.parametrize(
    ("host", "origin", "expected"),
    [
        ("db.example:8080", None, 200),
        ("db.example:8080", "http://db.example:8080", 200),
        ("DB.example", "http://db.example:80", 200),
        ("db.example", "https://db.example:443", 200),
        ("db.example:8080", "http://db.example:8081", 403),
        ("db.example:8080", "http://evil.example:8080", 403),
        ("db.example:8080", "http://db.example.evil.example:8080", 403),
        ("db.example", "null", 403),
        ("evil.example", "http://evil.example", 421),
    ],
)
def test_a_page_of_another_site_changes_nothing(host: str, origin: str | None, expected: int) -> None:
    headers = {"host": host, **({} if origin is None else {"origin": origin})}
    assert status_of("POST", headers) == expected
    assert status_of("GET", headers) == (421 if expected == 421 else 200)
