"""The Python client of the HTTP server."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, Self

import msgspec
import pyarrow as pa

from secateur.client.connect import TLS_CA_VARIABLE, TOKEN_VARIABLE
from secateur.client.dbapi.connection import Explain
from secateur.client.dbapi.parameters import Parameters, plain_values
from secateur.client.jobs.submittable import Submittable
from secateur.errors import DeadlineError, Error
from secateur.http.answers import ARROW_TYPE
from secateur.http.http_job import HttpJob, JobAnswer, job_body
from secateur.http.http_statement import HttpResult, HttpStatement, Items, StatementInfo, result_of
from secateur.http.http_transport import HttpTransport, Token, decoded, error_of_answer
from secateur.http.json_values import json_parameters
from secateur.protocol.job_description import JobConfig
from secateur.protocol.jobs import JobInfo
from secateur.wire.tls import Tls

_FIRST_WAIT_S: Final = 1.0
"""A statement that takes longer is known by its id from then on, so that Ctrl-C ends it."""
_PAGE_ROWS: Final = 10_000
_STATEMENTS: Final = "/api/v1/statements"
_JOBS: Final = "/api/v1/jobs"


class _Rows(msgspec.Struct, frozen=True):
    items: list[dict[str, Any]]
    next_offset: int | None = None


class HttpClient:
    """Statements and jobs of a cluster over HTTP, for programs that reach its HTTP server but not its members.

    Errors are those of :mod:`secateur.errors`, as the other Python client raises them. Threads may share it, and a
    process that is forked may use it as well. A context manager that closes its connections. One request of a loopback
    server takes some milliseconds: where the members can be reached, :func:`secateur.connect` is faster.

    Args:
        url: The address at which the server listens, ``http://host:port`` or ``https://host:port``.
        token: A token of the cluster, or a function that returns one, called for each request: a token that is rotated
            in a file is then used at once. The default is the variable ``SECATEUR_TOKEN``; ``""`` sends none.
        tls: Whom to trust if the server speaks HTTPS: ``Tls(ca=...)``. By default the file that ``SECATEUR_TLS_CA``
            names, or else those that the machine trusts.
        connect_timeout_s: Seconds for a connection.
        silence_s: Seconds in which the server has to answer what does not wait for anything.

    Raises:
        InterfaceError: The URL has another form.
        ProgrammingError: A file of ``tls`` cannot be used.
    """

    def __init__(
        self,
        url: str,
        token: Token = None,
        *,
        tls: Tls | None = None,
        connect_timeout_s: float = 5.0,
        silence_s: float = 30.0,
    ) -> None:
        if tls is None and (authorities := os.environ.get(TLS_CA_VARIABLE)):
            tls = Tls(ca=authorities)
        known = os.environ.get(TOKEN_VARIABLE) if token is None else token
        self._transport = HttpTransport(url, known, tls, connect_timeout_s, silence_s)

    @property
    def url(self) -> str:
        """The address at which the server listens."""
        return self._transport.url

    def execute(
        self,
        sql: str,
        params: Parameters = (),
        *,
        settings: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> HttpResult:
        """Execute a statement, wait for its end, and return its rows; none if it is no query.

        Ctrl-C cancels it. Its cost is in ``submit_statement(...).info``.

        Args:
            sql: One statement.
            params: Values for ``?`` and ``$1``, or a mapping for ``$name``.
            settings: Settings of a connection for this statement, such as ``{"pruning": "off"}``.
            timeout_s: Seconds after which it is cancelled; None for none.
            idempotency_key: A text that is new for each thing that is wanted. With it, the statement is executed once,
                however often it is sent.

        Raises:
            DeadlineError: It took longer than ``timeout_s``, and was cancelled.
            UnreachableError: The server is not there. Without a key, a statement whose connection broke may have been
                executed: then it is not ``retry_safe``.
            Error: Why it failed.
        """
        first_wait_s = _FIRST_WAIT_S if timeout_s is None else min(_FIRST_WAIT_S, timeout_s)
        answer = self._transport.send(
            "POST",
            _STATEMENTS,
            body=_statement_body(sql, params, settings, first_wait_s),
            wait_s=first_wait_s,
            idempotency_key=idempotency_key,
            accept=ARROW_TYPE,
        )
        if answer.status_code != 202:
            return result_of(answer)
        started = HttpStatement(self._transport, decoded(answer, StatementInfo).id)
        left_s = None if timeout_s is None else timeout_s - first_wait_s
        try:
            started.wait(left_s)
        except BaseException as error:
            with contextlib.suppress(Error):
                started.cancel()
            if isinstance(error, DeadlineError) and timeout_s is not None:
                raise DeadlineError(
                    f"the statement has not ended within {timeout_s:g} s, and was cancelled", timeout_s=timeout_s
                ) from error
            raise
        return started.result()

    def submit_statement(
        self,
        sql: str,
        params: Parameters = (),
        *,
        settings: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> HttpStatement:
        """Begin a statement, and return at once. It goes on when this client ends.

        Raises:
            LimitExceededError: Too many wait at the server; nothing was done, and it may be repeated.
            Error: As :meth:`execute`.
        """
        body = _statement_body(sql, params, settings, 0.0)
        answer = self._transport.answer("POST", _STATEMENTS, body=body, idempotency_key=idempotency_key)
        place = answer.headers.get("location", "")
        if not place:
            raise error_of_answer(answer)
        return HttpStatement(self._transport, place.rpartition("/")[2])  # also of one that has failed already

    def batches(
        self, sql: str, params: Parameters = (), *, settings: Mapping[str, str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Execute a query, and yield its rows as they arrive: one batch is in memory here at a time.

        The server still makes the whole result first, within its limits.

        Raises:
            Error: As :meth:`execute`.
        """
        started = self.submit_statement(sql, params, settings=settings)
        try:
            yield from started.batches()
        finally:
            with contextlib.suppress(Error):
                started.forget()

    def statement(self, statement_id: str) -> HttpStatement:
        """A statement that was submitted to this server with this token. Costs nothing until it is asked."""
        return HttpStatement(self._transport, statement_id)

    def statements(self, limit: int = 1000) -> list[StatementInfo]:
        """The statements that were submitted to this server with this token, the newest first."""
        return self._transport.read("GET", _STATEMENTS, Items[StatementInfo], query={"limit": limit}).items

    def explain(self, sql: str, params: Parameters = (), *, settings: Mapping[str, str] | None = None) -> Explain:
        """Return the plan of a statement; nothing is executed.

        Raises:
            Error: Why it cannot be planned.
        """
        body = {"sql": sql, "params": _in_json(params), "settings": dict(settings or {})}
        document = self._transport.read("POST", "/api/v1/explain", dict[str, Any], body=body)
        return Explain(str(document.pop("text", "")), document)

    def submit(
        self,
        job: str | Submittable | Mapping[str, Any],
        config: JobConfig | None = None,
        params: Parameters = (),
        *,
        settings: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> HttpJob:
        """Submit a job, and return at once.

        Args:
            job: A :class:`secateur.DAG` or a :class:`secateur.Pipeline`, which is on record in the cluster and goes on
                without the server; the same as plain data, the ``dag`` of docs/http.md; or the text of a statement,
                which ends with the server.
            config: How a DAG is to run; None for the defaults.
            params: The values of its parameters.
            settings: Settings of a connection, for a statement.
            idempotency_key: As for :meth:`execute`.

        Raises:
            DagError: The DAG is not valid, or has functions that the cluster does not accept.
            AuthenticationError: The role of the token does not allow it.
            Error: As :meth:`execute`.
        """
        body: dict[str, Any] = {**job_body(job), "params": _in_json(params), "settings": dict(settings or {})}
        if config is not None:
            body["config"] = msgspec.to_builtins(config, order="deterministic")
        answer = self._transport.read("POST", _JOBS, JobAnswer, body=body, idempotency_key=idempotency_key)
        return HttpJob(self._transport, answer.id)

    def job(self, job_id: str) -> HttpJob:
        """A job by its id or name. Costs nothing until it is asked."""
        return HttpJob(self._transport, job_id)

    def jobs(self) -> list[JobInfo]:
        """The jobs on record in the cluster and the statements that run as jobs of this server, the newest first."""
        return [answer.to_info() for answer in self._transport.read("GET", _JOBS, Items[JobAnswer]).items]

    def members(self) -> list[dict[str, Any]]:
        """The rows of ``secateur.members``."""
        return self._rows("members")

    def tables(self) -> list[dict[str, Any]]:
        """The rows of ``secateur.tables``."""
        return self._rows("tables")

    def columns(self, table: str | None = None) -> list[dict[str, Any]]:
        """The rows of ``secateur.columns``, of all tables or of one."""
        return self._rows("columns", table)

    def partitions(self, table: str | None = None) -> list[dict[str, Any]]:
        """The rows of ``secateur.partitions``, of all tables or of one."""
        return self._rows("partitions", table)

    def events(self) -> list[dict[str, Any]]:
        """The rows of ``secateur.events``, the newest first."""
        return self._rows("events")

    def loads(self) -> list[dict[str, Any]]:
        """The rows of ``secateur.loads``, the newest first."""
        return self._rows("loads")

    def latencies(self) -> list[dict[str, Any]]:
        """The rows of ``secateur.latencies``."""
        return self._rows("latencies")

    def settings(self) -> list[dict[str, Any]]:
        """The rows of ``secateur.settings``."""
        return self._rows("settings")

    def close(self) -> None:
        """Close the connections. What was submitted goes on."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<HttpClient of {self.url}>"

    def _rows(self, name: str, table: str | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        offset: int | None = 0
        while offset is not None:
            query = {"offset": offset, "limit": _PAGE_ROWS, "table": table}
            page = self._transport.read("GET", f"/api/v1/{name}", _Rows, query=query)
            found += page.items
            offset = page.next_offset
        return found


def _statement_body(sql: str, params: Parameters, settings: Mapping[str, str] | None, wait_s: float) -> dict[str, Any]:
    return {"sql": sql, "params": _in_json(params), "wait": wait_s, "settings": dict(settings or {})}


def _in_json(params: Parameters) -> list[Any] | dict[str, Any]:
    return json_parameters(plain_values(params))
