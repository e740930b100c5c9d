"""The distance between two values of a column, as far as estimates need it."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

_INTEGER_MAX: Final = 10**300


def distance(start: Any, stop: Any) -> float | None:
    """Return the distance from one value to another; None unless both are numbers or both are moments."""
    start, stop = _comparable(start), _comparable(stop)
    if start is None or stop is None or isinstance(start, datetime) is not isinstance(stop, datetime):
        return None
    between = stop - start
    return between.total_seconds() if isinstance(between, timedelta) else float(between)


def _comparable(value: Any) -> Any:
    """Return a number, in which decimals are rounded, or a naive moment; None for anything else.

    The rounding does not matter to an estimate.
    """
    match value:
        case bool():
            return None
        case int():
            return value if abs(value) < _INTEGER_MAX else None
        case float() | Decimal():
            number = float(value)
            return number if math.isfinite(number) else None
        case datetime():
            return value.replace(tzinfo=None)
        case date():
            return datetime.combine(value, time())
        case _:
            return None
