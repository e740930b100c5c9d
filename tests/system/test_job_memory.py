"""Jobs with a memory limit: they spill where they may, fail where not, and the members live on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from alive import alive
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect
from secateur.errors import LimitExceededError

NUMBERS = pa.array(np.arange(600_000) * 7919 % 600_000)
ROWS = pa.table({"k": pc.utf8_lpad(NUMBERS.cast(pa.string()), 60, "0")})
SORTED = secateur.Pipeline().read_batches(ROWS).sort("k", name="the sort").write_to(collect())
LIMITED = secateur.JobConfig(kernel_bytes_max=60_000_000)


@pytest.fixture(scope="module")
def spilling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Path]]:
    directory = tmp_path_factory.mktemp("spill")
    with secateur.start(members=2, runtime="embedded", spill_directory=str(directory)) as cluster:
        yield cluster, directory


def test_a_job_beyond_its_limit_fails_and_the_members_live(cluster: Cluster, conn: secateur.Connection) -> None:
    job = SORTED.submit(conn, LIMITED)
    with pytest.raises(LimitExceededError, match=r"JobConfig\.kernel_bytes_max \(vertex 'the sort.*' on member m\d\)"):
        job.result(timeout_s=60)
    assert SORTED.submit(conn).result(timeout_s=60).num_rows == 600_000
    assert alive(cluster) == ["m1", "m2", "m3"]


def test_a_job_beyond_its_limit_spills_where_it_may_and_leaves_nothing(spilling: tuple[Cluster, Path]) -> None:
    cluster, directory = spilling
    with cluster.connect() as conn:
        before = set(directory.iterdir())
        assert SORTED.submit(conn, LIMITED).result(timeout_s=60)["k"].to_pylist() == sorted(ROWS["k"].to_pylist())
        assert conn.execute("SELECT 1").fetchall() == [(1,)]
        eventually(lambda: set(directory.iterdir()) <= before, "the job has left files behind")
