"""The pages of the dashboard: what each of them reads, and its template."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from secateur.client.jobs.job import JobLog
from secateur.errors import AuthenticationError, Error
from secateur.partitioning.types.sql_text import text_literal
from secateur.server.answers import answer_to, status_of
from secateur.server.dashboard.overview import overview_values
from secateur.server.dashboard.partition_map import draw_partition_map
from secateur.server.dashboard.plans import failed_vertex, job_svg
from secateur.server.dashboard.pruning_report import EXECUTIONS, GROUPS, RUNNING, SLOW_MS, report_pruning
from secateur.server.dashboard.templating import (
    MEMBERS,
    STATIC_FILES,
    cluster_line_now,
    html_answer,
    rendered,
)
from secateur.server.state import Server, ServerOfCaller, server_of_caller

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SortedColumn:
    """A column of a table.

    Attributes:
        key: Its field in a row.
        title: Its heading.
        is_number: Whether it stands at the right, and begins with the largest.
        hint: What it means, as a tooltip.
    """

    key: str
    title: str
    is_number: bool = False
    hint: str = ""


@dataclass(frozen=True, slots=True)
class TableSort:
    """The order of one table.

    Attributes:
        columns: Its columns.
        key: The field that rows are ordered by.
        descending: Whether the largest comes first.
        query: The other parameters of the page.
    """

    columns: tuple[SortedColumn, ...]
    key: str
    descending: bool
    query: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls, columns: Sequence[SortedColumn], query: Mapping[str, str], default: str, *, names: Sequence[str] = ()
    ) -> TableSort:
        """The order that a page was asked for.

        Args:
            columns: The columns of the table.
            query: The parameters of the page.
            default: The value of ``sort`` when there is none, or a wrong one.
            names: The parameters that links keep.
        """
        wanted = query.get("sort", default)
        if wanted.removeprefix("-") not in {column.key for column in columns}:
            wanted = default
        kept = tuple((name, query[name]) for name in names if name in query)
        return cls(tuple(columns), wanted.removeprefix("-"), wanted.startswith("-"), kept)

    def rows(self, rows: Sequence[Row]) -> list[Row]:
        """The rows in this order; those without a value last."""
        filled = [row for row in rows if row[self.key] is not None]
        filled.sort(key=lambda row: _natural(row[self.key]), reverse=self.descending)
        return filled + [row for row in rows if row[self.key] is None]

    def state(self, column: SortedColumn) -> str:
        """``ascending``, ``descending`` or ``none``, as ``aria-sort`` wants it."""
        if column.key != self.key:
            return "none"
        return "descending" if self.descending else "ascending"

    def link(self, column: SortedColumn) -> str:
        """Returns the link of a column's heading: to the order by it, or to the opposite one."""
        downwards = not self.descending if column.key == self.key else column.is_number
        return "?" + urlencode([*self.query, ("sort", f"{'-' if downwards else ''}{column.key}")])

    def link_from(self, first: int) -> str:
        """Returns the link to the rows from this one on, in the same order."""
        order = f"{'-' if self.descending else ''}{self.key}"
        return "?" + urlencode([*self.query, ("sort", order), ("from", first)])


def _natural(value: Any) -> Any:
    """``m2`` before ``m10``."""
    if not isinstance(value, str):
        return value
    letters = value.rstrip("0123456789")
    return (letters, int(value[len(letters) :] or -1), value)


NEXT_HEADER: Final = "Secateur-Next-Ms"
"""After so many milliseconds there may be something new: the script fetches the page then."""

router = APIRouter(include_in_schema=False)

Query = Mapping[str, str]

_TABLES: Final = "SELECT * FROM secateur.tables ORDER BY table_name"
_COLUMNS_MAX: Final = 1000
_COLUMNS: Final = (
    "SELECT table_name, column_name, data_type FROM secateur.columns"
    f" ORDER BY table_name, position LIMIT {_COLUMNS_MAX + 1}"
)
_PARTITIONS: Final = (
    'SELECT partition, "range", primary_member, backup_members, copies_missing, rows, bytes{}'
    " FROM secateur.partitions WHERE table_name = ? ORDER BY partition LIMIT {} OFFSET {}"
)
_HITS: Final = ", reads, writes"
"""They change all the time: a page without them is not written anew for them."""
_HOTTEST: Final = 5
_EVENTS: Final = "SELECT * FROM secateur.events ORDER BY number DESC LIMIT 200"
_EVENTS_OF_KIND: Final = "SELECT * FROM secateur.events WHERE kind = ? ORDER BY number DESC LIMIT 200"
_KINDS: Final = "SELECT kind, count(*) AS events FROM secateur.events GROUP BY kind ORDER BY kind"
LOADS: Final = (
    "SELECT *, 1e3 * rows / nullif(elapsed_ms, 0) AS rows_per_s FROM secateur.loads ORDER BY started DESC, id LIMIT 200"
)
_TIMED_JOBS: Final = (
    "SELECT *, date_diff('microsecond', submitted, coalesce(ended, now() AT TIME ZONE 'UTC')) / 1e3 AS elapsed_ms"
    " FROM secateur.jobs"
)
JOBS: Final = f"{_TIMED_JOBS} ORDER BY submitted DESC, id LIMIT 200"
_JOB: Final = f"{_TIMED_JOBS} WHERE id = ?"
_MAP_MAX: Final = 1000
_PILLS_MAX: Final = 40
_ROWS_MAX: Final = 100
_MINOR_SHARE: Final = 0.01
_MAJOR_MIN: Final = 5
"""So many tables stand on the page however little time their statements took."""
_API: Final = "/api/"
_DOWN: Final = 500
"""From this status on the cluster, not the request, is to blame."""

_MEMBER_COLUMNS: Final = (
    SortedColumn("id", "Member"),
    SortedColumn("state", "State"),
    SortedColumn("node", "Node", hint="the machine"),
    SortedColumn("partitions_primary", "Primary", True, "partitions that it serves"),
    SortedColumn("partitions_backup", "Backup", True, "partitions of which it keeps a backup"),
    SortedColumn("rows", "Rows", True, "of the partitions that it serves"),
    SortedColumn("bytes", "Tables", True, "bytes of its tables, backups included"),
    SortedColumn("memory_used", "Memory", True, "bytes of tables, snapshots, staged rows and results, of its limit"),
    SortedColumn("running_statements", "Running", True, "statements that it runs or coordinates"),
    SortedColumn("waiting_statements", "Waiting", True, "statements that wait for their turn"),
    SortedColumn("refused_statements", "Refused", True, "statements refused because too many waited"),
    SortedColumn("executions", "Executions", True, "statements, changes and jobs that it was asked to run a part of"),
)
_GROUP_COLUMNS: Final = (
    SortedColumn("statement", "Statement"),
    SortedColumn("total_share", "Share of time", True, "of the time of all statements since the members are there"),
    SortedColumn("executions", "Executions", True, "since the members are there"),
    SortedColumn("p50_ms", "p50", True, "of the newest executions"),
    SortedColumn("p99_ms", "p99", True, "of the newest executions"),
    SortedColumn("kept_share", "Partitions", True, "read, of those of its tables; the mean of the newest executions"),
    SortedColumn("members_touched", "Members", True, "that took part, of all; the mean of the newest executions"),
    SortedColumn("reason", "Why not pruned"),
)
_TABLE_COLUMNS: Final = (
    SortedColumn("table_name", "Table"),
    SortedColumn("table_type", "Type"),
    SortedColumn("partitioning", "Partitioning"),
    SortedColumn("partitions", "Partitions", True),
    SortedColumn("backups", "Backups", True),
    SortedColumn("rows", "Rows", True),
    SortedColumn("bytes", "Bytes", True, "backups included"),
)

_KEY_COLUMNS: Final = (
    SortedColumn("table_name", "Table"),
    SortedColumn("key", "Key", hint="the columns that partition the table, and their values"),
    SortedColumn("share", "Share", True, "of the keys of its table that were sampled, at most"),
    SortedColumn("sampled", "Sampled", True, "how often, the newest samples counting most"),
    SortedColumn("partition", "Partition", True),
    SortedColumn("member", "Member", hint="which sampled it most"),
)
HOT_KEYS: Final = (
    "SELECT table_name, key, sum(share) AS share, sum(share_error) AS share_error, sum(sampled)::BIGINT AS sampled,"
    " arg_max(partition, share) AS partition, arg_max(member, share) AS member"
    " FROM secateur.hot_keys GROUP BY table_name, key ORDER BY share DESC, table_name, key"
)
"""A row for each key, the hottest first. One that several members have sampled, as those do whose partition has moved,
has the sum of its shares, and the member that has sampled it most.
"""
_SAMPLING: Final = "SELECT value FROM secateur.settings WHERE name = 'hot_key_sampling'"


_TENANT_COLUMNS: Final = (
    SortedColumn("tenant", "Tenant", hint="the claim tenant of a token, else its principal, else its id"),
    SortedColumn("processor_ms", "Processor time", True, "of kernel calls, and of event loops for short statements"),
    SortedColumn("waiting_ms", "Waiting", True, "for the turn of its statements"),
    SortedColumn("statements", "Statements", True, "that have ended, gets included"),
    SortedColumn("failed", "Failed", True),
    SortedColumn("refused", "Refused", True, "because of a limit, or because too many waited"),
    SortedColumn("p50_ms", "p50", True, "of the newest hour in which it had statements"),
    SortedColumn("p99_ms", "p99", True, "of the newest hour in which it had statements"),
    SortedColumn("rows_read", "Rows read", True, "by kernel calls"),
    SortedColumn("rows", "Rows", True, "of results, and changed ones"),
    SortedColumn("bytes_sent", "Sent", True, "bytes of answers"),
)
TENANTS: Final = (
    "SELECT tenant, sum(processor_ms) AS processor_ms, sum(waiting_ms) AS waiting_ms,"
    " sum(statements)::BIGINT AS statements, sum(failed)::BIGINT AS failed, sum(refused)::BIGINT AS refused,"
    " arg_max(p50_ms, hour) AS p50_ms, arg_max(p99_ms, hour) AS p99_ms, sum(rows_read)::BIGINT AS rows_read,"
    " sum(rows)::BIGINT AS rows, sum(bytes_sent)::BIGINT AS bytes_sent"
    " FROM secateur.tenants GROUP BY tenant ORDER BY processor_ms DESC, tenant"
)
"""A row for each tenant, with what it has used in the hours that members remember."""


@dataclass(frozen=True, slots=True)
class _Page:
    """A page.

    Attributes:
        path: Its path.
        title: Its heading, and its name in the navigation.
        template: The file of its template.
        values: Reads what the template shows. It blocks.
        is_listed: Whether the navigation has it.
    """

    path: str
    title: str
    template: str
    values: Callable[[ServerOfCaller, Query], dict[str, Any]]
    is_listed: bool = True


def _overview(server: ServerOfCaller, query: Query) -> dict[str, Any]:
    return overview_values(server.readings, query.get("at", ""))


def _members(server: ServerOfCaller, query: Query) -> dict[str, Any]:
    sort = TableSort.of(_MEMBER_COLUMNS, query, "id")
    return {"sort": sort, "rows": sort.rows(server.readings.rows(MEMBERS))}


def _offset(query: Query) -> int:
    first = query.get("from", "0")
    return int(first) if first.isdecimal() and len(first) < 10 else 0


def _partitions(server: ServerOfCaller, query: Query) -> dict[str, Any]:
    tables = [row for row in server.readings.rows(_TABLES) if row["table_type"] == "BASE TABLE"]
    tables.sort(key=lambda row: -row["bytes"])
    wanted = query.get("table", tables[0]["table_name"] if tables else None)
    if wanted is None:
        return {"tables": [], "table": None}
    table = next((row for row in tables if row["table_name"] == wanted), None)
    if table is None:
        raise HTTPException(404, f"there is no table {wanted!a}")
    offset = _offset(query)
    shade = "hits" if query.get("shade") == "hits" else "bytes"
    sql = _PARTITIONS.format(_HITS if shade == "hits" else "", _MAP_MAX, offset)
    reading = server.readings.read(sql, [table["table_name"]])
    rows = reading.rows
    heat = server.heat.within_a_minute(table["table_name"], offset, reading) if shade == "hits" else None
    members = [row["id"] for row in server.readings.rows(MEMBERS)]
    only = query.get("member")
    return {
        "tables": tables,
        "table": table,
        "rows": rows,
        "map": draw_partition_map(rows, members, only if only in members else None, heat),
        "heat": heat,
        "hottest": [] if heat is None else heat.hottest(_HOTTEST),
        "shade": shade,
        "only": only,
        "offset": offset,
        "total": table["partitions"],
        "step": _MAP_MAX,
        "shown": _PILLS_MAX,
    }


def _statements(server: ServerOfCaller, query: Query) -> dict[str, Any]:
    shown = query.get("show", "all")
    groups = server.readings.rows(GROUPS)
    if shown == "unpruned":
        groups = [group for group in groups if group["unpruned"] and (group["p99_ms"] or 0) >= SLOW_MS]
    sort = TableSort.of(_GROUP_COLUMNS, query, "-total_share", names=("show", "find"))
    return {
        **_found(sort, groups, query, "statement"),
        "running": server.readings.rows(RUNNING),
        "shown": shown,
        "slow_ms": SLOW_MS,
    }


def _statement(server: ServerOfCaller, query: Query) -> dict[str, Any]:
    fingerprint = query["fingerprint"]
    group = next((row for row in server.readings.rows(GROUPS) if row["fingerprint"] == fingerprint), None)
    if group is None:
        raise HTTPException(404, f"the members list no statement with the fingerprint {fingerprint!a} any more")
    return {"group": group, "executions": server.readings.rows(EXECUTIONS, [fingerprint])}


def _tables(server: ServerOfCaller, query: Query) -> dict[str, Any]:
    sort = TableSort.of(_TABLE_COLUMNS, query, "table_name", names=("find",))
    return _found(sort, server.readings.rows(_TABLES), query, "table_name")


def _found(sort: TableSort, rows: Sequence[Mapping[str, Any]], query: Query, column: str) -> dict[str, Any]:
    """A part of those rows whose column has the text that is looked for."""
    find, offset = query.get("find", ""), _offset(query)
    found = [row for row in rows if find.casefold() in row[column].casefold()]
    shown = sort.rows(found)[offset : offset + _ROWS_MAX]
    return {"sort": sort, "rows": shown, "count": len(found), "find": find, "offset": offset, "step": _ROWS_MAX}


def _rows_of(sql: str) -> Callable[[ServerOfCaller, Query], dict[str, Any]]:
    return lambda server, _: {"rows": server.readings.rows(sql)}


def _job(server: ServerOfCaller, query: Query) -> dict[str, Any]:
    rows = server.readings.rows(_JOB, [query["job_id"]])
    if not rows:
        raise HTTPException(404, f"there is no job {query['job_id']!a} on record")
    with server.readings.connections.lent() as connection:
        job = connection.job(query["job_id"])
        plan, failed = job.plan(), failed_vertex(job, rows[0]["status"])
    return {
        "job": rows[0],
        "plan": plan,
        "svg": None if plan is None else job_svg(plan, failed),
        "log": _log_of(server, query["job_id"]),
        "address": server.connections.address,
    }


def _log_of(server: ServerOfCaller, job_id: str) -> JobLog | None:
    """The log of a job, which may have rows of any table; None if the caller's role is below that of jobs."""
    try:
        with server.connections.lent() as connection:
            return connection.job(job_id).logs()
    except AuthenticationError:
        return None


def _events(server: ServerOfCaller, query: Query) -> dict[str, Any]:
    kind = query.get("kind")
    rows = server.readings.rows(_EVENTS) if kind is None else server.readings.rows(_EVENTS_OF_KIND, [kind])
    return {"rows": rows, "kind": kind, "kinds": server.readings.rows(_KINDS)}


def _pruning(server: ServerOfCaller, _: Query) -> dict[str, Any]:
    groups = server.readings.rows(GROUPS)
    report = report_pruning(groups)
    least_ms = _MINOR_SHARE * sum(group["total_ms"] or 0.0 for group in groups)
    major = [one for number, one in enumerate(report) if number < _MAJOR_MIN or one.unpruned_ms >= least_ms]
    return {"report": major, "minor": report[len(major) :]}


def _hot_keys(server: ServerOfCaller, query: Query) -> dict[str, Any]:
    sort = TableSort.of(_KEY_COLUMNS, query, "-share")
    every = next((int(row["value"]) for row in server.readings.rows(_SAMPLING)), 0)
    return {"sort": sort, "rows": sort.rows(spelled_keys(server.readings.rows(HOT_KEYS))), "every": every}


def _tenants(server: ServerOfCaller, query: Query) -> dict[str, Any]:
    rows = server.readings.rows(TENANTS)
    sort = TableSort.of(_TENANT_COLUMNS, query, "-processor_ms", names=("find",))
    whole_ms = sum(row["processor_ms"] for row in rows)
    return {**_found(sort, rows, query, "tenant"), "whole_ms": whole_ms}


def _sql(server: ServerOfCaller, query: Query) -> dict[str, Any]:
    return {"sql": query.get("sql", ""), "columns": server.readings.rows(_COLUMNS), "columns_max": _COLUMNS_MAX}


def _no_page(_: ServerOfCaller, query: Query) -> dict[str, Any]:
    raise HTTPException(404, f"there is no page {query['path']!a}")


_PAGES: Final = (
    _Page("/", "Overview", "overview.html", _overview),
    _Page("/members", "Members", "members.html", _members),
    _Page("/partitions", "Partitions", "partitions.html", _partitions),
    _Page("/statements", "Statements", "statements.html", _statements),
    _Page("/statements/{fingerprint}", "Statement", "statement.html", _statement, is_listed=False),
    _Page("/pruning", "Pruning", "pruning.html", _pruning),
    _Page("/hot-keys", "Hot keys", "hot-keys.html", _hot_keys),
    _Page("/tenants", "Tenants", "tenants.html", _tenants),
    _Page("/sql", "SQL", "sql.html", _sql),
    _Page("/tables", "Tables", "tables.html", _tables),
    _Page("/loads", "Loads", "loads.html", _rows_of(LOADS)),
    _Page("/jobs", "Jobs", "jobs.html", _rows_of(JOBS)),
    _Page("/jobs/{job_id}", "Job", "job.html", _job, is_listed=False),
    _Page("/events", "Events", "events.html", _events),
)
_UNKNOWN: Final = _Page("/unknown", "Not found", "error.html", _no_page)
_LISTED: Final = tuple((page.path, page.title) for page in _PAGES if page.is_listed)


async def _answer(request: Request, server: ServerOfCaller, page: _Page, query: Query) -> Response:
    status, text = await server.in_thread(_text_of, server, page, query)
    tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:20]}"'
    headers = {"ETag": tag, NEXT_HEADER: str(server.readings.next_ms())}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return html_answer(text, status, headers)


def _add(page: _Page) -> None:
    async def answer(request: Request, server: Server) -> Response:
        return await _answer(request, server, page, {**request.query_params, **request.path_params})

    router.add_api_route(page.path, answer, name=f"page_{page.template}", methods=["GET"])


async def answer_not_found(request: Request, error: Exception) -> Response:
    """The handler of what is not there: a page for a browser that looks for one, a problem for everybody else."""
    path = request.url.path
    if "text/html" not in request.headers.get("accept", "") or path.startswith(_API):
        return answer_to(error)
    return await _answer(request, server_of_caller(request), _UNKNOWN, {"path": path})


def _text_of(server: ServerOfCaller, page: _Page, query: Query) -> tuple[int, str]:
    """Status and text of a page; without the cluster, one that says so."""
    frame = {"pages": _LISTED, "path": "/" + page.path.split("/")[1], "title": page.title, "trouble": ""}
    try:
        server.check_sees_all()
        line = cluster_line_now(server.readings)
        values = page.values(server, query)
    except Error as error:
        status = int(status_of(error))
        trouble = f"{error.message}\nTried at {datetime.now(UTC):%H:%M:%S} UTC." if status >= _DOWN else ""
        return status, rendered("error.html", frame | {"error": error.message, "trouble": trouble, "line": None})
    except HTTPException as error:
        return error.status_code, server.pages.text("error.html", query, frame | {"error": error.detail}, line)
    return 200, server.pages.text(page.template, query, frame | values, line)


@router.get("/static/{name}")
async def get_static_file(name: str) -> Response:
    """The style sheet, a script or the icon."""
    if name not in STATIC_FILES:
        raise HTTPException(404, f"there is no file {name!a}")
    kind, content = STATIC_FILES[name]
    return Response(content, media_type=kind, headers={"Cache-Control": "private, max-age=86400"})


for _page in _PAGES:
    _add(_page)


def spelled_keys(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the values of the ``key`` as SQL spells them, and with its ``columns``."""
    values = [json.loads(row["key"]) for row in rows]
    return [
        {**row, "key": ", ".join(map(_spelled, key.values())), "columns": ", ".join(key)}
        for row, key in zip(rows, values, strict=True)
    ]


def _spelled(value: Any) -> str:
    """A value of JSON as SQL spells it; dates and decimals are texts there, which SQL converts."""
    if value is None:
        return "not finite"  # a double for which JSON has no number; no key is NULL
    if isinstance(value, (bool, int, float)):
        return str(value)
    return text_literal(value)
