"""The ASGI application: the routes behind their guard."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from html import escape
from typing import Any, Final

from fastapi import FastAPI, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse
from markupsafe import Markup
from starlette.exceptions import HTTPException

from secateur.client.connect import parse_address, tls_for, token_for
from secateur.client.dbapi.connection import Connection
from secateur.errors import AuthenticationError, Error
from secateur.protocol.jobs import JobInfo
from secateur.server import job_routes, statement_routes, token_routes
from secateur.server.answers import (
    FORBIDDEN_ANSWER,
    NOT_ADMITTED_ANSWER,
    PROBLEM_ANSWER,
    Problem,
    answer_error,
    json_answer,
)
from secateur.server.dashboard import pages, plans
from secateur.server.dashboard.readings import PacedReading
from secateur.server.dashboard.templating import rendered
from secateur.server.guard import Guard
from secateur.server.limits import ServerLimits
from secateur.server.metrics import METRICS_TYPE, Metrics
from secateur.server.state import Server, ServerState
from secateur.wire import Tls

_CODE: Final = re.compile(r"`([^`]+)`")
_PATH_FIELD: Final = re.compile(r"\{\w+\}")


def operations_page(document: Mapping[str, Any]) -> str:
    """An OpenAPI document as one HTML page.

    It needs no script, and nothing from outside.

    Args:
        document: As ``/openapi.json`` has it.
    """
    operations = [
        {
            "id": operation["operationId"],
            "method": method,
            "path": path,
            "summary": operation["summary"],
            "description": operation["description"],
            "fields": _fields(operation, document),
            "example": _example(path, method, operation, document),
        }
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    values = {"info": document["info"], "operations": operations, "prose": _prose, "type": _type}
    return rendered("operations.html", values)


def _prose(text: str) -> Markup:
    """A text as HTML, with what stands in backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", escape(text)))


def _example(path: str, method: str, operation: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """A request as curl sends it."""
    named = ((one["name"], one["schema"].get("examples")) for one in operation.get("parameters", ()))
    query = "&".join(f"{name}={examples[0]}" for name, examples in named if examples)
    target = f"$SECATEUR_URL{_PATH_FIELD.sub('$ID', path)}{'?' if query else ''}{query}"
    parts = [f'curl -s "{target}" -H "Authorization: Bearer $SECATEUR_TOKEN"']
    if method == "delete":
        parts.append("-X DELETE")
    form = _form(operation, document)
    for example in form.get("examples", ())[:1]:
        body = {field: example[field] for field in form["properties"] if field in example}
        parts.append(f"-H 'Content-Type: application/json' -d {shlex.quote(json.dumps(body))}")
    return " \\\n  ".join(parts)


def _form(operation: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The form of the body; nothing for an operation without one."""
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    form: Mapping[str, Any] = document["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {})
    return form


def _fields(operation: Mapping[str, Any], document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The parameters of an operation, and the fields of its body in the same form."""
    form = _form(operation, document)
    found: list[Mapping[str, Any]] = [
        {"required": False, "description": "", **parameter} for parameter in operation.get("parameters", ())
    ]
    for name, schema in form.get("properties", {}).items():
        is_required, meaning = name in form.get("required", ()), schema.get("description", "")
        found.append({"name": name, "in": "body", "required": is_required, "schema": schema, "description": meaning})
    return found


def _type(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(choice) for choice in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    return str(schema.get("type", "anything"))


_TITLE: Final = "secateur"
_DESCRIPTION: Final = (
    "Statements and jobs of a secateur cluster over HTTP. Every path but /healthz needs the header"
    " 'Authorization: Bearer TOKEN', with a token that the cluster accepts. What its role may not do is refused."
)
_API_VERSION: Final = "1"
_TIDY_S: Final = 5.0
_HEALTH_S: Final = 1.0
"""However many ask, the cluster is asked once in that time."""


def app(
    address: str,
    token: str | None = None,
    *,
    limits: ServerLimits | None = None,
    hosts: Collection[str] = (),
    cluster_tls: Tls | None = None,
) -> FastAPI:
    """Make an ASGI application that serves one cluster over HTTP: docs/http.md has its paths.

    It is a client: it connects when the first request needs it, and any ASGI server may run it. :func:`serve` does.

    Args:
        address: ``secateur://host:port`` of the cluster.
        token: A token of the cluster, for what the pages and metrics show; by default as :func:`secateur.connect` finds
            it. Callers send this one or any other that the cluster accepts, and may do what that one may. For a cluster
            without tokens, everybody who reaches the port is let in.
        limits: What runs at once, and what is kept.
        hosts: Names under which callers reach it, beside ``localhost``, the name of the machine and addresses.
        cluster_tls: How its connections to the cluster are encrypted; by default as :func:`secateur.connect` finds it.

    Raises:
        InterfaceError: The address has another form.
    """
    bounds = ServerLimits() if limits is None else limits
    place = parse_address(address)
    secret = token_for(*place, token)
    server = ServerState(address, secret or "", bounds, tls_for(*place, cluster_tls))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        tidying = asyncio.create_task(_tidy(server))
        try:
            yield
        finally:
            tidying.cancel()
            with suppress(asyncio.CancelledError):
                await tidying
            await asyncio.to_thread(server.close)

    made = FastAPI(
        title=_TITLE,
        version=_API_VERSION,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        responses={401: NOT_ADMITTED_ANSWER, 403: FORBIDDEN_ANSWER, "default": PROBLEM_ANSWER},
    )
    made.state.server = server
    made.add_middleware(Guard, callers=server.callers, hosts=hosts, limits=bounds)
    made.add_exception_handler(404, pages.answer_not_found)
    for kind in (Error, HTTPException, RequestValidationError, Exception):
        made.add_exception_handler(kind, answer_error)
    for routes in (statement_routes, job_routes, token_routes, pages, plans):
        made.include_router(routes.router)
    _add_own_pages(made, server)
    return made


def _add_own_pages(made: FastAPI, server: ServerState) -> None:
    metrics = Metrics(server.connections, server.statements, server.limits.metrics_share_max)
    health = PacedReading(server.connections, Connection.jobs, share_max=1.0, period_s=_HEALTH_S)
    asked = asyncio.Lock()

    def openapi() -> dict[str, Any]:
        if made.openapi_schema is None:
            made.openapi_schema = _document(made)
        return made.openapi_schema

    made.openapi = openapi  # type: ignore[method-assign]

    @made.get("/openapi.json", include_in_schema=False)
    async def get_openapi_document() -> Response:
        return json_answer(openapi())

    @made.get("/docs", include_in_schema=False)
    async def get_docs() -> Response:
        return HTMLResponse(operations_page(openapi()))

    @made.get("/metrics", include_in_schema=False)
    async def get_metrics(caller: Server) -> Response:
        caller.check_sees_all()
        return Response(await server.in_thread(metrics.text), headers={"Content-Type": METRICS_TYPE})

    @made.get("/healthz", include_in_schema=False)
    async def get_health() -> Response:
        async with asked:  # anybody may ask, and all of them take one thread
            is_reachable = await server.in_thread(_is_reachable, health)
        cluster = "reachable" if is_reachable else "unreachable"
        return json_answer({"status": "ok", "cluster": cluster}, 200 if is_reachable else 503)


def _is_reachable(health: PacedReading[list[JobInfo]]) -> bool:
    """Whether the controller answered, at most a second ago: it alone lists the jobs, from memory."""
    try:
        health.get()
    except AuthenticationError:
        return True  # it has answered
    except Error:
        return False
    return True


def _document(made: FastAPI) -> dict[str, Any]:
    document = get_openapi(title=made.title, version=made.version, description=made.description, routes=made.routes)
    components = document.setdefault("components", {})
    schema = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    components.setdefault("schemas", {}).setdefault("Problem", schema)
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    return document


async def _tidy(server: ServerState) -> None:
    """Drop old results also when nobody asks for anything."""
    while True:
        await asyncio.sleep(_TIDY_S)
        server.statements.forget_old()
