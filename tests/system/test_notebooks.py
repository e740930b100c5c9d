"""What notebooks show of clusters, jobs and the cost of statements."""

from __future__ import annotations

import secateur
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
