"""Plans as parts of pages: of a statement explained, measured, or compared with pruning off; of a job; as pictures."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

import pyarrow as pa
from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict

from secateur.client.jobs.job import Job
from secateur.client.jobs.resolved_plan import ResolvedPlan
from secateur.drawing.diagram import Diagram, DiagramEdge, DiagramNode, abbreviated
from secateur.drawing.quantity import count_text, duration_text
from secateur.drawing.svg import layered_svg
from secateur.errors import DeadlineError, Error, InternalError, ProgrammingError, PruningMismatchError
from secateur.http.json_values import parameters_of
from secateur.protocol.jobs import JobStatus
from secateur.server.answers import status_of
from secateur.server.dashboard.templating import MEMBERS, html_answer, rendered
from secateur.server.forms import Params, SqlText
from secateur.server.state import Server, ServerOfCaller

router = APIRouter(include_in_schema=False)

_RUNS: Final = 5
"""Runs of each side of a comparison whose median counts, behind one that pays for being the first."""
_COMPARED_S: Final = 3.0
"""After so many seconds no further run of the two sides begins."""
_VERIFIED_MS_MAX: Final = 5000.0
"""A query that takes longer without pruning is not executed on both sides once more to compare its rows."""

_MEMBERS_SHOWN_MAX: Final = 8


class PlanForm(BaseModel):
    """A statement whose plan a page shows."""

    model_config = ConfigDict(extra="forbid")

    sql: SqlText
    params: Params = []
    mode: Literal["explain", "analyze", "compare"]


@router.post("/plan")
async def post_plan(server: Server, body: PlanForm) -> Response:
    """A part of a page: the plan, its picture and, if it was executed, what each vertex did on each member."""
    try:
        params = parameters_of(body.params)
        if body.mode == "compare":
            runs, on, off = await _compared(server, body.sql, params)
            equal = await _are_rows_equal(server, body.sql, params, off["analyze"]["elapsed_ms"])
            compared = {"on": on["analyze"], "off": off["analyze"], "equal": equal, "runs": runs}
            return html_answer(rendered("compare.html", compared))
        if body.mode == "explain":
            plan = await server.ask(lambda connection: connection.explain(body.sql, params).to_dict())
        else:
            plan = await _analyzed(server, body.sql, params, "on")
        members = await server.in_thread(_members, server)
        return html_answer(rendered("plan.html", {"plan": plan, **plan_picture(plan, members)}))
    except Error as error:
        return html_answer(rendered("plan_error.html", {"error": error}), int(status_of(error)))


async def _compared(
    server: ServerOfCaller, sql: str, params: list[Any] | dict[str, Any]
) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Returns the number of runs of each side that count, and their runs of the median time; the two take turns."""
    until_s = time.monotonic() + _COMPARED_S
    runs: list[list[dict[str, Any]]] = []
    while len(runs) <= _RUNS and (not runs or time.monotonic() < until_s):
        runs.append([await _analyzed(server, sql, params, pruning) for pruning in ("on", "off")])
    measured = runs[1:] or runs
    sides = (sorted(side, key=lambda one: one["analyze"]["elapsed_ms"]) for side in zip(*measured, strict=True))
    on, off = (side[len(side) // 2] for side in sides)
    return len(measured), on, off


async def _analyzed(
    server: ServerOfCaller, sql: str, params: list[Any] | dict[str, Any], pruning: str
) -> dict[str, Any]:
    """The document of EXPLAIN (ANALYZE, FORMAT JSON).

    It runs where the statements of the server run, and is ended when it takes longer than a request may.
    """
    text = f"EXPLAIN (ANALYZE, FORMAT JSON) {check_query(sql)}"
    table = await _result(server, text, params, pruning)
    document: dict[str, Any] = json.loads("".join(table.column(0).to_pylist()))
    if "analyze" not in document:
        raise InternalError("EXPLAIN (ANALYZE, FORMAT JSON) has no figures")
    return document


async def _are_rows_equal(
    server: ServerOfCaller, sql: str, params: list[Any] | dict[str, Any], elapsed_ms: float
) -> bool | None:
    """Whether both sides have the same rows, as ``SET pruning = verify`` compares them; None if that takes too long."""
    if elapsed_ms > _VERIFIED_MS_MAX:
        return None
    try:
        await _result(server, check_query(sql), params, "verify")
    except PruningMismatchError:
        return False
    return True


async def _result(server: ServerOfCaller, text: str, params: list[Any] | dict[str, Any], pruning: str) -> pa.Table:
    statement = server.statements.submit(text, params, {"pruning": pruning}, caller=server.caller)
    try:
        await server.statements.wait(statement, server.limits.wait_s_max)
    finally:
        if not statement.state.is_final:
            await asyncio.shield(server.statements.cancel(statement))
    if statement.error is not None:
        raise statement.error
    if statement.result is None:
        raise DeadlineError(f"the query did not end within {server.limits.wait_s_max:g} s, and was ended")
    return statement.result.table


def _members(server: ServerOfCaller) -> tuple[str, ...]:
    return tuple(row["id"] for row in server.readings.rows(MEMBERS) if row["state"] != "lost")


_COMMENT: Final = re.compile(r"\s+|--[^\n]*(?:\n|$)|/\*.*?\*/", re.DOTALL)
_FIRST: Final = re.compile(r"SELECT\b|FROM\b|VALUES\b|WITH\b|\(", re.IGNORECASE)
_CHANGES: Final = re.compile(r"\b(?:INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)


def check_query(sql: str) -> str:
    """Return the text of a query without comments before it.

    EXPLAIN ANALYZE executes its statement, and the two sides of a comparison do so several times: a change of rows must
    not happen for that. The planner says only of some statements whether they change rows, so a text has to look like
    a query; one that begins with WITH and has a word such as DELETE is refused even where that is a name.

    Raises:
        ProgrammingError: It may be something else.
    """
    start = 0
    while (skipped := _COMMENT.match(sql, start)) is not None:
        start = skipped.end()
    text = sql[start:]
    first = _FIRST.match(text)
    if first is None or (first[0].upper() == "WITH" and _CHANGES.search(text)):
        raise ProgrammingError(
            "only queries are measured here, because that executes them: use Run for a statement that changes"
            " something, or EXPLAIN, which executes nothing"
        )
    return text


def plan_picture(plan: Mapping[str, Any], members: tuple[str, ...]) -> dict[str, Any]:
    """Draw the document of EXPLAIN (FORMAT JSON), with or without ANALYZE.

    Args:
        plan: The document.
        members: All members; those that take no part are shown as skipped.

    Returns:
        ``svg`` is the picture, ``members`` says of each member whether it takes part, and ``work`` what each vertex did
        on each member, as the document does and with the ``vertex``; nothing for a plan that was not executed.
    """
    analyze = plan.get("analyze")
    stages = analyze["stages"] if analyze else ()
    work = tuple({**done, "vertex": _vertex_name(plan, stage["name"])} for stage in stages for done in stage["members"])
    touched = {done["member"] for done in work} or set(plan["pruning"]["required_members"] or ())
    skipped = set(analyze["skipped_members"]) if analyze else set(members) - touched
    everyone = dict.fromkeys([*members, *sorted(touched | skipped)])
    return {
        "svg": layered_svg(
            _diagram(plan, work), "The vertices of the plan and the edges between them; a table follows"
        ),
        "members": [(member, member not in skipped) for member in everyone],
        "work": work,
    }


def _vertex_name(plan: Mapping[str, Any], stage: str) -> str:
    """The vertex of a stage: a statement that runs whole on one member is one vertex, whatever its stage is called."""
    names = [vertex["name"] for vertex in plan["dag"]["vertices"]]
    return names[0] if stage not in names and len(names) == 1 else stage


def _diagram(plan: Mapping[str, Any], work: tuple[Mapping[str, Any], ...]) -> Diagram:
    boxes = []
    for vertex in plan["dag"]["vertices"]:
        done = [one for one in work if one["vertex"] == vertex["name"]]
        lines = [f"{one['member']} {_took(one)}" for one in done] or [
            f"{member} x{vertex['local_parallelism']}" for member in vertex["members"]
        ]
        boxes.append(DiagramNode(vertex["name"], abbreviated(lines, _MEMBERS_SHOWN_MAX), ", ".join(lines)))
    arrows = tuple(
        DiagramEdge(edge["from"], edge["to"], (edge["kind"],), is_bold=edge["distributed"])
        for edge in plan["dag"]["edges"]
    )
    return Diagram(tuple(boxes), arrows)


def _took(done: Mapping[str, Any]) -> str:
    return f"{count_text(done['rows_out'], 'row')}, {duration_text((done['kernel_ms'] + done['busy_ms']) / 1e3)}"


def failed_vertex(job: Job, status: str) -> str | None:
    """The vertex in which a job has failed; None for another job, and for one that has failed elsewhere."""
    if status != JobStatus.FAILED:
        return None
    try:
        job.results(timeout_s=0.0)
    except Error as error:
        vertex: str | None = error.details.get("vertex")
        return vertex
    return None


def job_svg(plan: ResolvedPlan, failed: str | None) -> str:
    """The picture of a job; the box of the vertex that has failed has the class ``failed``."""
    diagram = plan.diagram()
    boxes = tuple(replace(box, is_failed=box.name == failed) for box in diagram.boxes)
    return layered_svg(replace(diagram, boxes=boxes), "The vertices of the job and the edges between them")
