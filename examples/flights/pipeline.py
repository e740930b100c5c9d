"""The Spark part: reads and cleans the files, and adds its destination and the departure's weather to each flight.

Peculiarities of the data, and how they are handled:

- ``NA`` means missing; it is read as NULL, not as a word.
- 2,512 flights have no tail number. All of them were cancelled before an aircraft was assigned: real flights without an
  aircraft. They are kept under the tail number ``unassigned``, so that totals stay right; they fill one partition, and
  no aircraft's history has them.
- Cancelled flights have no departure time; ``cancelled`` says so instead of leaving it to be guessed from NULLs.
- The scheduled departure is spread over five numbers; it becomes one timestamp, in New York's local time. With tail
  number, carrier and flight number it is the key.
- Makers of planes appear under several names (``AIRBUS INDUSTRIE`` is ``AIRBUS``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (everybody who writes Spark knows it as F)

from examples.flights.dataset import Dataset

__all__ = ["UNASSIGNED", "Cleaned", "clean", "start_spark"]

UNASSIGNED: Final = "unassigned"

_SCHEMAS: Final = {
    "flights": (
        """year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT,
        sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
        air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP"""
    ),
    "planes": (
        "tailnum STRING, year INT, type STRING, manufacturer STRING, model STRING, engines INT, seats INT, speed INT,"
        " engine STRING"
    ),
    "airlines": "carrier STRING, name STRING",
    "airports": "faa STRING, name STRING, lat DOUBLE, lon DOUBLE, alt INT, tz INT, dst STRING, tzone STRING",
    "weather": (
        """origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE, humid DOUBLE, wind_dir INT,
        wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE, time_hour TIMESTAMP"""
    ),
}

_MAKERS: Final = {
    "AIRBUS INDUSTRIE": "AIRBUS",
    "MCDONNELL DOUGLAS AIRCRAFT CO": "MCDONNELL DOUGLAS",
    "MCDONNELL DOUGLAS CORPORATION": "MCDONNELL DOUGLAS",
}

# Spark compares the root level with that of its shell, and talks about it when they differ.
_QUIET: Final = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
"""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What the pipeline hands on.

    Attributes:
        tables: A cached DataFrame for each table, with the table's columns in their order.
        findings: What was found, in the reader's words -> number of rows.
    """

    tables: Mapping[str, DataFrame]
    findings: Mapping[str, int]


def start_spark(folder: Path) -> SparkSession:
    """Start Spark in this process on all cores, silent below errors, with its scratch files in ``folder``."""
    quiet = folder / "log4j2.properties"
    quiet.write_text(_QUIET)
    return (
        SparkSession.builder.master("local[*]")
        .appName("secateur flights")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={quiet.as_uri()}")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.local.dir", str(folder))
        .config("spark.sql.warehouse.dir", (folder / "warehouse").as_uri())
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", 4)
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .getOrCreate()
    )


def clean(spark: SparkSession, data: Dataset) -> Cleaned:
    """Read, clean and enrich; runs the whole pipeline once, because the findings are counted from its cached result."""
    flights = _read(spark, "flights", data.flights)
    planes = _read(spark, "planes", data.planes)
    airlines = _read(spark, "airlines", data.airlines)
    tables = {
        "flights": (
            _flights(flights, _read(spark, "airports", data.airports), _read(spark, "weather", data.weather)).cache()
        ),
        "planes": _planes(planes).cache(),
        "airlines": airlines.cache(),
    }
    read = {"flights read": flights.count(), "planes read": planes.count(), "airlines read": airlines.count()}
    counted = tables["flights"].agg(
        F.count("*").alias("kept"),
        F.count_if(F.col("tailnum") == UNASSIGNED).alias("unassigned"),
        F.count_if("cancelled").alias("cancelled"),
        F.count_if(F.col("dest_name").isNull()).alias("no airport"),
        F.count_if(F.col("temp_f").isNull()).alias("no weather"),
    )
    [flight] = counted.collect()
    return Cleaned(
        tables=tables,
        findings={
            **read,
            "flights that were there twice, dropped": read["flights read"] - flight["kept"],
            f"flights without a tail number, kept as '{UNASSIGNED}'": flight["unassigned"],
            "flights cancelled, those among them": flight["cancelled"],
            "flights to an airport that the list of airports lacks, name left NULL": flight["no airport"],
            "flights without a temperature in the weather reports of their hour, left NULL": flight["no weather"],
            "planes whose maker got its common name": planes.where(F.col("manufacturer").isin(*_MAKERS)).count(),
            "planes without a year, left NULL": tables["planes"].where(F.col("built").isNull()).count(),
        },
    )


def _read(spark: SparkSession, name: str, path: Path) -> DataFrame:
    # FAILFAST: a file that does not fit its schema is an error here, not a column of NULLs later.
    return spark.read.csv(path.as_uri(), schema=_SCHEMAS[name], header=True, nullValue="NA", mode="FAILFAST")


def _flights(flights: DataFrame, airports: DataFrame, weather: DataFrame) -> DataFrame:
    destination = airports.select(F.col("faa").alias("dest"), F.col("name").alias("dest_name"))
    at_departure = weather.select(
        "origin",
        "time_hour",
        F.col("temp").alias("temp_f"),
        F.col("wind_speed").alias("wind_mph"),
        F.col("visib").alias("visibility_miles"),
    )
    key = ["tailnum", "sched_dep", "carrier", "flight"]
    return (
        flights.withColumn("tailnum", F.coalesce(F.trim("tailnum"), F.lit(UNASSIGNED)))
        .withColumn("sched_dep", F.make_timestamp_ntz("year", "month", "day", "hour", "minute", F.lit(0)))
        .dropDuplicates(key)
        .join(F.broadcast(destination), "dest", "left")
        .join(F.broadcast(at_departure), ["origin", "time_hour"], "left")
        .select(
            *key,
            "origin",
            "dest",
            "dest_name",
            F.col("distance").alias("distance_miles"),
            F.col("dep_time").isNull().alias("cancelled"),
            F.col("dep_delay").alias("dep_delay_min"),
            F.col("arr_delay").alias("arr_delay_min"),
            F.col("air_time").alias("air_time_min"),
            "temp_f",
            "wind_mph",
            "visibility_miles",
        )
    )


def _planes(planes: DataFrame) -> DataFrame:
    maker = planes.replace(_MAKERS, subset=["manufacturer"])
    return maker.select(
        "tailnum", F.col("year").alias("built"), "manufacturer", "model", "engines", "seats"
    ).dropDuplicates(["tailnum"])
