"""The cursor as PEP 249 wants it, and what every kind of statement leaves behind."""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import secateur.client.dbapi.pep249 as dbapi
from secateur.client import Connection
from secateur.errors import DuplicateKeyError, InterfaceError, NotSupportedError, ParameterError, ProtocolError
from secateur.protocol import Done, InsertMode, InsertRows, InsertSelect, PlanText, Pruning, SetPruning
from secateur.wire import encode_table


def insert(cluster: Any, mode: str = "append") -> Any:
    """INSERT INTO orders VALUES (?, ?, ?)"""
    from_params = type(cluster.statements["one"])

    def reply(params: list[Any]) -> tuple[InsertRows, bytes | memoryview]:
        rows = pa.Table.from_pylist(
            [dict(zip(("customer_id", "id", "amount"), params, strict=True))], schema=cluster.tables[0].arrow_schema
        )
        return InsertRows(cluster.tables[0], InsertMode(mode), cluster.catalog_version), encode_table(rows)

    return from_params(reply=reply)


def other(cluster: Any, prepared: Any) -> Any:
    return type(cluster.statements["one"])(reply=lambda _: (prepared, b""))


def test_description_and_type_codes(conn: Connection) -> None:
    cursor = conn.execute("all")
    assert cursor.description == [
        ("customer_id", "VARCHAR", None, None, None, None, None),
        ("id", "BIGINT", None, None, None, None, None),
        ("amount", "DOUBLE", None, None, None, None, None),
    ]
    assert [item[1] == dbapi.NUMBER for item in cursor.description] == [False, True, True]


def test_fetching(conn: Connection) -> None:
    cursor = conn.cursor()
    assert cursor.execute("all") is cursor
    assert (cursor.rowcount, cursor.rownumber, cursor.arraysize) == (18, 0, 1)
    everything = cursor.fetchall()
    assert len(everything) == 18
    assert cursor.fetchall() == []
    assert cursor.fetchone() is None

    cursor.execute("all")
    assert cursor.fetchone() == everything[0]
    assert cursor.fetchmany() == everything[1:2]
    assert cursor.fetchmany(3) == everything[2:5]
    assert cursor.fetchmany(0) == []
    cursor.arraysize = 4
    assert cursor.fetchmany() == everything[5:9]
    assert cursor.rownumber == 9
    assert next(cursor) == everything[9]
    assert list(cursor) == everything[10:]
    with pytest.raises(StopIteration):
        next(cursor)


def test_iterating_and_fetching_go_through_the_same_rows(conn: Connection) -> None:
    cursor = conn.execute("all")
    everything = cursor.fetchall()
    cursor.execute("all")
    assert iter(cursor) is cursor
    found: list[Any] = []
    for row in cursor:
        found += [row, cursor.fetchone(), *cursor.fetchmany(2), next(cursor, None)]
    assert [row for row in found if row is not None] == everything


def test_an_iteration_is_of_the_newest_result_and_ends_with_the_cursor(conn: Connection) -> None:
    cursor = conn.execute("all")
    iteration = iter(cursor)
    first = next(iteration)
    next(iteration)
    cursor.execute("all")
    assert next(iteration) == first
    cursor.close()
    with pytest.raises(InterfaceError, match="the cursor is closed"):
        next(iteration)


def test_fetching_whole(cluster: Any, conn: Connection) -> None:
    cursor = conn.execute("all")
    first = cursor.fetchone()
    rest = cursor.fetch_arrow_table()
    assert rest.num_rows == 17
    assert rest.schema.equals(cluster.tables[0].arrow_schema)
    assert first is not None
    frame = conn.execute("all").fetch_df()
    assert frame.columns.tolist() == ["customer_id", "id", "amount"]
    assert len(frame) == 18


def test_pandas_is_asked_for_by_name(conn: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    cursor = conn.execute("all")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(NotSupportedError, match="needs pandas: pip install pandas, or use fetch_arrow_table"):
        cursor.fetch_df()
    assert cursor.fetch_arrow_table().num_rows == 18


def test_fetching_under_the_names_of_other_libraries(
    cluster: Any, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = conn.execute("all").fetch_arrow_table()
    assert conn.execute("all").arrow().equals(whole)
    assert conn.execute("all").df().equals(whole.to_pandas())
    assert conn.execute("all").pl().equals(pl.from_arrow(whole))
    cursor = conn.execute("all")
    cursor.fetchone()
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(NotSupportedError, match="needs polars: pip install polars"):
        cursor.pl()
    assert cursor.arrow().num_rows == 17


def test_a_cursor_is_an_arrow_stream(cluster: Any, conn: Connection) -> None:
    whole = conn.execute("all").fetch_arrow_table()
    assert pa.table(conn.execute("all")).equals(whole)
    assert pl.DataFrame(conn.execute("all")).equals(pl.from_arrow(whole))
    cursor = conn.execute("all")
    cursor.fetchmany(10)
    assert pa.table(cursor).equals(whole.slice(10))
    assert cursor.fetchall() == []


def test_a_notebook_shows_the_next_rows_and_leaves_them(cluster: Any, conn: Connection) -> None:
    shown = conn.execute("all")
    html = shown._repr_html_()
    assert html.count("<tr>") == 19
    assert "<th>customer_id<br><small>VARCHAR</small></th>" in html
    assert "NULL" in html
    assert "18 rows" in html
    assert len(shown.fetchmany(17)) == 17
    assert "1 row<" in shown._repr_html_()
    shown.close()
    assert shown._repr_html_() == "<pre>&lt;Cursor closed&gt;</pre>"
    cluster.statements["bad"] = other(
        cluster, PlanText(("<script>alert(1)</script>", "x" * 1000, *(str(n) for n in range(100))))
    )
    html = conn.execute("bad")._repr_html_()
    assert "<script>" not in html
    assert "x" * 201 not in html
    assert "the next 20 of 102 rows" in html


@pytest.mark.parametrize(
    "fetch",
    [
        "fetchone",
        "fetchall",
        "fetchmany",
        "fetch_arrow_table",
        "fetch_df",
        "__iter__",
        "arrow",
        "df",
        "pl",
        "__arrow_c_stream__",
    ],
)
def test_without_a_result_there_is_nothing_to_fetch(cluster: Any, conn: Connection, fetch: str) -> None:
    cursor = conn.cursor()
    with pytest.raises(InterfaceError, match="execute a query first"):
        getattr(cursor, fetch)()
    cluster.statements["CREATE TABLE"] = other(cluster, Done("created"))
    conn.execute("all")
    cursor.execute("CREATE TABLE")
    with pytest.raises(InterfaceError, match="execute a query first"):
        getattr(cursor, fetch)()


def test_a_failed_statement_leaves_no_old_result(conn: Connection) -> None:
    cursor = conn.execute("all")
    with pytest.raises(ParameterError):
        cursor.execute("all", [1])
    assert (cursor.description, cursor.rowcount, cursor.stats, cursor.rownumber) == (None, -1, None, None)
    with pytest.raises(InterfaceError):
        cursor.fetchall()


def test_ddl_has_no_result(cluster: Any, conn: Connection) -> None:
    cluster.statements["CREATE TABLE"] = other(cluster, Done("created"))
    cursor = conn.execute("CREATE TABLE")
    assert (cursor.description, cursor.rowcount, cursor.stats) == (None, -1, None)
    conn.execute("CREATE TABLE")
    assert len(cluster.prepared) == 2


def test_explain_is_a_result_of_text(cluster: Any, conn: Connection) -> None:
    cluster.statements["EXPLAIN"] = other(cluster, PlanText(("Scan orders", "  p17")))
    cursor = conn.execute("EXPLAIN")
    assert cursor.fetchall() == [("Scan orders",), ("  p17",)]
    assert cursor.description == [("plan", "VARCHAR", None, None, None, None, None)]


@pytest.mark.parametrize("value", ["off", "verify", "on"])
def test_set_pruning_changes_the_session(cluster: Any, conn: Connection, value: str) -> None:
    cluster.statements["SET"] = other(cluster, SetPruning(Pruning(value)))
    assert conn.execute("SET").description is None
    cursor = conn.execute("one", ["C2"])
    assert cursor.stats is not None
    assert cursor.stats.pruning == value
    assert cluster.prepared[-1][2] == {"pruning": value}


@pytest.mark.parametrize(
    ("prepared", "message"),
    [
        pytest.param({"type": "Merge"}, r"'Merge'.*statement.type.*run one version of secateur", id="kind"),
        pytest.param({"type": "SelectStatement"}, "field `plan_id`.*run one version", id="missing field"),
        pytest.param({}, "field `type`.*run one version", id="nothing"),
        pytest.param({"type": "SetPruning", "value": "no"}, "'no'.*statement.value.*run one version", id="value"),
        pytest.param({"type": "InsertRows", "table": {}}, "PreparedAnswer cannot be read", id="insert without table"),
    ],
)
def test_an_answer_of_another_version_is_said(
    cluster: Any, conn: Connection, prepared: dict[str, Any], message: str
) -> None:
    cluster.statements["?"] = other(cluster, prepared)
    with pytest.raises(ProtocolError, match=message):
        conn.execute("?")
    assert conn.execute("count").fetchone() == (18,)


def test_insert_writes_to_one_owner(cluster: Any, conn: Connection) -> None:
    cluster.statements["INSERT"] = insert(cluster)
    cursor = conn.execute("INSERT", ["C1", 500, 2.5])
    assert (cursor.rowcount, cursor.description) == (1, None)
    assert conn.execute("one", ["C1"]).fetchall()[-1] == ("C1", 500, 2.5)
    assert len(cluster.asked("write_rows")) == 1
    assert cluster.asked("stage_rows") == []
    with pytest.raises(DuplicateKeyError, match="has the key"):
        conn.execute("INSERT", ["taken", 1, 0.0])


def test_insert_select_loads_what_it_selects(cluster: Any, conn: Connection) -> None:
    select = cluster.statements["all"].select("all", 1)
    cluster.statements["INSERT"] = other(
        cluster,
        InsertSelect(cluster.tables[0], ("customer_id", "id", "amount"), select, InsertMode.UPSERT),
    )
    assert conn.execute("INSERT").rowcount == 18
    assert [mode for _, mode, _ in cluster.published] == ["upsert"]
    assert conn.execute("count").fetchone() == (36,)


def test_executemany_is_one_load(cluster: Any, conn: Connection) -> None:
    cluster.statements["INSERT"] = insert(cluster, "upsert")
    cursor = conn.executemany("INSERT", [[f"K{n}", n, n / 2] for n in range(20)])
    assert cursor.rowcount == 20
    assert len(cluster.published) == 1
    assert cluster.asked("write_rows") == []
    assert conn.executemany("INSERT", []).rowcount == -1
    cluster.statements["INSERT"] = insert(cluster, "append")
    before = conn.execute("count").fetchone()
    with pytest.raises(DuplicateKeyError):
        conn.executemany("INSERT", [["new", 1, None], ["taken", 1, None]])
    assert conn.execute("count").fetchone() == before


def test_executemany_of_a_query_has_a_result_for_each_set(conn: Connection) -> None:
    each = [conn.execute("one", [key]).fetchall() for key in ("C1", "none", "C2", "C1")]
    cursor = conn.executemany("one", [["C1"], ["none"], ["C2"], ["C1"]])
    found = [cursor.fetchall()]
    while cursor.nextset():
        found.append(cursor.fetchall())
    assert found == each
    assert (cursor.description, cursor.nextset()) == (None, None)


def test_executemany_of_what_is_executed_once_is_refused(cluster: Any, conn: Connection) -> None:
    cluster.statements["SET"] = other(cluster, SetPruning(Pruning.OFF))
    with pytest.raises(NotSupportedError, match=r"executemany.. is for queries, INSERT, UPDATE and DELETE: call exec"):
        conn.executemany("SET", [[], []])


def test_a_closed_cursor(conn: Connection) -> None:
    with conn.cursor() as cursor:
        cursor.execute("all")
    for use in (
        cursor.fetchall,
        lambda: iter(cursor),
        lambda: cursor.execute("all"),
        lambda: cursor.executemany("all", []),
    ):
        with pytest.raises(InterfaceError, match="the cursor is closed"):
            use()
    assert repr(cursor) == "<Cursor closed>"
    cursor.close()


def test_odds_and_ends(conn: Connection) -> None:
    cursor = conn.cursor()
    assert cursor.connection is conn
    cursor.setinputsizes([int, Decimal])
    cursor.setoutputsize(10)
    assert repr(cursor) == "<Cursor without result>"
    cursor.execute("all").fetchone()
    assert repr(cursor) == "<Cursor at row 1 of 18: customer_id, id, amount>"
    with pytest.raises(InterfaceError, match="cannot be negative"):
        cursor.fetchmany(-1)
    with pytest.raises(InterfaceError, match="a statement is text, not a NoneType"):
        cursor.execute(None)  # type: ignore[arg-type]
