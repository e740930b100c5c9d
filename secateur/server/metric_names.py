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
    """

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    meaning: str
    labels: tuple[str, ...] = ()


_MEMBER: Final = ("member",)

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
    Metric("secateur_member_partitions_primary", "gauge", "partitions that a member serves", _MEMBER),
    Metric("secateur_member_partitions_backup", "gauge", "partitions of which a member keeps a backup", _MEMBER),
    Metric("secateur_member_rows", "gauge", "rows of the partitions that a member serves", _MEMBER),
    Metric("secateur_member_table_bytes", "gauge", "bytes of the tables of a member, backups included", _MEMBER),
    Metric(
        "secateur_member_memory_used_bytes", "gauge", "bytes of tables, snapshots, staged rows and results", _MEMBER
    ),
    Metric("secateur_member_memory_limit_bytes", "gauge", "bytes that a member may take, its kernel included", _MEMBER),
    Metric("secateur_member_running_statements", "gauge", "statements that a member runs or coordinates", _MEMBER),
    Metric("secateur_member_waiting_statements", "gauge", "statements that wait for their turn at a member", _MEMBER),
    Metric(
        "secateur_member_refused_statements_total", "counter", "statements refused because too many waited", _MEMBER
    ),
    Metric(
        "secateur_member_executions_total",
        "counter",
        "statements, changes and jobs that a member was asked to run, or to run a part of",
        _MEMBER,
    ),
    Metric(
        "secateur_member_frames_received_total",
        "counter",
        "frames of statements, jobs, loads and data that reached a member",
        _MEMBER,
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
