"""A Spark driver with executors in JVMs of their own, one of which is killed in a load: see ``test_spark_faults.py``.

Arguments: the address of the cluster, its token, the table, and a file for the process id of that JVM.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import psutil
import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from secateur.connectors.spark import SecateurDataSource
from secateur.connectors.spark.environment import this_environment
from secateur.connectors.spark.writer import LoadWriter, StagedTask

EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


class ExecutorKiller(LoadWriter):
    """The first attempt at the last task kills the JVM of its executor when a part of its rows is staged."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedTask:
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0 and context.partitionId() == 3:
            super().write(islice(iterator, 1))
            (executor,) = (process for process in psutil.Process().parents() if EXECUTOR in process.cmdline())
            Path(os.environ["KILLED"]).write_text(str(executor.pid))
            executor.send_signal(signal.SIGKILL)
            signal.pause()  # Spark ends the workers of an executor that is gone
        return super().write(iterator)


class KillingSource(SecateurDataSource):
    @classmethod
    def name(cls) -> str:
        return "killing"

    def writer(self, schema: StructType, overwrite: bool) -> LoadWriter:
        made = super().writer(schema, overwrite)
        return ExecutorKiller(*(getattr(made, name) for name in made.__dataclass_fields__))


def main(address: str, token: str, table: str, killed: str) -> None:
    spark = (
        SparkSession.builder.master("local-cluster[2,1,512]")
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "512m")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.sparkContext.environment["KILLED"] = killed
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with this_environment(spark):
        spark.dataSource.register(KillingSource)
        spark.range(0, 1000, 1, 4).selectExpr("id AS k", "2L AS v").write.format("killing").mode("overwrite").options(
            address=address, token=token, table=table, chunk_bytes="1"
        ).save()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
