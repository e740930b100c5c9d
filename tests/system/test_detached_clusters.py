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
    print(conn.execute("SELECT count(*) FROM t").fetchall(), [member.state for member in cluster.members()])
    cluster.kill_controller()
    print(conn.execute("SELECT sum(k) FROM t").fetchall())
cluster.stop()
try:
    secateur.attach("orders", ray_address=sys.argv[1])
except secateur.ProgrammingError as error:
    print(error)
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
    assert rows == "[(2,)] ['active', 'active']"
    assert total == "[(3,)]"
    assert gone.startswith("no cluster named 'orders' runs on the Ray at")


def test_a_ray_that_ends_with_this_process_is_refused() -> None:
    with pytest.raises(ProgrammingError, match="the Ray of this process ends with it; give ray_address="):
        secateur.start(members=1, detached=True, name="orders")
