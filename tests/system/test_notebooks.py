"""What notebooks and shells show of clusters, tables, rows, jobs and the cost of statements."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect, table_source


def test_a_cluster_shows_its_members() -> None:
    with secateur.start(members=2, runtime="embedded") as cluster:
        html = cluster._repr_html_()
        assert html.startswith("<pre>&lt;Cluster secateur://")
        assert html.count("<tr>") == 3
        assert "<td>m1</td><td>" in html
        assert cluster.token is not None
        assert cluster.token not in html
    assert cluster._repr_html_() == f"<pre>&lt;Cluster {cluster.address} embedded stopped&gt;</pre>"


def test_the_cost_of_a_statement_and_a_job(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 7")
    conn.execute(f"INSERT INTO {table_name} VALUES (1), (2)")
    stats = conn.execute(f"SELECT * FROM {table_name} WHERE k = 1").stats
    assert stats is not None
    assert "<td>local</td><td>1 of 3</td><td>1 of 7</td>" in stats._repr_html_()
    dag = secateur.DAG()
    dag.new_vertex("read <all>", table_source(table_name))
    dag.new_vertex("result", collect())
    dag.edge(secateur.between("read <all>", "result").all_to_one().distributed())
    job = conn.submit(dag)
    assert job.result(60).num_rows == 2
    html = job._repr_html_()
    assert f"<td>{job.job_id}</td>" in html
    assert f"<td>{job.status}</td>" in html
    assert "read &lt;all&gt;" in html


SHOWN = r"""
k        v          text
INTEGER  DOUBLE     VARCHAR
-------  ---------  ----------------------------------------
1        0.5        a\nb
2        NULL       xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
3        1000000.0  <c>
3 rows
""".strip()


def test_a_shell_shows_rows_that_stay_to_be_fetched(conn: secateur.Connection) -> None:
    sql = "VALUES (1, 0.5::DOUBLE, chr(97) || chr(10) || 'b'), (2, NULL, repeat('x', 41)), (?, 1e6, '<c>')"
    cursor = conn.sql(f"SELECT * FROM ({sql}) AS t(k, v, text) ORDER BY k", [3])
    assert repr(cursor) == SHOWN
    assert cursor.fetchone() == (1, 0.5, "a\nb")
    assert repr(cursor).endswith("3        1000000.0  <c>\n2 rows")
    assert repr(conn.sql("SET pruning = on")) == "<Cursor without result>"
    assert repr(conn.sql("FROM range(100)")).endswith("\n19\nthe next 20 of 100 rows")
    assert "more are to come" in repr(conn.sql("FROM range(2000000)"))
    unknown = repr(conn.sql("SELECT 'infinity'::DATE AS d"))
    assert unknown.startswith("<Cursor at row 0 of 1: d>\ncolumn 'd' has a value that Python has no DATE for")


def test_a_table_shows_its_columns(conn: secateur.Connection, table_name: str) -> None:
    columns = "a VARCHAR, b INTEGER, c DOUBLE, PRIMARY KEY (b, a)"
    conn.execute(f"CREATE TABLE {table_name} ({columns}) PARTITION BY HASH (a) PARTITIONS 7")
    html = conn.table(table_name)._repr_html_()
    assert html.startswith(f"<pre>&lt;Table {table_name}:")
    assert "<td>a</td><td>VARCHAR</td><td>NOT NULL</td><td>2</td><td>1</td>" in html
    assert "<td>c</td><td>DOUBLE</td><td></td><td></td><td></td>" in html


def test_sql_in_cells(cluster: Cluster, conn: secateur.Connection, table_name: str) -> None:
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "secateur")
    shell.user_ns |= {"conn": conn, "least": 2, "other": 9}
    create = f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY, v VARCHAR)"
    assert shell.run_line_magic("sql", create) is None
    insert = f"INSERT INTO {table_name} -- $other\nVALUES (1, 'a'), ($least, '$least'), (3, $$c $other$$)"
    assert shell.run_cell_magic("sql", "", insert) is None
    found = shell.run_line_magic("sql", f"SELECT k, v FROM {table_name} WHERE k >= $least ORDER BY k")
    assert "$least" in repr(found)
    assert found.fetchall() == [(2, "$least"), (3, "c $other")]
    with pytest.raises(secateur.ProgrammingError, match="nothing stands behind %%sql"):
        shell.run_cell_magic("sql", "other", "FROM t")
    shell.user_ns["conn"] = 7
    with pytest.raises(secateur.ProgrammingError, match="the variable conn is a int"):
        shell.run_line_magic("sql", "SELECT 1")


def test_without_a_connection_the_environment_says_where(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECATEUR_ADDRESS", cluster.address)
    monkeypatch.setenv("SECATEUR_TOKEN", cluster.token or "")
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "secateur")
    assert shell.run_line_magic("sql", "SELECT 41 + 1").fetchall() == [(42,)]
    with shell.user_ns["conn"] as conn:
        assert not conn.closed
