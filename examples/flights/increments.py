"""The last day of the year, hour by hour: what an hourly job would bring, as upserts while statements are answered.

An increment has the flights that the coming hour schedules, whose outcome nobody knows yet, and those of the hour
before once more, now with their outcome. So each row arrives twice, and the second replaces the first.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from types import TracebackType
from typing import Final, Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (everybody who writes Spark knows it as F)

from examples.flights.answer import WrongAnswerError
from secateur import Connection
from secateur.errors import Error

__all__ = ["LAST_DAY", "Increment", "ReaderThread", "check_agreement", "hourly_increments", "until_last_day"]

LAST_DAY: Final = datetime(2013, 12, 31)
_OUTCOME: Final = ("dep_delay_min", "arr_delay_min", "air_time_min")
_HOUR: Final = timedelta(hours=1)
_FIGURES: Final = (
    "SELECT carrier, count(*), count(arr_delay_min), sum(distance_miles), sum(arr_delay_min) FROM flights"
    " GROUP BY carrier ORDER BY carrier"
)
_FLIGHTS_OF_LAST_DAY: Final = "SELECT count(*) FROM flights WHERE sched_dep >= TIMESTAMP '2013-12-31 00:00:00'"
_LOOKUPS_PER_TOTAL: Final = 50
"""A total reads all partitions; that many look-ups of one aircraft come between two of them."""


@dataclass(frozen=True, slots=True)
class Increment:
    """What one hour brings.

    Attributes:
        hour: Its beginning.
        rows: Flights with all columns of the table.
        scheduled: How many of them are new.
    """

    hour: datetime
    rows: DataFrame
    scheduled: int


def until_last_day(flights: DataFrame) -> DataFrame:
    """What the table holds before the first increment."""
    return flights.where(F.col("sched_dep") < F.lit(LAST_DAY))


def hourly_increments(flights: DataFrame) -> Iterator[Increment]:
    """The increments in their order; after the last one the table holds every flight with its outcome."""
    # Hours without a flight have no increment, but the last flights still have to land.
    scheduled = {
        row["hour"]: row["count"]
        for row in flights.where(F.col("sched_dep") >= F.lit(LAST_DAY))
        .groupBy(F.date_trunc("hour", "sched_dep").alias("hour"))
        .count()
        .collect()
    }
    hours = [LAST_DAY + number * _HOUR for number in range(24 + 1)]
    for hour in hours:
        before = hour - _HOUR
        if hour in scheduled or before in scheduled:
            yield Increment(
                hour,
                _of(flights, hour).select(*map(_unknown, flights.columns)).unionByName(_of(flights, before)),
                scheduled.get(hour, 0),
            )


class ReaderThread:
    """Asks for one aircraft after the other, on a connection of its own, as long as the ``with`` block lasts.

    It sees each increment wholly or not at all, and an aircraft never loses a flight.

    Args:
        connect: Opens the connection.
        aircraft: Their tail numbers.
        totals: The numbers of flights of the last day that may be seen: one before and one after each increment.
    """

    def __init__(self, connect: Callable[[], Connection], aircraft: Sequence[str], totals: Sequence[int]) -> None:
        self._connect = connect
        self._aircraft = aircraft
        self._totals = frozenset(totals)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flights-reader")
        self._failure: Error | WrongAnswerError | None = None
        self._seconds: list[float] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if kind is None and self._failure is not None:
            raise self._failure

    @property
    def lookups(self) -> int:
        """How many look-ups were answered."""
        return len(self._seconds)

    @property
    def median_ms(self) -> float:
        """The median of the look-ups, in milliseconds; 0 without any."""
        return median(self._seconds or [0.0]) * 1000

    def _run(self) -> None:
        try:
            with self._connect() as connection:
                self._ask(connection)
        except (Error, WrongAnswerError) as failure:
            self._failure = failure

    def _ask(self, connection: Connection) -> None:
        flights = dict.fromkeys(self._aircraft, 0)
        for number, tailnum in enumerate(itertools.cycle(self._aircraft)):
            if self._ended.is_set():
                return
            started = time.perf_counter()
            [(found,)] = connection.execute("SELECT count(*) FROM flights WHERE tailnum = ?", [tailnum]).fetchall()
            self._seconds.append(time.perf_counter() - started)
            if found < flights[tailnum]:
                raise WrongAnswerError(f"{tailnum} had {flights[tailnum]} flights and now has {found}")
            flights[tailnum] = found
            if number % _LOOKUPS_PER_TOTAL == 0:
                [(total,)] = connection.execute(_FLIGHTS_OF_LAST_DAY).fetchall()
                if total not in self._totals:
                    raise WrongAnswerError(
                        f"{total} flights of {LAST_DAY:%d %B} are seen, which is a part of an increment; whole"
                        f" increments give {sorted(self._totals)}"
                    )


def check_agreement(flights: DataFrame, connection: Connection) -> int:
    """Compare figures of each airline in Spark's DataFrame with those in secateur's table.

    Returns:
        How many airlines were compared.

    Raises:
        WrongAnswerError: They differ.
    """
    in_spark = (
        flights.groupBy("carrier")
        .agg(F.count("*"), F.count("arr_delay_min"), F.sum("distance_miles"), F.sum("arr_delay_min"))
        .orderBy("carrier")
    )
    expected = [tuple(row) for row in in_spark.collect()]
    found = connection.execute(_FIGURES).fetchall()
    if found != expected:
        raise WrongAnswerError(f"after the last increment secateur has {found}, Spark has {expected}")
    return len(found)


def _of(flights: DataFrame, hour: datetime) -> DataFrame:
    return flights.where((F.col("sched_dep") >= F.lit(hour)) & (F.col("sched_dep") < F.lit(hour + _HOUR)))


def _unknown(column: str) -> object:
    if column == "cancelled":
        return F.lit(False).alias(column)
    return F.lit(None).alias(column) if column in _OUTCOME else F.col(column)
