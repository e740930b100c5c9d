"""Columns of floats as decimals: of each the number that it is the nearest float of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.decimals import unscaled


def decimals_of_floats(type_: SqlType) -> Callable[[pa.Array], pa.Array]:
    """Return the conversion of float arrays to DECIMAL or HUGEINT.

    19.99 has no float of its own, and everybody who writes 19.99 as a float means it. So a float is the decimal of the
    column's scale of which it is the nearest float, as for :mod:`~secateur.partitioning.types.coerce`, which decides
    about numbers of more digits than all floats tell apart, and raises a DataError for a float that is none.

    Cost: some 30 ns a value, and 2 us for one with many digits.
    """
    scale, power = type_.scale, 10.0**type_.scale

    def convert(array: pa.Array) -> pa.Array:
        floats = array.fill_null(0).to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore", invalid="ignore"):
            units = np.rint(floats.astype(np.float64) * power)
            # Two numbers of so few digits are never the same float.
            digits_max = min(type_.precision or 38, np.finfo(floats.dtype).precision)
            is_plain = np.abs(units) < 10.0**digits_max
            is_plain &= (units / power).astype(floats.dtype) == floats
        words = np.zeros((len(floats), 2), "<i8")
        words[is_plain, 0] = units[is_plain].astype(np.int64)
        words[:, 1] = words[:, 0] >> 63
        for row in np.flatnonzero(~is_plain).tolist():
            number = coerce(floats[row], type_)
            whole = number if type_.kind is TypeKind.HUGEINT else unscaled(number, scale)
            words[row] = np.frombuffer(whole.to_bytes(16, "little", signed=True), "<i8")
        values = pa.Array.from_buffers(type_.arrow, len(floats), [None, pa.py_buffer(words)])
        return values if not array.null_count else pc.if_else(array.is_valid(), values, pa.scalar(None, type_.arrow))

    return convert
