"""The tables, in secateur's SQL.

``flights`` and ``planes`` are hashed on the tail number with the same number of partitions, so an aircraft and its
flights live on the same member. ``airlines`` has 16 rows that every statement may want: a copy on each member.
"""

from __future__ import annotations

from typing import Final

__all__ = ["DDL"]

DDL: Final = {
    "flights": (
        """
        CREATE TABLE flights (
            tailnum VARCHAR, sched_dep TIMESTAMP, carrier VARCHAR, flight INTEGER,
            origin VARCHAR NOT NULL, dest VARCHAR NOT NULL, dest_name VARCHAR, distance_miles INTEGER NOT NULL,
            cancelled BOOLEAN NOT NULL, dep_delay_min INTEGER, arr_delay_min INTEGER, air_time_min INTEGER,
            temp_f DOUBLE, wind_mph DOUBLE, visibility_miles DOUBLE,
            PRIMARY KEY (tailnum, sched_dep, carrier, flight)
        ) PARTITION BY HASH (tailnum) PARTITIONS 271
    """
    ),
    "planes": (
        """
        CREATE TABLE planes (
            tailnum VARCHAR, built INTEGER, manufacturer VARCHAR NOT NULL, model VARCHAR NOT NULL,
            engines INTEGER NOT NULL, seats INTEGER NOT NULL,
            PRIMARY KEY (tailnum)
        ) PARTITION BY HASH (tailnum) PARTITIONS 271
    """
    ),
    "airlines": "CREATE TABLE airlines (carrier VARCHAR, name VARCHAR NOT NULL, PRIMARY KEY (carrier)) REPLICATED",
}
