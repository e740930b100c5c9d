"""A text is executed with a value, then with one of another type, and with the first again: each answer is DuckDB's for
its value, in its type. On one member and on three, where partial results have types of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import duckdb
import pytest

import secateur
from secateur import Pipeline
from secateur.cluster import Cluster
from secateur.connectors import collect
from secateur.engine.kernels.duckdb import delivered_type

COLUMNS: Final = "(k BIGINT PRIMARY KEY, i INTEGER, v DECIMAL(10, 3), x DOUBLE, ts TIMESTAMP, tz TIMESTAMPTZ)"
ROWS: Final = (
    "SELECT n, n % 3, n / 7.0, n / 4.0, TIMESTAMP '2024-01-01' + INTERVAL (n) HOUR, TIMESTAMPTZ '2024-01-01 00:00+00' +"
    " INTERVAL (n) HOUR FROM range(40) AS r(n)"
)
SCALES: Final = (Decimal("1.5"), Decimal("1.55555"))
WIDTHS: Final = (1, 2**40, 2**70)
ZONES: Final = (datetime(2024, 1, 1, 12), datetime(2024, 1, 1, 12, tzinfo=UTC))
LISTS: Final = ([1], [2**40], [1, None], [Decimal("1.5")], [Decimal("1.55")], ["a"], [])
STRUCTS: Final = ({"a": 1}, {"a": 2**40}, {"a": Decimal("1.55")}, {"b": 1}, {"key": [1], "value": [2]})
STARTS_MAX: Final = 2
"""As many texts are begun with one of the values; where there are more than two, the second goes back to the first."""
NUMBERS: Final = (*SCALES, *WIDTHS[:2], 2**63, 1.5, None, Decimal("NaN"))
QUERIES: Final[list[tuple[str, Sequence[Any]]]] = [
    ("SELECT sum(k * ?) FROM {}", (*SCALES, *WIDTHS)),
    ("SELECT max(?) FROM {}", NUMBERS),
    ("SELECT max(?) FROM {}", ZONES),
    ("SELECT max(?) FROM {}", LISTS),
    ("SELECT max(?) FROM {}", STRUCTS),
    ("SELECT i, avg(v * ?), min(k + ?) FROM {} GROUP BY i", SCALES),
    ("SELECT k, ? FROM {} WHERE k < 5", NUMBERS),
    ("SELECT k, i + ? FROM {}", WIDTHS),
    ("SELECT k, i + ? FROM {} WHERE k IN (1, 2, 3)", WIDTHS),
    ("SELECT sum(i * ?), count(?) FROM {} WHERE k = 2", WIDTHS),
    ("SELECT CASE WHEN k = 1 THEN ? ELSE i END FROM {}", WIDTHS),
    ("SELECT DISTINCT i * ? FROM {}", (*SCALES, *WIDTHS)),
    ("SELECT ? UNION SELECT v FROM {} WHERE k < 3", SCALES),
    ("SELECT v FROM {} WHERE v < (SELECT avg(k * ?) FROM {}) / 20", SCALES),
    ("SELECT sum(p) FROM (SELECT k * ? AS p FROM {}) AS q", SCALES),
    ("SELECT k, sum(v * ?) OVER (PARTITION BY i ORDER BY k) FROM {}", SCALES),
    ("SELECT a.k, b.v * ? FROM {} AS a JOIN {} AS b ON a.k = b.i", SCALES),
    ("SELECT max(tz - ?), min(ts - ?) FROM {}", ZONES),
    ("SELECT max(date_trunc('month', ?)), max(coalesce(?, ts)) FROM {}", ZONES),
    ("SELECT max([k, 1] || ?) FROM {}", LISTS[:3]),
    ("SELECT min(?[1]), max(len(?)) FROM {}", LISTS),
    ("SELECT k FROM {} WHERE k = ? OR v > ? AND k < 3", NUMBERS),
    ("SELECT k FROM {} WHERE ts = ? OR tz = ?", ZONES),
    ("SELECT k FROM {} WHERE k = ANY(?)", LISTS[:5]),
    ("SELECT k FROM {} WHERE k = ? + 1", (*SCALES, *WIDTHS)),
    ("SELECT k FROM {} WHERE k BETWEEN ? AND 5.5", (*SCALES, "2.4", 2, 1.5)),
    ("SELECT k FROM {} WHERE i + 1 BETWEEN '1.4' AND ?", (2, Decimal("2.5"), "2.4", 2.5)),
    ("SELECT k FROM {} WHERE ts::DATE BETWEEN ? AND TIMESTAMP '2024-01-02 12:00:00'", ("2024-01-01 01:00:00", *ZONES)),
    ("SELECT k FROM {} WHERE ts::DATE BETWEEN '2024-01-01 01:00:00' AND ?", (ZONES[0].date(), *ZONES, "2024-01-02")),
    ("SELECT k FROM {} WHERE ts BETWEEN '2024-01-01 06:00:00+05' AND ?", ZONES),
    ("DESCRIBE SELECT v, ? FROM {}", (*SCALES, *WIDTHS[:2])),
]


class Twins:
    """A table in a cluster, and the same table in DuckDB."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.conn = cluster.connect()
        self.duck = duckdb.connect()
        self.duck.execute("SET TimeZone = 'UTC'")
        self.name = name
        self.conn.execute(f"CREATE TABLE {name} {COLUMNS} PARTITION BY HASH (k) PARTITIONS 5")
        self.duck.execute(f"CREATE TABLE {name} {COLUMNS}")
        self.refill()

    def refill(self) -> None:
        for each in (self.conn, self.duck):
            each.execute(f"DELETE FROM {self.name}")
            each.execute(f"INSERT INTO {self.name} {ROWS}")

    def of(self, text: str, salt: int) -> str:
        """A text about the table that nobody has executed before."""
        return text.replace("{}", self.name) + " " * salt

    def close(self) -> None:
        self.conn.close()
        self.duck.close()


@pytest.fixture(
    scope="module",
    params=[pytest.param("one member", marks=pytest.mark.sampled(one_in=3)), "three members"],
)
def twins(request: pytest.FixtureRequest, cluster: Cluster, lone_cluster: Cluster) -> Iterator[Twins]:
    is_alone = request.param == "one member"
    both = Twins(lone_cluster if is_alone else cluster, f"other_types_{'one' if is_alone else 'three'}")
    yield both
    both.close()


def answer(connection: Any, sql: str, params: Any) -> tuple[list[str], list[str]] | None:
    """The types of the columns, and the rows in an order of their own; None for an error."""
    try:
        cursor = connection.execute(sql, params)
        rows = cursor.fetchall()
    except (duckdb.Error, secateur.DataError, secateur.ProgrammingError):
        return None
    types = [delivered_type(str(column[1])).replace('"NULL"', "INTEGER") for column in cursor.description]
    return types, sorted(", ".join(map(shown, row)) for row in rows)


def shown(value: Any) -> str:
    match value:
        case datetime(tzinfo=zone) if zone is not None:
            return value.astimezone(UTC).isoformat()
        case float():
            return f"{value:.9g}"
        case _:
            return repr(value)


@pytest.mark.parametrize(("text", "values"), QUERIES, ids=[f"{text} {values[0]}" for text, values in QUERIES])
def test_queries(twins: Twins, text: str, values: Sequence[Any]) -> None:
    expected = [answer(twins.duck, twins.of(text, 0), [value] * text.count("?")) for value in values]
    for salt in range(min(len(values), STARTS_MAX)):
        order = [*range(len(values)), 0] if salt == 0 else [salt, 0, salt]
        sql = twins.of(text, 1 + salt)
        for index in order:
            found = answer(twins.conn, sql, [values[index]] * text.count("?"))
            assert found == expected[index], f"{values[index]!r} after {values[salt]!r}"


CHANGES: Final[list[tuple[str, Sequence[Any]]]] = [
    ("UPDATE {} SET v = (SELECT sum(i * ?) FROM {} AS o) WHERE k < 5", SCALES),
    ("UPDATE {} SET v = v * ?, x = x + ? WHERE k < 5", SCALES),
    ("UPDATE {} SET k = k + ? WHERE k > 38", WIDTHS[:2]),
    ("UPDATE {} AS t SET v = s.v FROM (SELECT i, sum(x * ?) AS v FROM {} GROUP BY i) AS s WHERE t.k = s.i", SCALES),
    ("INSERT INTO {} (k, v) SELECT 1000 + i, sum(k * ?) FROM {} GROUP BY i", SCALES),
    ("INSERT INTO {} (k, v) VALUES (7, ?) ON CONFLICT DO UPDATE SET v = {}.v + excluded.v * ?", SCALES),
    ("DELETE FROM {} WHERE v < (SELECT avg(i * ?) FROM {})", SCALES),
    ("DELETE FROM {} WHERE ts = ? OR tz = ?", ZONES),
    (
        "MERGE INTO {} USING (SELECT 1 AS n, sum(x * ?) AS w FROM {}) AS s ON k = n WHEN MATCHED THEN UPDATE SET v = w",
        SCALES,
    ),
]


@pytest.mark.parametrize(("text", "values"), CHANGES, ids=[text for text, _ in CHANGES])
def test_changes(twins: Twins, text: str, values: Sequence[Any]) -> None:
    for salt, order in enumerate(itertools.permutations(values)):
        sql = twins.of(text, salt)
        for value in (*order, order[0]):
            twins.refill()
            for each in (twins.conn, twins.duck):
                each.execute(sql, [value] * text.count("?"))
            rows = twins.of("SELECT k, v, x FROM {}", 0)
            assert answer(twins.conn, rows, []) == answer(twins.duck, rows, []), f"{value!r} of {order!r}"
    twins.refill()


def test_executemany(twins: Twins) -> None:
    text = twins.of("SELECT sum(k * ?), max(?) FROM {}", 50)
    sets = [[value, value] for value in (*SCALES, *WIDTHS[:3], *SCALES)]
    cursor = twins.conn.cursor().executemany(text, sets)
    for params in sets:
        assert cursor.fetchall() == twins.duck.execute(text, params).fetchall()
        cursor.nextset()


def test_parameters_by_name(twins: Twins) -> None:
    sql = twins.of("SELECT sum(k * $factor), count(*) FROM {} WHERE k >= $least", 0)
    for factor, least in itertools.product((*SCALES, *WIDTHS[:2], *SCALES), (3, 2**40)):
        expected = answer(twins.duck, sql, {"factor": factor, "least": least})
        assert answer(twins.conn, sql, {"least": least, "factor": factor}) == expected


def test_a_verified_query_and_a_view(twins: Twins) -> None:
    view = f"view_of_{twins.name}"
    twins.conn.execute(f"CREATE VIEW {view} AS SELECT k, v AS amount FROM {twins.name}")
    twins.conn.execute("SET pruning = verify")
    sql = f"SELECT sum(amount * ?) FROM {view} WHERE k < 30"
    for value in (*SCALES, *SCALES):
        expected = answer(twins.duck, twins.of("SELECT sum(v * ?) FROM {} WHERE k < 30", 0), [value])
        assert answer(twins.conn, sql, [value]) == expected
    twins.conn.execute("SET pruning = on")
    twins.conn.execute(f"DROP VIEW {view}")


def test_a_condition_of_a_job(twins: Twins) -> None:
    for value in (*SCALES, *WIDTHS[:3], *SCALES):
        job = Pipeline().read_table(twins.name, where="v * ? > k / 5.0", columns=["k"], params=[value])
        found = job.write_to(collect()).submit(twins.conn).result().column("k").to_pylist()
        ((expected,),) = twins.duck.execute(
            twins.of("SELECT list(k ORDER BY k) FROM {} WHERE v * ? > k / 5.0", 0), [value]
        ).fetchall()
        assert sorted(found) == (expected or [])


@pytest.mark.smoke
def test_keys_share_one_plan(twins: Twins) -> None:
    """Parameters that are only compared, or cast, have one plan for all types of their class."""
    for text, values in (
        ("SELECT v FROM {} WHERE k = ?", WIDTHS),
        ("SELECT k FROM {} WHERE v = ?", SCALES),
        ("SELECT k FROM {} WHERE k IN (?, ?) AND tz > TIMESTAMPTZ '2020-01-01 00:00+00' LIMIT 3", WIDTHS),
        ("SELECT CAST(k * ? AS DECIMAL(38, 10)) FROM {}", SCALES),
        ("UPDATE {} SET v = CAST(? AS DOUBLE) WHERE k = 1", SCALES),
        ("DELETE FROM {} WHERE k = ?", [2**40, 2**41]),
    ):
        sql = twins.of(text, 70)
        known = []
        for value in values:
            cursor = twins.conn.execute(sql, [value] * text.count("?"))
            assert cursor.stats is not None
            known.append(cursor.stats.plan_cached)
        assert known == [False, *[True] * (len(values) - 1)], text
    twins.refill()
