"""Calendar units: the start of the unit that holds an instant, and the start of the next one.

Years are those of ISO 8601, weeks start on Monday.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Final

import numpy as np
import pyarrow as pa

SPANS: Final = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
}
"""The units of one length."""
MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
"""The others, in months."""
DAYS_OR_LONGER: Final = frozenset({"day", "week", *MONTHS})
"""The units that start at midnight."""
UNITS: Final = frozenset({*SPANS, *MONTHS})

INFINITE: Final = 2**63 - 1
"""The number of DuckDB's infinite timestamp, in every unit; that of the other one has a minus sign."""


def start_of(instant: datetime, unit: str) -> datetime:
    """The first instant of the unit that holds an instant without a zone; what ``date_trunc`` gives.

    Raises:
        OverflowError: It is before the year 1.
    """
    match unit:
        case "second":
            return instant.replace(microsecond=0)
        case "minute":
            return instant.replace(second=0, microsecond=0)
        case "hour":
            return instant.replace(minute=0, second=0, microsecond=0)
        case _:
            day = datetime.combine(instant.date(), time.min)
    if unit == "day":
        return day
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(month=day.month - (day.month - 1) % MONTHS[unit], day=1)


def following(start: datetime, unit: str) -> datetime:
    """The start of the unit behind the one that starts at ``start``.

    Raises:
        OverflowError: It is behind the year 9999.
    """
    step = SPANS.get(unit)
    if step is not None:
        return start + step
    months = start.year * 12 + start.month - 1 + MONTHS[unit]
    if months >= 10_000 * 12:
        raise OverflowError("the next unit starts behind the year 9999")
    return start.replace(year=months // 12, month=months % 12 + 1)


def instant_text(value: pa.Scalar) -> str | None:
    """An Arrow day or timestamp for a message: ``infinity``, ``10000-01-01``, ``0044-03-15 (BC)``; None for others."""
    if pa.types.is_date32(value.type):
        unit, infinite = "D", 2**31 - 1
    elif pa.types.is_timestamp(value.type):
        unit, infinite = value.type.unit, INFINITE
    else:
        return None
    if abs(value.value) == infinite:
        return "infinity" if value.value > 0 else "-infinity"
    written = str(np.int64(value.value).astype(f"datetime64[{unit}]"))
    year, month, rest = written.rsplit("-", 2)
    day, _, time = rest.partition("T")
    time = time.rstrip("0").rstrip(".") if "." in time else time
    era = "" if int(year) > 0 else " (BC)"
    date = f"{int(year) if int(year) > 0 else 1 - int(year):04}-{month}-{day}{era}"
    return f"{date} {time}" if time else date
