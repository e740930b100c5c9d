"""The cluster in numbers for Prometheus, read from the system tables.

Reading them costs the cluster something, a hundred thousand partitions more than ten: so they are read again only after
a multiple of the time that it took, however often and by however many the metrics are asked for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from secateur import __version__
from secateur.client.dbapi.connection import Connection
from secateur.errors import Error
from secateur.http.statement_state import StatementState
from secateur.planner.system.tables import SYSTEM_TABLES
from secateur.server.connections import Connections
from secateur.server.metric_names import METRICS
from secateur.server.row_objects import row_objects
from secateur.server.statements import SubmittedStatements

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_FRESH_S: Final = 1.0
_STALE_S: Final = 30.0
"""What took long because a member is silent is news all the same."""
_STALE_TABLES_S: Final = 600.0
"""Partitions are many, and what is lost of them shows in the members at once."""
_DOWN_S: Final = 2.0
_TABLES_MAX: Final = 100
_MEMBER_STATES: Final = ("joining", "active", "suspect", "lost")
_BOUNDS_S: Final = tuple(2.0**exponent / 1e6 for exponent in range(4, 27, 2))
"""16 microseconds to 67 seconds. Powers of two of a microsecond are bounds of the members' histograms, so no statement
is counted in a wrong bucket.
"""

Sample = tuple[tuple[str, ...], float]
Samples = dict[str, list[Sample]]

_MEMBER_COLUMNS: Final = {
    "secateur_member_partitions_primary": "partitions_primary",
    "secateur_member_partitions_backup": "partitions_backup",
    "secateur_member_rows": "rows",
    "secateur_member_table_bytes": "bytes",
    "secateur_member_memory_used_bytes": "memory_used",
    "secateur_member_memory_limit_bytes": "memory_limit",
    "secateur_member_running_statements": "running_statements",
    "secateur_member_waiting_statements": "waiting_statements",
    "secateur_member_refused_statements_total": "refused_statements",
    "secateur_member_executions_total": "executions",
    "secateur_member_frames_received_total": "frames_received",
}


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What was read at one moment."""

    samples: Samples = field(default_factory=dict)
    histograms: Sequence[_Histogram] = ()


@dataclass(slots=True)
class _Part:
    """Numbers that are read together, when it is time for them.

    Attributes:
        name: Its name, the label of the time that it took.
        read: Reads them.
        stale_s: When they are read again whatever it costs.
        numbers: Those of the last time.
        cost_s: The seconds that it took.
        next_s: When to read again.
    """

    name: str
    read: Callable[[Connection], _Numbers]
    stale_s: float
    numbers: _Numbers = field(default_factory=_Numbers)
    cost_s: float = 0.0
    next_s: float = 0.0


class Metrics:
    """The text of ``/metrics``. Thread-safe; it blocks while the cluster is asked.

    Args:
        connections: To the cluster.
        statements: Those of the HTTP server.
        share_max: The share of the time for which the cluster may be asked.
    """

    def __init__(self, connections: Connections, statements: SubmittedStatements, share_max: float) -> None:
        self._connections = connections
        self._statements = statements
        self._share_max = share_max
        self._is_up = False
        self._parts = (_Part("cluster", _cluster_numbers, _STALE_S), _Part("tables", _table_numbers, _STALE_TABLES_S))
        self._lock = threading.Lock()

    def text(self) -> bytes:
        """The metrics in the text format of Prometheus, at most a moment old."""
        with self._lock:
            self._read()
            samples = self._own_samples()
            for part in self._parts:
                samples |= part.numbers.samples
            histograms = [one for part in self._parts for one in part.numbers.histograms]
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Families(samples, histograms))
        return generate_latest(registry)

    def _read(self) -> None:
        due = [part for part in self._parts if time.monotonic() >= part.next_s]
        if not due:
            return
        try:
            with self._connections.lent() as connection:
                for part in due:
                    begun_s = time.monotonic()
                    part.numbers = part.read(connection)
                    part.cost_s = time.monotonic() - begun_s
                    pause_s = min(max(_FRESH_S, part.cost_s / self._share_max), part.stale_s)
                    part.next_s = time.monotonic() + pause_s
            self._is_up = True
        except Error:
            self._is_up = False
            for part in self._parts:  # old numbers would pass for new ones
                part.numbers, part.next_s = _Numbers(), time.monotonic() + _DOWN_S

    def _own_samples(self) -> Samples:
        counts = dict.fromkeys(StatementState, 0)
        kept_bytes = 0
        for statement in self._statements.newest():
            counts[statement.state] += 1
            result = statement.result
            kept_bytes += 0 if result is None else result.bytes
        return {
            "secateur_up": [((), float(self._is_up))],
            "secateur_scrape_seconds": [((part.name,), part.cost_s) for part in self._parts],
            "secateur_info": [((__version__,), 1.0)],
            "secateur_http_statements": [((state.value,), float(count)) for state, count in counts.items()],
            "secateur_http_kept_bytes": [((), float(kept_bytes))],
        }


class _Histogram:
    """The statements of one member that ran in one way."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.labels = (row["member"], row["execution"])
        self.sum_s = row["elapsed_ms"] / 1e3
        buckets = list(zip(row["bucket_ms"], row["bucket_statements"], strict=True))
        # A bound of ours is a bound of theirs, up to the last digit of a float.
        self.buckets = [
            (_bound_text(bound_s), float(sum(count for up_to_ms, count in buckets if up_to_ms <= 1000.001 * bound_s)))
            for bound_s in _BOUNDS_S
        ] + [("+Inf", float(row["statements"]))]


class _Families(Collector):
    """Samples as the client library wants them."""

    def __init__(self, samples: Samples, histograms: Sequence[_Histogram]) -> None:
        self._samples = samples
        self._histograms = histograms

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily | HistogramMetricFamily]:
        """All metrics; of those without samples only the name."""
        for metric in METRICS:
            if metric.kind == "histogram":
                histogram = HistogramMetricFamily(metric.name, metric.meaning, labels=metric.labels)
                for one in self._histograms:
                    histogram.add_metric(one.labels, one.buckets, one.sum_s)
                yield histogram
                continue
            of_kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = of_kind(metric.name, metric.meaning, labels=metric.labels)
            for labels, value in self._samples.get(metric.name, ()):
                family.add_metric(labels, value)
            yield family


def _cluster_numbers(connection: Connection) -> _Numbers:
    members = list(row_objects(connection, "SELECT * FROM secateur.members"))
    found: Samples = {
        name: [((row["id"],), float(row[column])) for row in members if row["state"] != "lost"]
        for name, column in _MEMBER_COLUMNS.items()
    }
    found["secateur_members"] = [
        ((state,), float(sum(row["state"] == state for row in members))) for state in _MEMBER_STATES
    ]
    for name, table, column in (
        ("secateur_jobs", "jobs", "status"),
        ("secateur_events", "events", "kind"),
        ("secateur_loads", "loads", "state"),
    ):
        if table in SYSTEM_TABLES:
            sql = f"SELECT {column} AS label, count(*) AS number FROM secateur.{table} GROUP BY ALL ORDER BY ALL"
            found[name] = [((row["label"],), float(row["number"])) for row in row_objects(connection, sql)]
    latencies = row_objects(connection, "SELECT * FROM secateur.latencies ORDER BY member, execution")
    return _Numbers(found, [_Histogram(row) for row in latencies])


def _table_numbers(connection: Connection) -> _Numbers:
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
    return _Numbers(found | {name: [((), float(number))] for name, number in partitions.items()})


def _bound_text(bound_s: float) -> str:
    return f"{bound_s:.6f}".rstrip("0").rstrip(".")
