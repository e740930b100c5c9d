"""Data of clients that lie: an error for them, and nothing for anybody else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.connectors import batch_source, collect
from secateur.errors import ProtocolError
from secateur.processors import count_rows


def _beyond_the_text() -> pa.Array:
    offsets = np.arange(1001, dtype=np.int32) * 4
    offsets[500:502] = 2**31 - 1
    return pa.StringArray.from_buffers(1000, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"abcd" * 1000))


def _before_the_text() -> pa.Array:
    offsets = np.arange(1001, dtype=np.int32) * 4
    offsets[500] = -(2**30)
    return pa.StringArray.from_buffers(1000, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"abcd" * 1000))


def _beyond_the_dictionary() -> pa.Array:
    indices = pa.py_buffer(np.full(1000, 2**30, dtype=np.int32).tobytes())
    return pa.DictionaryArray.from_buffers(pa.dictionary(pa.int32(), pa.string()), 1000, [None, indices], pa.array(["a", "b"]))


@pytest.mark.parametrize("lying", [_beyond_the_text, _before_the_text, _beyond_the_dictionary], ids=lambda lying: lying.__name__.strip("_"))
@pytest.mark.parametrize("light", [pytest.param(True, id="light"), pytest.param(False, id="on record")])
def test_a_job_whose_rows_contradict_themselves_costs_no_member(cluster: Cluster, conn: secateur.Connection, lying, light: bool) -> None:  # type: ignore[no-untyped-def]
    rows = pa.table({"x": lying(), "n": range(1000)})
    source = secateur.Pipeline().read_from(batch_source(rows))
    pipeline = source.key_by("x").aggregate(k=count_rows()).sort("x").write_to(collect())
    with pytest.raises(ProtocolError, match="should be an Arrow IPC stream"):
        pipeline.submit(conn, light=light).result()
    assert [member.state for member in cluster.members()] == ["active"] * 3
