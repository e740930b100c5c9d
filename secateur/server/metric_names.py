"""The metrics of ``/metrics``: names, types, labels and meanings. docs/metrics.md has the same table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, named as Prometheus asks for: the unit last, ``_total`` behind a counter.

    Attributes:
        name: Its name.
        kind: Its type.
        meaning: What it counts.
        labels: The names of its labels; their values are few, and bounded.
        column: The column of ``secateur.members`` that has it; empty for a metric that no member has.
    """

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    meaning: str
    labels: tuple[str, ...] = ()
    column: str = ""


def _of_member(name: str, column: str, meaning: str) -> Metric:
    kind: Literal["gauge", "counter"] = "counter" if name.endswith("_total") else "gauge"
    return Metric(f"secateur_member_{name}", kind, meaning, ("member",), column)


METRICS: Final = (
    Metric("secateur_up", "gauge", "1 if the cluster answered, else 0, and nothing else of the cluster is there"),
    Metric(
        "secateur_scrape_seconds",
        "gauge",
        "how long the cluster took to answer when it was asked last: for `tables`, and for the rest (`cluster`)",
        ("part",),
    ),
    Metric("secateur_info", "gauge", "1, with the version of the server", ("version",)),
    Metric("secateur_members", "gauge", "members by state: joining, active, suspect, lost", ("state",)),
    _of_member("partitions_primary", "partitions_primary", "partitions that a member serves"),
    _of_member("partitions_backup", "partitions_backup", "partitions of which a member keeps a backup"),
    _of_member("rows", "rows", "rows of the partitions that a member serves"),
    _of_member("table_bytes", "bytes", "bytes of the tables of a member, backups included"),
    _of_member("memory_used_bytes", "memory_used", "bytes of tables, snapshots, staged rows and results"),
    _of_member("memory_limit_bytes", "memory_limit", "bytes that a member may take, its kernel included"),
    _of_member("running_statements", "running_statements", "statements that a member runs or coordinates"),
    _of_member("waiting_statements", "waiting_statements", "statements that wait for their turn at a member"),
    _of_member("refused_statements_total", "refused_statements", "statements refused because too many waited"),
    _of_member(
        "executions_total",
        "executions",
        "statements, changes and jobs that a member was asked to run, or to run a part of",
    ),
    _of_member(
        "frames_received_total", "frames_received", "frames of statements, jobs, loads and data that reached a member"
    ),
    Metric(
        "secateur_statement_seconds",
        "histogram",
        "time of the statements that have ended at the member that answered them, by how they ran: local, scatter,"
        " distributed, change or failed; system for those about the cluster itself",
        ("member", "execution"),
    ),
    Metric("secateur_tables", "gauge", "tables, without views and external tables"),
    Metric("secateur_table_rows", "gauge", "rows of a table; of the 100 largest tables", ("table",)),
    Metric("secateur_table_bytes", "gauge", "bytes of a table, backups included; of the 100 largest", ("table",)),
    Metric("secateur_partitions", "gauge", "partitions of all tables"),
    Metric("secateur_partitions_without_primary", "gauge", "partitions of which no member has a copy"),
    Metric(
        "secateur_partitions_missing_copies", "gauge", "partitions that have fewer copies than their table asks for"
    ),
    Metric("secateur_copies_missing", "gauge", "copies that these lack, all together"),
    Metric("secateur_jobs", "gauge", "jobs on record by status", ("status",)),
    Metric("secateur_loads", "gauge", "loads of secateur.loads by state, where the cluster has that table", ("state",)),
    Metric("secateur_events", "gauge", "the newest 10,000 events of secateur.events by kind", ("kind",)),
    Metric("secateur_http_statements", "gauge", "statements that the HTTP server knows, by state", ("state",)),
    Metric("secateur_http_kept_bytes", "gauge", "bytes of the results that the HTTP server keeps"),
)
"""All of them, in the order of the page."""
