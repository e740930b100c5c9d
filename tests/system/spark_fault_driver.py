"""A Spark driver that is killed when its load is about to be published, or just was: see ``test_spark_faults.py``.

Arguments: the address of the cluster, its token, the table, and ``before`` or ``after``.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from secateur.connectors.spark import SecateurDataSource
from secateur.connectors.spark.environment import this_environment
from secateur.connectors.spark.writer import LoadWriter


class Killed(LoadWriter):
    """Ends the driver in ``commit``, which runs in a process beside it."""

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        when, *processes = os.environ["FAULT"].split()
        if when == "after":
            super().commit(messages)
        for process in processes:
            os.kill(int(process), signal.SIGKILL)
        os._exit(1)


class KilledSource(SecateurDataSource):
    @classmethod
    def name(cls) -> str:
        return "killed"

    def writer(self, schema: StructType, overwrite: bool) -> LoadWriter:
        made = super().writer(schema, overwrite)
        return Killed(*(getattr(made, name) for name in made.__dataclass_fields__))


def main(address: str, token: str, table: str, when: str) -> None:
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    machine = spark._jvm.java.lang.ProcessHandle.current().pid()
    spark.sparkContext.environment["FAULT"] = os.environ["FAULT"] = f"{when} {os.getpid()} {machine}"
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with this_environment(spark):
        spark.dataSource.register(KilledSource)
        spark.range(0, 1000, 1, 2).selectExpr("id AS k", "2L AS v").write.format("killed").mode("overwrite").options(
            address=address, token=token, table=table
        ).save()


if __name__ == "__main__":
    main(*sys.argv[1:])
