"""The statements of the demo, from one partition to all of them, and one that needs none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["AIRCRAFT", "QUESTIONS", "Question"]

AIRCRAFT: Final = ("N14228", "N725MQ", "N328AA")
"""Some tail numbers."""


@dataclass(frozen=True, slots=True)
class Question:
    """One statement.

    Attributes:
        title: What it asks, in words.
        sql: With ``?`` for parameters. Ordered completely, so that its answer can be compared row by row.
        parameters: One a ``?``.
        aircraft: The tail numbers whose partitions can matter; None when every partition can.
    """

    title: str
    sql: str
    parameters: tuple[str, ...]
    aircraft: tuple[str, ...] | None


QUESTIONS: Final = (
    Question(
        title="The history of one aircraft",
        sql="""
SELECT sched_dep, carrier, flight, origin, dest_name, dep_delay_min, arr_delay_min, temp_f
FROM flights WHERE tailnum = ? ORDER BY sched_dep, carrier, flight""",
        parameters=("N14228",),
        aircraft=("N14228",),
    ),
    Question(
        title="One aircraft in figures",
        sql="""
SELECT count(*) AS flights, sum(distance_miles) AS miles, avg(arr_delay_min) AS mean_arrival_delay,
  max(wind_mph) AS strongest_wind
FROM flights WHERE tailnum = ? AND NOT cancelled""",
        parameters=("N725MQ",),
        aircraft=("N725MQ",),
    ),
    Question(
        title="One aircraft, its make and its airline: three tables, one member",
        sql="""
SELECT tailnum, manufacturer, model, seats, name AS airline, count(*) AS flights
FROM flights JOIN planes USING (tailnum) JOIN airlines USING (carrier)
WHERE tailnum = ? GROUP BY ALL ORDER BY airline""",
        parameters=("N14228",),
        aircraft=("N14228",),
    ),
    Question(
        title="Several aircraft side by side",
        sql="""
SELECT tailnum, count(*) AS flights, max(distance_miles) AS longest, avg(dep_delay_min) AS mean_departure_delay
FROM flights WHERE tailnum IN (?, ?, ?) GROUP BY tailnum ORDER BY tailnum""",
        parameters=AIRCRAFT,
        aircraft=AIRCRAFT,
    ),
    Question(
        title="The whole year, by airline",
        sql="""
SELECT carrier, count(*) AS flights, count(*) FILTER (WHERE cancelled) AS cancelled,
  avg(dep_delay_min) AS mean_departure_delay
FROM flights GROUP BY carrier ORDER BY flights DESC, carrier""",
        parameters=(),
        aircraft=None,
    ),
    Question(
        title="A question that contradicts itself",
        sql="SELECT count(*) AS flights FROM flights WHERE tailnum = ? AND tailnum = ?",
        parameters=("N14228", "N725MQ"),
        aircraft=(),
    ),
)
