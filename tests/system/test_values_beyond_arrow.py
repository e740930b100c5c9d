"""Values of the dialect that Arrow or Python have nothing for: an error that says so, wherever they come in or go out,
and never another value.
"""

from __future__ import annotations

from datetime import time, timedelta

import numpy as np
import pyarrow as pa
import pytest

import secateur
from secateur.errors import DataError

LONG = "INTERVAL '2562048 hours'"
END = "TIME '24:00:00'"


@pytest.fixture
def times(conn: secateur.Connection, table_name: str) -> str:
    conn.execute(
        f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY, iv INTERVAL, tm TIME, ivs INTERVAL[], tms TIME[]) PARTITION"
        " BY HASH (k) PARTITIONS 3"
    )
    conn.execute(
        f"INSERT INTO {table_name} VALUES (1, INTERVAL '2562047 hours', '23:59:59.999999', NULL, NULL), (2, INTERVAL '1"
        " day', '00:00:00', NULL, NULL)"
    )
    return table_name


@pytest.mark.parametrize(
    "wrapped",
    [
        "{}",
        "[{}, NULL]",
        "{{'a b': {}}}",
        "{{'a': [{}]}}",
        "MAP {{1: {}}}",
        "row({}, 1)",
        "[{}]::{type}[1]",
        "[MAP {{'x': [{}]}}]",
    ],
)
@pytest.mark.parametrize(("value", "type_"), [(LONG, "INTERVAL"), (f"-{LONG}", "INTERVAL"), (END, "TIME")])
@pytest.mark.sampled(one_in=4)
def test_a_result_with_such_a_value_is_an_error(
    conn: secateur.Connection, times: str, value: str, type_: str, wrapped: str
) -> None:
    expression = wrapped.format(value, type=type_)
    sources = ["", f" FROM {times}", f" FROM {times} WHERE k = 1", f" FROM {times} a JOIN {times} b ON a.k = b.k + 1"]
    for source in sources:
        with pytest.raises(DataError, match=r"2562048:00:00.* is too long|has TIME '24:00:00'"):
            conn.execute(f"SELECT {expression} AS c{source}").fetchall()


@pytest.mark.parametrize("sql", ["SELECT {}", "SELECT {} FROM {t} WHERE k = 1", "SELECT max({}) FROM {t}"])
def test_a_result_with_more_levels_is_an_error(conn: secateur.Connection, times: str, sql: str) -> None:
    lists = [f"{'[' * levels}1{']' * levels}" for levels in (60, 70)]
    value = conn.execute(sql.format(lists[0], t=times)).fetchone()
    assert str(value) == f"({lists[0]},)"
    with pytest.raises(DataError, match=r"a column is nested too deeply .*: CAST it to VARCHAR"):
        conn.execute(sql.format(lists[1], t=times)).fetchall()
    assert conn.execute(sql.format(f"({lists[1]})::VARCHAR", t=times)).fetchone() == (lists[1],)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO {t} (k, iv) VALUES (5, {long})",
        "INSERT INTO {t} (k, iv) VALUES (5, '2562048 hours')",
        "INSERT INTO {t} (k, ivs) VALUES (5, [{long}])",
        "INSERT INTO {t} (k, iv) SELECT 5, {long}",
        "INSERT INTO {t} (k, iv) SELECT k + 5, iv + iv FROM {t}",
        "INSERT OR REPLACE INTO {t} SELECT k, iv + iv, tm, ivs, tms FROM {t}",
        "UPDATE {t} SET iv = iv + iv",
        "UPDATE {t} SET iv = {long} WHERE k = 1",
        "UPDATE {t} SET ivs = [iv + iv]",
        "MERGE INTO {t} USING (SELECT 1 AS n) s ON k = n WHEN MATCHED THEN UPDATE SET iv = {long}",
        "INSERT INTO {t} (k, tm) VALUES (5, '24:00:00')",
        "INSERT INTO {t} (k, tm) VALUES (5, {end})",
        "INSERT INTO {t} (k, tms) VALUES (5, [{end}])",
        "INSERT INTO {t} (k, tm) SELECT 5, {end}",
        "UPDATE {t} SET tm = {end}",
        "UPDATE {t} SET tm = {end} WHERE k = 1",
        "UPDATE {t} SET tms = ['24:00:00']",
    ],
)
def test_such_a_value_is_not_stored(conn: secateur.Connection, times: str, sql: str) -> None:
    before = conn.execute(f"SELECT * FROM {times} ORDER BY k").fetchall()
    with pytest.raises(DataError, match=r"is too long|24:00:00"):
        conn.execute(sql.format(t=times, long=LONG, end=END))
    assert conn.execute(f"SELECT * FROM {times} ORDER BY k").fetchall() == before


def test_what_is_delivered_as_text_has_all_of_it(conn: secateur.Connection) -> None:
    assert conn.execute(f"SELECT union_value(a := {LONG}) AS u, CAST({END} AS VARCHAR) AS t").fetchall() == [
        ("2562048:00:00", "24:00:00")
    ]


@pytest.mark.smoke
def test_inside_of_a_query_they_are_what_they_are(conn: secateur.Connection, times: str) -> None:
    assert conn.execute(f"SELECT k FROM {times} WHERE iv + iv > {LONG} ORDER BY k").fetchall() == [(1,)]
    assert conn.execute(f"SELECT CAST(iv + iv AS VARCHAR) FROM {times} WHERE k = 1").fetchall() == [("5124094:00:00",)]
    assert conn.execute(f"SELECT k FROM {times} WHERE tm < {END} ORDER BY k").fetchall() == [(1,), (2,)]
    assert conn.execute(f"SELECT CAST(TIMESTAMP '2024-01-01' + {LONG} AS VARCHAR)").fetchall() == [
        ("2316-04-12 00:00:00",)
    ]
    assert conn.execute(f"SELECT k, iv FROM {times} ORDER BY iv DESC").fetchall() == [
        (1, timedelta(hours=2562047)),
        (2, timedelta(days=1)),
    ]


def test_loads_are_refused(conn: secateur.Connection, times: str) -> None:
    with pytest.raises(DataError, match="24:00:00"):
        conn.table(times).load(
            pa.table({"k": [9], "tm": pa.array([86_400_000_000], pa.int64()).view(pa.time64("us"))}), missing="null"
        )
    with pytest.raises(DataError, match="fraction of a microsecond"):
        conn.table(times).load(
            pa.table({"k": [9], "iv": pa.array([(0, 0, 1)], pa.month_day_nano_interval())}), missing="null"
        )


@pytest.mark.parametrize("tables", ["{t}", "{t} a JOIN {t} b USING (k)"])
@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("SELECT k FROM {f} ORDER BY k::VARIANT DESC LIMIT 2", [(19,), (18,)]),
        ("SELECT max(k::VARIANT), min(k::VARIANT) FROM {f}", [("19", "0")]),
        (
            "SELECT variant_typeof(v), count(*) FROM (SELECT DISTINCT k::VARIANT AS v FROM {f}) GROUP BY 1",
            [("INT32", 20)],
        ),
        ("SELECT max({{'a': [k::VARIANT]}})['a'][1] FROM {f}", [("19",)]),
        ("SELECT k FROM {f} ORDER BY union_value(n := k) DESC LIMIT 2", [(19,), (18,)]),
        (
            (
                "SELECT union_tag(v), count(*) FROM (SELECT CAST(union_value(b := k::VARCHAR) AS UNION(a VARCHAR, b"
                " VARCHAR)) AS v FROM {f} GROUP BY 1) GROUP BY 1"
            ),
            [("b", 20)],
        ),
        ("SELECT DISTINCT union_value(a := DATE 'infinity') AS y FROM {f} ORDER BY y", [("infinity",)]),
    ],
)
def test_values_without_a_form_of_their_own_meet_as_what_they_are(
    conn: secateur.Connection, table_name: str, select: str, expected: list[object], tables: str
) -> None:
    conn.execute(f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 6")
    conn.execute(f"INSERT INTO {table_name} SELECT i FROM range(20) r(i)")
    assert conn.execute(select.format(f=tables.format(t=table_name))).fetchall() == expected


def test_an_interval_that_python_lacks_can_still_be_had_as_arrow(conn: secateur.Connection) -> None:
    with pytest.raises(DataError, match="Python has no INTERVAL for"):
        conn.execute("SELECT INTERVAL '1294967296 months' AS c").fetchall()
    assert (
        conn.execute("SELECT INTERVAL '1294967296 months' AS c").fetch_arrow_table()["c"][0].value.months == 1294967296
    )


def test_parameters_keep_days(conn: secateur.Connection, times: str) -> None:
    conn.execute(f"INSERT INTO {times} (k, iv, tm) VALUES (9, ?, ?)", [timedelta(days=200_000), time.max])
    assert conn.execute(f"SELECT iv, tm FROM {times} WHERE k = 9").fetchall() == [(timedelta(days=200_000), time.max)]


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (np.datetime64("2024-01-01"), "2024-01-01"),
        (np.datetime64("2024-02"), "2024-02-01"),
        (np.datetime64("2024"), "2024-01-01"),
        (np.datetime64("2024-01-01T00:00", "m"), "2024-01-01 00:00:00"),
        (np.datetime64("2024-01-01", "us"), "2024-01-01 00:00:00"),
    ],
)
def test_a_numpy_day_is_a_date(conn: secateur.Connection, moment: np.datetime64, text: str) -> None:
    assert conn.execute("SELECT CAST(? AS VARCHAR)", [moment]).fetchall() == [(text,)]
