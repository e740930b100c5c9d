"""A detached cluster outlives the process that starts it, and is found again by its name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

import secateur
from secateur.errors import ProgrammingError

pytestmark = [pytest.mark.ray, pytest.mark.slow]

STARTS = """
import secateur, sys
cluster = secateur.start(members=2, detached=True, name="orders", ray_address=sys.argv[1], start_timeout_s=150)
with cluster.connect() as conn:
    conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY)")
    conn.execute("INSERT INTO t VALUES (1), (2)")
print(cluster.address)
"""

FINDS = """
import secateur, sys
cluster = secateur.attach("orders", ray_address=sys.argv[1])
print(cluster.address, cluster.token is not None)
try:
    secateur.start(members=1, detached=True, name="orders", ray_address=sys.argv[1])
except secateur.ProgrammingError as error:
    print(error)
with cluster.connect() as conn:
    print(conn.execute("SELECT count(*) FROM t").fetchall(), [member.is_alive for member in cluster.members()])
    cluster.kill_controller()
    print(conn.execute("SELECT sum(k) FROM t").fetchall())
cluster.stop()
try:
    secateur.attach("orders", ray_address=sys.argv[1])
except secateur.ProgrammingError as error:
    print(error)
"""

SHRINKS = """
import os, secateur, sys
import pyarrow as pa
cluster = secateur.start(members=3, detached=True, name="orders", ray_address=sys.argv[1], start_timeout_s=150)
with cluster.connect() as conn:
    conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 60")
    conn.table("t").load(pa.table({"k": range(1000)}))
cluster._runtime.stop_member = lambda member_id: (print(member_id, flush=True), os._exit(0))
cluster.scale(1)
"""

GOES_ON = """
import secateur, sys
cluster = secateur.attach("orders", ray_address=sys.argv[1])
print([(member.id, member.is_alive) for member in cluster.members()])
with cluster.connect() as conn:
    cluster.scale(2)
    print(conn.execute("SELECT count(*) FROM t").fetchall())
print([(member.id, bool(member.partitions_primary)) for member in cluster.members()])
cluster.kill_member("m4")
while "m5" not in (alive := [member.id for member in cluster.members() if member.is_alive]):
    pass
cluster._runtime.stop_member("m4")
print(alive == [member.id for member in cluster.members() if member.is_alive])
cluster.stop()
"""


@pytest.fixture
def ray_address() -> Iterator[str]:
    import ray

    assert not ray.is_initialized()
    ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        yield ray.get_runtime_context().gcs_address
    finally:
        ray.shutdown()


def lines_of(script: str, ray_address: str) -> list[str]:
    command = [sys.executable, "-c", script, ray_address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=dict(os.environ), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_a_detached_cluster_is_found_by_its_name_and_stopped_by_another_process(ray_address: str) -> None:
    (address,) = lines_of(STARTS, ray_address)
    found, refused, rows, total, gone = lines_of(FINDS, ray_address)
    assert found == f"{address} True"
    assert refused.startswith("a cluster named 'orders' runs on this Ray already: secateur.attach('orders') finds it")
    assert rows == "[(2,)] [True, True]"
    assert total == "[(3,)]"
    assert gone.startswith("no cluster named 'orders' runs on the Ray at")


def test_what_a_process_that_is_lost_inside_scale_has_begun_another_one_ends(ray_address: str) -> None:
    assert lines_of(SHRINKS, ray_address) == ["m2"]
    assert lines_of(GOES_ON, ray_address) == [
        "[('m1', True)]",
        "[(1000,)]",
        "[('m1', True), ('m4', True)]",
        "True",  # m5 lives in the process in which m4 did
    ]


def test_a_ray_that_ends_with_this_process_is_refused() -> None:
    with pytest.raises(ProgrammingError, match="the Ray of this process ends with it; give ray_address="):
        secateur.start(members=1, detached=True, name="orders")
