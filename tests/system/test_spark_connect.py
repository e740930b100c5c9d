"""Spark Connect, whose driver is behind a socket, with secateur's tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import secateur

pytest.importorskip("grpc_status", reason="Spark Connect needs pyspark[connect]")

# A driver, a server and their Pythons start.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

DRIVER = Path(__file__).with_name("spark_connect_driver.py")
COLUMNS = "customer VARCHAR, id BIGINT, price DECIMAL(12, 2)"


def test_tables_are_written_read_looked_up_and_followed(tmp_path: Path) -> None:
    with (
        secateur.start(members=2, runtime="embedded", token="", member_silence_s=30.0) as cluster,
        cluster.connect() as conn,
    ):
        conn.execute(
            f"CREATE TABLE orders ({COLUMNS}, PRIMARY KEY (customer, id)) PARTITION BY HASH (customer) PARTITIONS 8"
        )
        conn.execute(f"CREATE TABLE changed ({COLUMNS}, PRIMARY KEY (customer, id)) WITH (change_feed = true)")
        conn.execute(f"CREATE TABLE followed ({COLUMNS}, version BIGINT, PRIMARY KEY (customer, id, version))")
        conn.execute("INSERT INTO changed VALUES ('a', 1, 1), ('b', 2, 2)")
        root = str(Path(secateur.__file__).parent.parent)
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH")))),
        }
        driver = subprocess.run(
            [sys.executable, str(DRIVER), cluster.address, str(tmp_path)],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert driver.returncode == 0, driver.stderr
        said = json.loads(driver.stdout.splitlines()[-1])
        assert said == {
            "session": "pyspark.sql.connect.session",
            "format": 1000,
            "read": sorted([id, f"{id}.00"] for id in range(7, 1000, 50)),
            "sql": [[1000, 999]],
            "lookup": [[id, f"{id}.00" if id < 1000 else None] for id in range(995, 1005)],
            "error": True,
            "write": said["write"],
        }
        assert 'use df.write.format("secateur")' in said["write"]
        upserted = conn.execute("SELECT count(*), sum(price - id) FROM orders").fetchall()
        assert [(count, int(total)) for count, total in upserted] == [(1000, 10)]
        followed = conn.execute("SELECT customer, id, price::TEXT FROM followed ORDER BY ALL").fetchall()
        assert followed == [("a", 1, "1.00"), ("b", 2, "2.00")]
