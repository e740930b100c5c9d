"""Which Ray a cluster runs on: that of its process, one that is named, or a private one; never one that merely happens
to be there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

import secateur
from secateur.errors import OperationalError, ProgrammingError

pytestmark = pytest.mark.ray

NOBODY = "127.0.0.1:9"
COUNT = "SELECT count(*) FROM secateur.members"

SEVERAL = """
import sys, secateur, ray
start = dict(runtime="ray", start_timeout_s=150, member_silence_s=10.0)
with secateur.start(members=2, **start) as cluster, cluster.connect() as conn:
    print(conn.execute("SELECT count(*) FROM secateur.members").fetchall(), flush=True)
    sys.stdin.readline()
    print(conn.execute("SELECT count(*) FROM secateur.members").fetchall(), ray.get_runtime_context().gcs_address,
      flush=True)
print(ray.is_initialized(), flush=True)
"""


@pytest.fixture(autouse=True)
def no_ray_before() -> None:
    import ray

    assert not ray.is_initialized()


def run(script: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
    )


@pytest.mark.slow
def test_several_start_at_once_beside_an_address_that_nobody_answers() -> None:
    processes = [run(SEVERAL, RAY_ADDRESS="192.0.2.2:38941") for _ in range(3)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "[(2,)]\n"
        outputs = [process.communicate("\n", timeout=100)[0].splitlines() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [output[-1] for output in outputs] == ["False"] * 3
    assert len({output[-2] for output in outputs}) == 3, "each has a Ray of its own"


@pytest.mark.slow
def test_clusters_of_one_process_end_each_by_itself_and_ray_with_the_last() -> None:
    import ray

    first = secateur.start(members=1, runtime="ray", member_silence_s=10.0)
    try:
        second = secateur.start(members=2, runtime="ray", member_silence_s=10.0)
        try:
            first.stop()
            with second.connect() as conn:
                assert conn.execute(COUNT).fetchall() == [(2,)]
            assert ray.is_initialized()
        finally:
            second.stop()
    finally:
        first.stop()
    assert not ray.is_initialized()


@pytest.mark.slow
def test_a_ray_of_the_caller_is_used_and_left_alone() -> None:
    import ray

    ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        address = ray.get_runtime_context().gcs_address
        with pytest.raises(ProgrammingError, match="this process is connected to the Ray at"):
            secateur.start(members=1, runtime="ray", ray_address=NOBODY)
        with secateur.start(members=1, runtime="ray", ray_address=address) as cluster, cluster.connect() as conn:
            assert conn.execute(COUNT).fetchall() == [(1,)]
        assert ray.is_initialized()
        with secateur.start(members=1, runtime="ray", member_silence_s=10.0) as cluster, cluster.connect() as conn:
            assert conn.execute(COUNT).fetchall() == [(1,)]
        assert ray.is_initialized()
    finally:
        ray.shutdown()


def test_a_named_ray_that_is_dead_is_an_error_in_time() -> None:
    script = (
        "import secateur, time; from secateur.errors import OperationalError\n"
        f"try: secateur.start(members=1, runtime='ray', ray_address={NOBODY!r}, start_timeout_s=3)\n"
        "except OperationalError as error: print('ended:', error, flush=True)\n"
        "import os; os._exit(0)"
    )
    started_s = time.monotonic()
    with run(script) as process:
        output = process.communicate(timeout=60)[0]
    assert f"ended: the Ray at {NOBODY} did not answer within start_timeout_s = 3 s" in output
    assert time.monotonic() - started_s < 40


@pytest.mark.slow
# Ray drops the handles of processes that it has ended before they are gone.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_start_without_time_is_given_up_and_the_next_one_works() -> None:
    import ray

    with pytest.raises(OperationalError, match=r"within start_timeout_s = 0\.05 s"):
        secateur.start(members=1, runtime="ray", start_timeout_s=0.05)
    with secateur.start(members=1, runtime="ray", member_silence_s=10.0) as cluster, cluster.connect() as conn:
        assert conn.execute(COUNT).fetchall() == [(1,)]
    assert not ray.is_initialized()
