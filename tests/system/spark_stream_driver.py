"""A Spark driver with two streams until it is killed or there is no more: files to a table, its changes to another.

Arguments: the address of the cluster, its token, the table, the folder of the files, and that of the checkpoints. The
other table has the name of the first with ``_log``.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import secateur
from secateur.connectors.spark.environment import this_environment


def main(address: str, token: str, table: str, folder: str, checkpoint: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        # On a busy machine Spark's own processes do not find each other within its 15 s, and it waits for ever then.
        .config("spark.python.authenticate.socketTimeout", "120s")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    secateur.spark.register(spark)
    files = spark.readStream.schema("k BIGINT, v BIGINT").option("maxFilesPerTrigger", 1).json(folder)
    cluster = {"address": address, "token": token}
    feed = {**cluster, "table": table, "changeFeed": "true", "startingPosition": "earliest"}
    changes = spark.readStream.format("secateur").options(**feed).load()
    log = changes.selectExpr("k", "v", "_change_type AS kind", "_commit_version AS version")
    with this_environment(spark):
        writer = files.writeStream.format("secateur").options(**cluster, table=table)
        written = writer.option("checkpointLocation", f"{checkpoint}/files").trigger(availableNow=True).start()
        follower = log.writeStream.format("secateur").options(**cluster, table=f"{table}_log")
        followed = follower.option("checkpointLocation", f"{checkpoint}/changes").start()
        written.awaitTermination()
        followed.processAllAvailable()
        followed.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
