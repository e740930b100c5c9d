"""The application that the customers call: each request has a JWT and a statement of theirs, whatever it is."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

import secateur.aio
from secateur.errors import AuthenticationError, Error

__all__ = ["app"]

opened: dict[str, secateur.aio.AsyncConnection] = {}  # by JWT; production would close those that have ended


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    for conn in opened.values():
        await conn.close()


app = FastAPI(lifespan=lifespan)


@app.post("/sql")
async def rows_of(request: Request) -> list[dict[str, Any]]:
    """The rows of a statement. Nothing is added to it here: the cluster knows whose rows there are for the bearer."""
    token = request.headers.get("authorization", "").removeprefix("Bearer ")
    if token not in opened:
        opened[token] = await secateur.aio.connect(os.environ["SECATEUR_ADDRESS"], token or "none")
    cur = await opened[token].execute((await request.body()).decode())
    return (await cur.arrow()).to_pylist()


@app.exception_handler(Error)
async def refused(_: Request, error: Error) -> JSONResponse:
    return JSONResponse({"error": str(error)}, 401 if isinstance(error, AuthenticationError) else 400)
