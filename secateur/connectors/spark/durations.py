"""Intervals of secateur as Spark's, which have a length: INTERVAL DAY TO SECOND."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from secateur.partitioning.types.arrow_layout import interval_cells, map_leaves

_DAY_MICROS: Final = 86_400_000_000


def with_durations(values: pa.Array) -> pa.Array:
    """Values with :func:`durations` in place of the intervals inside of them.

    Raises:
        ArrowInvalid: As there.
    """
    return map_leaves(values, durations)


def durations(values: pa.Array) -> pa.Array:
    """Intervals as microseconds, as Spark has them: a day has 24 hours, as where SQL compares. Others as they are.

    Raises:
        ArrowInvalid: One has months, or its microseconds take more than 64 bits.
    """
    if not pa.types.is_interval(values.type):
        return values
    is_null = values.is_null().to_numpy(zero_copy_only=False)
    cells = interval_cells(values)
    if (cells["months"][~is_null] != 0).any():
        raise pa.ArrowInvalid("it has months, which have no length in days")
    days, micros = cells["days"].astype(np.int64), cells["nanoseconds"] // 1000
    total = days * _DAY_MICROS + micros
    # What does not fit is off by a multiple of 2^64, and the nearest float by less than 2^20.
    if (np.abs(total - (days.astype(float) * _DAY_MICROS + micros))[~is_null] > 2.0**62).any():
        raise pa.ArrowInvalid("it is longer than 292,000 years")
    return pa.array(total, mask=is_null).view(pa.duration("us"))
