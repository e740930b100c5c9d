"""The cluster in numbers for Prometheus, read from the system tables.

Reading them costs the cluster something, a hundred thousand partitions more than ten: so they are read again only after
a multiple of the time that it took, however often and by however many the metrics are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from msgspec import Struct
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from secateur import __version__
from secateur.client.dbapi.connection import Connection
from secateur.errors import Error
from secateur.http.answers import StatementState
from secateur.protocol.membership import MemberInfo
from secateur.protocol.metric_fields import Counter, metrics_of
from secateur.protocol.summaries import TenantHour
from secateur.server.callers import Connections
from secateur.server.dashboard.readings import PacedReading, row_objects
from secateur.server.statements import SubmittedStatements

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_FRESH_S: Final = 1.0
_STALE_S: Final = 30.0
"""What took long because a member is silent is news all the same."""
_STALE_TABLES_S: Final = 600.0
"""Partitions are many, and what is lost of them shows in the members at once."""
_TABLES_MAX: Final = 100
_MEMBER_STATES: Final = ("joining", "active", "suspect", "lost")
_BOUNDS_S: Final = tuple(2.0**exponent / 1e6 for exponent in range(4, 27, 2))
"""16 microseconds to 67 seconds. Powers of two of a microsecond are bounds of the members' histograms, so no statement
is counted in a wrong bucket.
"""

_TENANTS_MAX: Final = 50
_FAMILIES: Final = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily, "histogram": HistogramMetricFamily}

Samples = dict[str, list[tuple[Any, ...]]]
"""By metric: the values of its labels and the number; for a histogram its buckets, and the sum."""


class Metrics:
    """The text of ``/metrics``. Thread-safe; it blocks while the cluster is asked.

    Args:
        connections: To the cluster.
        statements: Those of the HTTP server.
        share_max: The share of the time for which the cluster may be asked.
    """

    def __init__(self, connections: Connections, statements: SubmittedStatements, share_max: float) -> None:
        self._statements = statements
        self._parts = {
            "cluster": PacedReading(connections, _cluster_numbers, share_max, _FRESH_S, stale_s=_STALE_S, times=1),
            "tables": PacedReading(connections, _table_numbers, share_max, _FRESH_S, stale_s=_STALE_TABLES_S, times=1),
        }

    def text(self) -> bytes:
        """The metrics in the text format of Prometheus, at most a moment old."""
        try:
            found = [part.get() for part in self._parts.values()]
        except Error:
            found = []  # old numbers would pass for new ones
        samples = self._own_samples(is_up=bool(found))
        for numbers in found:
            samples |= numbers
        return generate_latest(_Families(samples))

    def _own_samples(self, *, is_up: bool) -> Samples:
        counts = dict.fromkeys(StatementState, 0)
        kept_bytes = 0
        for statement in self._statements.newest(None):
            counts[statement.state] += 1
            result = statement.result
            kept_bytes += 0 if result is None else result.bytes
        return {
            "secateur_up": [((), float(is_up))],
            "secateur_scrape_seconds": [((name,), part.took_s) for name, part in self._parts.items()],
            "secateur_info": [((__version__,), 1.0)],
            "secateur_http_statements": [((state.value,), float(count)) for state, count in counts.items()],
            "secateur_http_kept_bytes": [((), float(kept_bytes))],
        }


class _Families(Collector):
    """Samples as the client library wants them."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily | HistogramMetricFamily]:
        """All metrics; of those without samples only the name."""
        for metric in METRICS:
            family = _FAMILIES[metric.kind](metric.name, metric.meaning, labels=metric.labels)
            for sample in self._samples.get(metric.name, ()):
                family.add_metric(*sample)
            yield family


def _cluster_numbers(connection: Connection) -> Samples:
    members = list(row_objects(connection, "SELECT *, id AS member FROM secateur.members"))
    living = [row for row in members if row["state"] != "lost"]
    tenants = list(row_objects(connection, TENANTS))
    found: Samples = {
        metric.name: [((row[label],), float(row[metric.column])) for row in rows]
        for label, rows, metrics in (("member", living, _OF_MEMBERS), ("tenant", tenants, _OF_TENANTS))
        for metric in metrics
    }
    found["secateur_members"] = [
        ((state,), float(sum(row["state"] == state for row in members))) for state in _MEMBER_STATES
    ]
    for name, table, column in (
        ("secateur_jobs", "jobs", "status"),
        ("secateur_events", "events", "kind"),
        ("secateur_loads", "loads", "state"),
    ):
        sql = f"SELECT {column} AS label, count(*) AS number FROM secateur.{table} GROUP BY ALL ORDER BY ALL"
        found[name] = [((row["label"],), float(row["number"])) for row in row_objects(connection, sql)]
    latencies = row_objects(connection, "SELECT * FROM secateur.latencies ORDER BY member, execution")
    found["secateur_statement_seconds"] = list(map(_histogram, latencies))
    return found


def _table_numbers(connection: Connection) -> Samples:
    found: Samples = {}
    tables = list(
        row_objects(
            connection,
            "SELECT table_name, rows, bytes, count(*) OVER () AS tables FROM secateur.tables"
            f" WHERE table_type = 'BASE TABLE' ORDER BY bytes DESC, table_name LIMIT {_TABLES_MAX}",
        )
    )
    found["secateur_tables"] = [((), float(tables[0]["tables"] if tables else 0))]
    found["secateur_table_rows"] = [((row["table_name"],), float(row["rows"])) for row in tables]
    found["secateur_table_bytes"] = [((row["table_name"],), float(row["bytes"])) for row in tables]
    (partitions,) = row_objects(
        connection,
        "SELECT count(*) AS secateur_partitions,"
        " count(*) FILTER (WHERE primary_member IS NULL AND copies_missing > 0) AS secateur_partitions_without_primary,"
        " count(*) FILTER (WHERE copies_missing > 0) AS secateur_partitions_missing_copies,"
        " coalesce(sum(copies_missing), 0) AS secateur_copies_missing FROM secateur.partitions",
    )
    return found | {name: [((), float(number))] for name, number in partitions.items()}


def _histogram(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The statements of one member that ran in one way."""
    counts = list(zip(row["bucket_ms"], row["bucket_statements"], strict=True))
    # A bound of ours is a bound of theirs, up to the last digit of a float.
    buckets = [
        (_bound_text(bound_s), float(sum(count for up_to_ms, count in counts if up_to_ms <= 1000.001 * bound_s)))
        for bound_s in _BOUNDS_S
    ]
    return (row["member"], row["execution"]), [*buckets, ("+Inf", float(row["statements"]))], row["elapsed_ms"] / 1e3


def _bound_text(bound_s: float) -> str:
    return f"{bound_s:.6f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, named as Prometheus asks for: the unit last, ``_total`` behind a counter.

    Attributes:
        name: Its name.
        kind: Its type.
        meaning: What it counts.
        labels: The names of its labels; their values are few, and bounded.
        column: The column of the table of members or of tenants that has it; empty for other metrics.
    """

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    meaning: str
    labels: tuple[str, ...] = ()
    column: str = ""


def _metrics_of(row: type[Struct], label: str, extent: str = "") -> Iterator[Metric]:
    for column, field in metrics_of(row).items():
        name, meaning = f"secateur_{label}_{field.name or column}", f"{field.meaning}{extent}"
        if isinstance(field, Counter):
            yield Metric(f"{name}_total", "counter", meaning, (label,), column)
        else:
            yield Metric(name, "gauge", meaning, (label,), column)


_OF_MEMBERS: Final = tuple(_metrics_of(MemberInfo, "member"))
_OF_TENANTS: Final = tuple(
    _metrics_of(TenantHour, "tenant", f", in this hour; of the {_TENANTS_MAX} that use most, and `others`")
)
_SUMS: Final = ", ".join(
    f"sum({metric.column}){' / 1e3' if metric.column.endswith('_ms') else ''} AS {metric.column}"
    for metric in _OF_TENANTS
)
TENANTS: Final = (
    "WITH used AS (SELECT *, row_number() OVER (ORDER BY tenant = 'others', processor_ms DESC, tenant) AS place"
    " FROM secateur.tenants WHERE hour = (SELECT max(hour) FROM secateur.tenants))"
    f" SELECT CASE WHEN place > {_TENANTS_MAX} THEN 'others' WHEN tenant = '' THEN 'owner' ELSE tenant END AS tenant,"
    f" {_SUMS} FROM used GROUP BY 1 ORDER BY 1"
)
"""The tenants that have used most processor time in this hour, and all others together; times in seconds."""

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
    *_OF_MEMBERS,
    Metric(
        "secateur_statement_seconds",
        "histogram",
        "time of the statements that have ended at the member that answered them, by how they ran: local, scatter,"
        " distributed, change or failed; system for those about the cluster itself",
        ("member", "execution"),
    ),
    *_OF_TENANTS,
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
"""All of them, in the order of the page; docs/metrics.md has the same table."""
