"""A user of Spark Connect: writes, reads and looks up through a server that it starts. Prints what it found, as JSON.

A process of its own: PySpark has either sessions of Spark Connect or those of a driver beside it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import secateur
from secateur import errors


def main(address: str, folder: str) -> dict[str, Any]:
    """Use the tables ``orders`` and ``changed`` of a cluster without a token."""
    os.environ["SPARK_TESTING"] = "1"  # the server takes any free port, and PySpark asks it for the number
    spark = (
        SparkSession.builder.remote("local[2]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", Path(folder, "warehouse").as_uri())
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    said: dict[str, Any] = {"session": type(spark).__module__}
    at = {"address": address, "table": "orders"}
    orders = spark.range(1000).selectExpr(
        "concat('C', id % 50) AS customer", "id", "cast(id AS decimal(10, 2)) AS price"
    )
    orders.write.format("secateur").mode("append").options(**at).save()
    said["format"] = spark.read.format("secateur").options(**at).load().count()
    read = secateur.spark.read(spark, "orders", ["id", "price"], "customer = ?", ["C7"], address=address)
    said["read"] = sorted((row.id, str(row.price)) for row in read.collect())
    spark.sql(f"CREATE TABLE orders USING secateur OPTIONS (address '{address}', `table` 'orders')")
    said["sql"] = [tuple(row) for row in spark.sql("SELECT count(*), max(id) FROM orders").collect()]
    keys = spark.range(995, 1005).selectExpr("concat('C', id % 50) AS customer", "id")
    found = secateur.spark.lookup(keys, "orders", ["customer", "id"], "left", address=address)
    said["lookup"] = sorted((row.id, None if row.price is None else str(row.price)) for row in found.collect())
    dearer = orders.where("id < 10").selectExpr("customer", "id", "price + 1 AS price")
    dearer.write.format("secateur").mode("append").options(**at, operation="upsert").save()
    try:
        orders.write.format("secateur").mode("append").options(**at).save()
    except PySparkException as error:
        said["error"] = "DuplicateKeyError" in str(error)
    try:
        secateur.spark.write(dearer, "orders", mode="upsert", address=address)
    except errors.NotSupportedError as error:
        said["write"] = str(error)
    options = {**at, "table": "changed", "changeFeed": "true", "startingPosition": "earliest"}
    changes = spark.readStream.format("secateur").options(**options).load()
    query = (
        changes.selectExpr("customer", "id", "price", "_commit_version AS version")
        .writeStream.format("secateur")
        .options(address=address, table="followed", checkpointLocation=str(Path(folder, "checkpoint")))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()
    return said


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])), flush=True)
