"""``/api/v1/jobs``."""

from __future__ import annotations

import asyncio
import base64
import binascii
import dataclasses
import time
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from fastapi import APIRouter, Query, Request, Response
from starlette.exceptions import HTTPException

from secateur.client.dbapi.connection import Connection
from secateur.client.jobs.job import LogLine
from secateur.client.jobs.submittable import Params, SourceSelect
from secateur.dag.codec import carries_code
from secateur.errors import DagError, Error, NotSupportedError, ParameterError, ProtocolError
from secateur.http.answers import StatementState
from secateur.http.json_values import parameters_of
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import type_of_arrow
from secateur.protocol.job_description import JobRequirements
from secateur.protocol.jobs import JobInfo, JobStatus
from secateur.protocol.statements import ResultColumn
from secateur.server import forms
from secateur.server.answers import (
    STREAMED_ANSWERS,
    json_answer,
    problem_of,
    problem_response,
    result_answer,
    rows_form,
)
from secateur.server.dag_forms import (
    JobForm,
    JobList,
    JobLogForm,
    JobMetricsList,
    JobResultPage,
    JobStatusForm,
    dag_of_form,
)
from secateur.server.state import Server, ServerOfCaller
from secateur.server.statements import KeptResult, SubmittedStatement

router = APIRouter(prefix="/api/v1")

_PATH: Final = "/api/v1/jobs"
_FIRST_PAUSE_S: Final = 0.02
_PAUSE_S_MAX: Final = 0.5
_STATUS_OF_STATEMENT: Final = {
    StatementState.WAITING: JobStatus.NOT_RUNNING,
    StatementState.RUNNING: JobStatus.RUNNING,
    StatementState.DONE: JobStatus.COMPLETED,
    StatementState.FAILED: JobStatus.FAILED,
    StatementState.CANCELLED: JobStatus.CANCELLED,
}


@router.post("/jobs", status_code=201, responses={201: {"model": JobStatusForm}}, summary="Submit a job")
async def post_job(
    request: Request, server: Server, body: JobForm, idempotency_key: forms.IdempotencyKey = None
) -> Response:
    """Run a statement, or a DAG on the members that own the partitions it requires.

    A DAG is on record in the cluster: it goes on when the server ends, and is found again by its id or name.
    """
    if sum(given is not None for given in (body.sql, body.dag, body.encoded_dag)) != 1:
        raise ParameterError("a job has exactly one of sql, dag and encoded_dag")
    if body.settings and body.sql is None:
        raise ParameterError("settings are of a job with sql; a DAG has none")
    job_id = await server.keys.once(
        server.caller.digest, _PATH, idempotency_key, await request.body(), lambda: _submit(server, body)
    )
    return json_answer(await _status(server, job_id), 201, {"Location": f"{_PATH}/{job_id}"})


@router.get("/jobs", responses={200: {"model": JobList}}, summary="List jobs")
async def list_jobs(server: Server) -> Response:
    """The jobs on record in the cluster, whoever submitted them, and the SQL jobs of this server."""
    on_record = await server.ask(Connection.jobs)
    found = [_of_record(info) for info in on_record]
    found += [_of_statement(statement) for statement in server.statements.newest(server.caller) if statement.is_job]
    return json_answer({"items": sorted(found, key=lambda job: job["submitted"] or "", reverse=True)})


@router.get("/jobs/{job_id}", responses={200: {"model": JobStatusForm}}, summary="Show a job")
async def get_job(server: Server, job_id: forms.ResourceId, wait: forms.WaitSeconds = 0.0) -> Response:
    """The status of a job, by its id or, for one on record, its name."""
    return json_answer(await _status(server, job_id, min(wait, server.limits.wait_s_max)))


@router.get(
    "/jobs/{job_id}/result",
    responses={
        200: {"model": JobResultPage, "description": "The rows.", "content": STREAMED_ANSWERS},
        202: {"model": JobStatusForm, "description": "It has not ended."},
    },
    summary="Read the rows of a job",
)
async def get_job_result(
    request: Request,
    server: Server,
    job_id: forms.ResourceId,
    offset: forms.Offset = 0,
    limit: forms.PageRows = forms.PAGE_ROWS,
    wait: forms.WaitSeconds = 0.0,
    sink: str | None = Query(default=None, max_length=256, description="the vertex, if several have collected rows"),
) -> Response:
    """Rows of a result: some in JSON, or all as `text/csv`, `application/x-ndjson` or Arrow.

    A job that failed is answered with its error.
    """
    form = rows_form(request)
    status = await _status(server, job_id, min(wait, server.limits.wait_s_max))
    if not JobStatus(status["status"]).is_final:
        return json_answer(status, 202)
    statement = server.statements.find(job_id, server.caller)
    if statement is not None:
        if statement.error is not None:
            return problem_response(problem_of(statement.error, job_id))
        if statement.has_result and statement.result is None:
            raise HTTPException(410, f"the rows of {job_id!a} were dropped for newer ones: submit it again")
        results = {} if statement.result is None else {"sql": statement.result}
    else:
        try:
            results = await server.ask(lambda connection: _results(connection, job_id))
        except Error as error:
            return problem_response(problem_of(error, job_id))
    if sink is not None and sink not in results:
        raise HTTPException(404, f"job {job_id} has no result {sink!a}; it has {', '.join(results) or 'none'}")
    if sink is None and len(results) > 1:
        raise HTTPException(422, f"job {job_id} has the results {', '.join(results)}: pick one with ?sink=")
    result = results[sink] if sink is not None else next(iter(results.values()), KeptResult((), pa.table({})))
    return await result_answer(server, form, result, status | {"sinks": list(results)}, offset, limit)


@router.get("/jobs/{job_id}/metrics", responses={200: {"model": JobMetricsList}}, summary="Show the work of a job")
async def get_job_metrics(server: Server, job_id: forms.ResourceId) -> Response:
    """Rows, batches, bytes and busy time of each vertex on each member so far; nothing for a statement."""
    if server.statements.find(job_id, server.caller) is not None:
        return json_answer({"items": []})
    found = await server.ask(lambda connection: connection.job(job_id).metrics())
    return json_answer({"items": found})


@router.get("/jobs/{job_id}/logs", responses={200: {"model": JobLogForm}}, summary="Show what a job has logged")
async def get_job_logs(
    server: Server,
    job_id: forms.ResourceId,
    limit: int = Query(default=1000, ge=1, le=10_000, description="lines, the first of the job"),
) -> Response:
    """The lines that the processors of a job have logged on the members so far, by time; none for a statement."""
    if server.statements.find(job_id, server.caller) is not None:
        return json_answer({"items": [], "dropped": 0, "silent": []})
    log = await server.ask(lambda connection: connection.job(job_id).logs())
    items = [_log_line(line) for line in log.lines[:limit]]
    return json_answer({"items": items, "dropped": log.dropped + len(log.lines[limit:]), "silent": list(log.silent)})


@router.delete("/jobs/{job_id}", responses={200: {"model": JobStatusForm}}, summary="Cancel a job")
async def delete_job(server: Server, job_id: forms.ResourceId) -> Response:
    """Stop a job on all members, and answer once it has stopped. Nothing happens to a job that has ended."""
    statement = server.statements.find(job_id, server.caller)
    if statement is None:
        await server.ask(lambda connection: connection.job(job_id).cancel())
    elif not statement.state.is_final:
        await server.statements.cancel(statement)
    return json_answer(await _status(server, job_id))


def _log_line(line: LogLine) -> dict[str, Any]:
    return dataclasses.asdict(line) | {"time": line.time.isoformat(timespec="milliseconds").replace("+00:00", "Z")}


class _ForeignDag:
    """A DAG that another process has encoded. It is passed on unread: nothing of it is loaded here."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def freeze(self) -> _ForeignDag:
        return self

    def needs(
        self, params: Params, table: Callable[[str], TableDef], needs_of: Callable[[SourceSelect], JobRequirements]
    ) -> JobRequirements:
        """Returns none: the coordinator finds them out."""
        return JobRequirements()

    def encoded(self) -> bytes:
        return self._data


async def _submit(server: ServerOfCaller, body: JobForm) -> str:
    params = parameters_of(body.params)
    if body.sql is not None:
        return server.statements.submit(body.sql, params, body.settings, caller=server.caller, is_job=True).id
    dag = _foreign(body.encoded_dag) if body.dag is None else dag_of_form(body.dag)
    config = body.config.to_config()
    return await server.ask(lambda connection: connection.submit(dag, config, params).job_id)


def _foreign(text: str | None) -> _ForeignDag:
    try:
        data = base64.b64decode(text or "", validate=True)
        carries_code(data)  # reads its form, and loads nothing
    except (binascii.Error, ValueError, ProtocolError) as error:
        raise DagError(f"encoded_dag is not the base 64 of dag.freeze().encoded(): {error}") from error
    return _ForeignDag(data)


async def _status(server: ServerOfCaller, job_id: str, wait_s: float = 0.0) -> dict[str, Any]:
    statement = server.statements.find(job_id, server.caller)
    if statement is not None:
        await server.statements.wait(statement, wait_s)
        return _of_statement(statement)
    end_s, pause_s = time.monotonic() + wait_s, _FIRST_PAUSE_S
    while True:
        # Asked for again and again: a thread that waited for a job would serve nobody else.
        info: JobInfo = await server.ask(lambda connection: connection.job(job_id).info)
        left_s = end_s - time.monotonic()
        if info.status.is_final or left_s <= 0:
            return _of_record(info)
        await asyncio.sleep(min(pause_s, left_s))
        pause_s = min(2 * pause_s, _PAUSE_S_MAX)


def _results(connection: Connection, job_id: str) -> dict[str, KeptResult]:
    return {name: _kept(table) for name, table in connection.job(job_id).results(timeout_s=1.0).items()}


def _kept(table: pa.Table) -> KeptResult:
    return KeptResult(tuple(ResultColumn(field.name, _sql_type(field.type)) for field in table.schema), table)


def _sql_type(arrow: pa.DataType) -> str:
    try:
        return str(type_of_arrow(arrow))
    except NotSupportedError:
        return str(arrow)  # rows of jobs may have types that no column has


def _of_record(info: JobInfo) -> dict[str, Any]:
    return {
        "id": info.job_id,
        "kind": "dag",
        "name": info.name,
        "status": info.status,
        "attempt": info.attempt,
        "coordinator": info.coordinator,
        "submitted": forms.iso_moment(info.submitted_s),
        "ended": forms.iso_moment(info.ended_s),
        "reason": info.reason,
    }


def _of_statement(statement: SubmittedStatement) -> dict[str, Any]:
    error = statement.error
    return {
        "id": statement.id,
        "kind": "sql",
        "name": None,
        "status": _STATUS_OF_STATEMENT[statement.state],
        "attempt": 0 if statement.started_s is None else 1,
        "coordinator": None,
        "submitted": forms.iso_moment(statement.submitted_s),
        "ended": forms.iso_moment(statement.ended_s),
        "reason": None if error is None else f"{type(error).__name__}: {error.message}",
    }
