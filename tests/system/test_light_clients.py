"""What a client in a process of its own loads: short statements take nothing but the client itself."""

from __future__ import annotations

from client_process import in_client

from secateur.cluster import Cluster

STATEMENTS = {
    "SELECT by key": "SELECT v FROM {t} WHERE k = ?",
    "SELECT by converted key": "SELECT v FROM {t} WHERE k = CAST(? AS BIGINT)",
    "INSERT OR REPLACE": "INSERT OR REPLACE INTO {t} VALUES (?, 1)",
    "ON CONFLICT DO UPDATE": "INSERT INTO {t} VALUES (?, 1) ON CONFLICT DO UPDATE SET v = v + excluded.v",
    "ON CONFLICT DO NOTHING": "INSERT INTO {t} VALUES (?, 1) ON CONFLICT DO NOTHING",
    "UPDATE": "UPDATE {t} SET v = v + 1 WHERE k = ?",
    "DELETE": "DELETE FROM {t} WHERE k = ?",
}


def test_short_statements_load_no_duckdb(cluster: Cluster, table_name: str) -> None:
    with cluster.connect() as conn:
        conn.execute(f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 8")
    statements = {name: statement.format(t=table_name) for name, statement in STATEMENTS.items()}
    found = in_client(
        cluster,
        f"for name, statement in {statements!r}.items():\n"
        "    conn.execute(statement, [1])\n"
        "    out[name] = 'duckdb' in sys.modules",
    )
    assert found == dict.fromkeys(STATEMENTS, False)


def test_an_expression_that_only_duckdb_computes_loads_it(cluster: Cluster, table_name: str) -> None:
    with cluster.connect() as conn:
        conn.execute(f"CREATE TABLE {table_name} (k VARCHAR PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 8")
        conn.execute(f"INSERT INTO {table_name} VALUES (md5('abc'))")
    found = in_client(
        cluster,
        f"out['rows'] = conn.execute('SELECT count(*) FROM {table_name} WHERE k = md5(?)', ['abc']).fetchall()\n"
        "out['loaded'] = 'duckdb' in sys.modules",
    )
    assert found == {"rows": [[1]], "loaded": True}
