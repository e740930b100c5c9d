"""External tables where members are processes of their own: connectors really travel, and so do tracebacks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import cloudpickle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secateur
from secateur.connectors import Connector, ConnectorContext, ConnectorPartition, ExternalScanRequest, one_of
from secateur.errors import JobFailedError

pytestmark = [pytest.mark.ray, pytest.mark.slow]


class Processes(Connector):
    """Each partition says in which process it was read."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    def schema(self, context: ConnectorContext) -> pa.Schema:
        return pa.schema([("part", pa.int64()), ("process", pa.int64()), ("member", pa.string())])

    def partitions(self, schema: pa.Schema, context: ConnectorContext) -> Sequence[ConnectorPartition]:
        return [ConnectorPartition(n, {"part": one_of(n)}) for n in range(6)]

    def read(
        self, partition: ConnectorPartition, request: ExternalScanRequest, context: ConnectorContext
    ) -> Iterator[pa.RecordBatch]:
        import os

        if self.fails:
            raise RuntimeError("no such shard")
        yield pa.record_batch({"part": [partition.key], "process": [os.getpid()], "member": [context.member]})


def test_connectors_and_folders_are_read_by_the_processes_of_the_members(tmp_path: Path) -> None:
    for day in (1, 2, 3, 4):
        (tmp_path / "t" / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"v": range(day * 10)}), tmp_path / "t" / f"day={day}" / "0.parquet")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        with (
            secateur.start(members=3, runtime="ray", member_silence_s=10.0, external_directories=[tmp_path]) as cluster,
            cluster.connect() as conn,
        ):
            conn.register("processes", Processes())
            found = conn.execute("SELECT count(DISTINCT process), count(DISTINCT member), count(*) FROM processes")
            assert found.fetchall() == [(3, 3, 6)]
            assert conn.execute("SELECT part FROM processes WHERE part = ?", [4]).fetchall() == [(4,)]
            conn.register("failing", Processes(fails=True))
            with pytest.raises(JobFailedError, match=r"connector Processes of table failing failed in read") as caught:
                conn.execute("SELECT part FROM failing WHERE part = 4")
            assert 'raise RuntimeError("no such shard")' in str(caught.value.details["traceback"])
            conn.execute(f"CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{tmp_path / 't'}'")
            cursor = conn.execute("SELECT day, count(*) FROM t WHERE day > 2 GROUP BY day ORDER BY day")
            assert cursor.fetchall() == [(3, 30), (4, 40)]
            assert cursor.stats is not None
            assert (cursor.stats.partitions_read, cursor.stats.members_touched) == (2, 2)
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
