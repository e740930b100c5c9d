"""A Spark driver that appends files to a table as a stream, until it is killed or there are no more.

Arguments: the address of the cluster, its token, the table, the folder of the files, and that of the checkpoint.
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
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    secateur.spark.register(spark)
    files = spark.readStream.schema("k BIGINT, v BIGINT").option("maxFilesPerTrigger", 1).json(folder)
    writer = files.writeStream.format("secateur").options(address=address, token=token, table=table)
    with this_environment(spark):
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
