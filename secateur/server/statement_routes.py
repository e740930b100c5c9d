"""``/api/v1/statements`` and ``/api/v1/explain``; and the system tables, each with the columns that it has in SQL."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from types import GenericAlias
from typing import Annotated, Any, Final, Literal

import msgspec
from fastapi import APIRouter, Query, Request, Response
from pydantic import create_model
from starlette.exceptions import HTTPException

from secateur.errors import InternalError
from secateur.http.json_values import parameters_of
from secateur.planner.system.tables import SYSTEM_TABLES
from secateur.protocol.codec import from_json
from secateur.server import forms
from secateur.server.answers import (
    STREAMED_ANSWERS,
    RowsForm,
    json_answer,
    problem_of,
    problem_response,
    result_answer,
    rows_form,
    system_rows,
)
from secateur.server.state import Server, ServerOfCaller
from secateur.server.statements import SubmittedStatement

router = APIRouter(prefix="/api/v1")

_PATH: Final = "/api/v1/statements"
_LISTED: Final = 1000
_ON_MEMBER: Final = re.compile(r"[A-Za-z0-9_-]+:[0-9]{1,18}")
"""The id of a statement in ``secateur.statements``."""
_StatementsRow: Final = forms.row_of_table(SYSTEM_TABLES["statements"])
_LIST_FIELDS: Final[dict[str, Any]] = {
    "items": (list[forms.StatementStatus] | GenericAlias(list, (_StatementsRow,)), ...),
}
_StatementList: Final = create_model("StatementList", __doc__="Statements, the newest first.", **_LIST_FIELDS)
_STATEMENT_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": forms.StatementStatus | _StatementsRow, "description": "The statement."}
}
_RESULT_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": forms.StatementResult, "description": "The rows.", "content": STREAMED_ANSWERS},
    202: {"model": forms.StatementStatus, "description": "It has not ended: ask for the result by its id."},
}
_SYSTEM_TABLES: Final = ("members", "tables", "columns", "partitions", "events", "loads", "latencies", "settings")
_NEWEST_FIRST: Final = frozenset({"events", "loads"})

_TableName = Annotated[
    str | None, Query(min_length=1, max_length=256, description="rows of this table only", examples=["orders"])
]


@router.post("/statements", responses=_RESULT_ANSWERS, summary="Execute a statement")
async def post_statement(
    request: Request, server: Server, body: forms.StatementForm, idempotency_key: forms.IdempotencyKey = None
) -> Response:
    """Execute one statement, and answer with its rows, or with its id when it takes longer than `wait`.

    Every statement is a transaction of its own. The answer has the first rows; with `Accept: text/csv`,
    `application/x-ndjson` or `application/vnd.apache.arrow.stream`, all of them.
    """
    form = rows_form(request)  # what cannot be answered is not executed
    params = parameters_of(body.params)

    async def submitted() -> str:
        return server.statements.submit(body.sql, params, body.settings, caller=server.caller).id

    statement_id = await server.keys.once(server.caller.digest, _PATH, idempotency_key, await request.body(), submitted)
    statement = _found(server, statement_id)
    wait_s = (server.limits.wait_s_max if body.wait else 0.0) if isinstance(body.wait, bool) else body.wait
    return await _result(form, server, statement, 0, forms.PAGE_ROWS, wait_s)


@router.get("/statements", responses={200: {"model": _StatementList}}, summary="List statements")
async def list_statements(
    server: Server,
    scope: Literal["server", "cluster"] = Query(
        default="server",
        description="`server`: those that were submitted here. `cluster`: those of `secateur.statements`, whoever"
        " executed them, with the columns of that table",
    ),
    limit: forms.PageRows = _LISTED,
) -> Response:
    """Statements that run, and the newest that have ended."""
    if scope == "cluster":
        found = await server.in_thread(
            system_rows, server, "SELECT * FROM secateur.statements ORDER BY started DESC, id", [], 0, limit
        )
        return json_answer({"items": msgspec.Raw(found.rows)})
    return json_answer({"items": [_status(statement) for statement in server.statements.newest(server.caller)[:limit]]})


@router.get("/statements/{statement_id}", responses=_STATEMENT_ANSWERS, summary="Show a statement")
async def get_statement(server: Server, statement_id: forms.ResourceId, wait: forms.WaitSeconds = 0.0) -> Response:
    """The state of a statement, without its rows; also of one in `secateur.statements`, by its `id` there."""
    if _ON_MEMBER.fullmatch(statement_id):
        return json_answer(await _on_member(server, statement_id))
    statement = _found(server, statement_id)
    await server.statements.wait(statement, min(wait, server.limits.wait_s_max))
    return json_answer(_status(statement))


@router.get("/statements/{statement_id}/result", responses=_RESULT_ANSWERS, summary="Read the rows of a statement")
async def get_statement_result(
    request: Request,
    server: Server,
    statement_id: forms.ResourceId,
    offset: forms.Offset = 0,
    limit: forms.PageRows = forms.PAGE_ROWS,
    wait: forms.WaitSeconds = 0.0,
) -> Response:
    """Rows of a result: some in JSON, or all as `text/csv`, `application/x-ndjson` or Arrow.

    A statement that failed is answered with its error.
    """
    return await _result(rows_form(request), server, _found(server, statement_id), offset, limit, wait)


@router.delete("/statements/{statement_id}", responses=_STATEMENT_ANSWERS, summary="Cancel a statement")
async def delete_statement(server: Server, statement_id: forms.ResourceId) -> Response:
    """Cancel a statement on all members, or forget one that has ended, with its rows.

    An id of `secateur.statements` ends that statement, as `KILL` does.
    """
    if _ON_MEMBER.fullmatch(statement_id):
        await server.ask(lambda connection: connection.execute(f"KILL '{statement_id}'"))
        return json_answer(await _on_member(server, statement_id))
    statement = _found(server, statement_id)
    await server.statements.cancel(statement)
    return json_answer(_status(statement))


@router.post("/explain", summary="Show the plan of a statement", response_model=dict[str, Any])
async def post_explain(server: Server, body: forms.ExplainForm) -> Response:
    """The document of `EXPLAIN (FORMAT JSON)`, and its `text`. Nothing is executed."""
    params = parameters_of(body.params)
    plan = await server.ask(lambda connection: connection.explain(body.sql, params), body.settings)
    return json_answer({**plan.to_dict(), "text": plan.text})


async def _on_member(server: ServerOfCaller, statement_id: str) -> dict[str, Any]:
    sql = "SELECT * FROM secateur.statements WHERE id = ?"
    found = await server.in_thread(system_rows, server, sql, [statement_id], 0, 1)
    rows = from_json(found.rows, list[dict[str, Any]])
    if not rows:
        raise HTTPException(404, f"secateur.statements has no {statement_id!a}: it keeps the newest of each member")
    return rows[0]


def _found(server: ServerOfCaller, statement_id: str) -> SubmittedStatement:
    statement = server.statements.find(statement_id, server.caller)
    if statement is None:
        raise HTTPException(
            404,
            f"there is no statement {statement_id!a}: it was not submitted to this server, or it ended more than"
            f" {server.limits.kept_s:g} s ago",
        )
    return statement


async def _result(
    form: RowsForm, server: ServerOfCaller, statement: SubmittedStatement, offset: int, rows_max: int, wait_s: float
) -> Response:
    await server.statements.wait(statement, min(wait_s, server.limits.wait_s_max))
    location = {"Location": f"{_PATH}/{statement.id}"}
    if not statement.state.is_final:
        return json_answer(_status(statement), 202, location)
    if statement.error is not None:
        return problem_response(problem_of(statement.error, statement.id), location)
    result = statement.result
    if result is None:
        if statement.has_result:
            raise HTTPException(410, f"the rows of {statement.id!a} were dropped for newer ones: execute it again")
        return json_answer(_status(statement) | {"columns": [], "rows": [], "next_offset": None}, headers=location)
    return await result_answer(server, form, result, _status(statement), offset, rows_max, location)


def _status(statement: SubmittedStatement) -> dict[str, Any]:
    ended_s, started_s = statement.ended_s, statement.started_s
    state = statement.state
    if state.is_final and ended_s is None:
        raise InternalError(f"statement {statement.id} has ended at no time")
    result_path = f"{_PATH}/{statement.id}/result" if statement.result is not None else None
    return {
        "id": statement.id,
        "sql": statement.sql,
        "state": state,
        "submitted": forms.iso_moment(statement.submitted_s),
        "started": forms.iso_moment(started_s),
        "ended": forms.iso_moment(ended_s),
        "elapsed_ms": None if started_s is None or ended_s is None else 1000 * (ended_s - started_s),
        "row_count": statement.row_count,
        "stats": msgspec.to_builtins(statement.stats),
        "error": None if statement.error is None else problem_of(statement.error, statement.id).model_dump(),
        "result": result_path,
    }


def _add_system_table(name: str) -> None:
    table = SYSTEM_TABLES[name]
    order = "DESC" if name in _NEWEST_FIRST else "ASC"
    keys = ", ".join(f'"{column}" {order}' for column in table.primary_key)
    answers: Callable[..., Awaitable[Response]]

    async def page(server: ServerOfCaller, where: str, params: list[str], offset: int, limit: int) -> Response:
        sql = f"SELECT * FROM secateur.{name}{where} ORDER BY {keys}"
        found = await server.in_thread(system_rows, server, sql, params, offset, limit)
        return json_answer({"items": msgspec.Raw(found.rows), "next_offset": found.next_offset})

    if any(column.name == "table_name" for column in table.columns):

        async def rows_of_table(
            server: Server, table: _TableName = None, offset: forms.Offset = 0, limit: forms.PageRows = forms.PAGE_ROWS
        ) -> Response:
            where = "" if table is None else " WHERE lower(table_name) = lower(?)"
            return await page(server, where, [] if table is None else [table], offset, limit)

        answers = rows_of_table
    else:

        async def rows(server: Server, offset: forms.Offset = 0, limit: forms.PageRows = forms.PAGE_ROWS) -> Response:
            return await page(server, "", [], offset, limit)

        answers = rows
    router.add_api_route(
        f"/{name}",
        answers,
        name=f"get_{name}",
        summary=f"Rows of secateur.{name}",
        description=f"The rows of `secateur.{name}`" + (", the newest first." if order == "DESC" else "."),
        responses={200: {"model": forms.page_of_table(table)}},
    )


for _name in _SYSTEM_TABLES:
    _add_system_table(_name)
