"""Integers and decimals as DOUBLE, where every way of converting gives the same one."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from secateur.engine.kernels.arrow.exact_values import InexactError
from secateur.partitioning.types.decimals import DOUBLE_INTEGER_MAX

SCALE_MAX: Final = 22
"""Powers of ten up to this one are exact doubles; a division by them is therefore rounded once."""


def to_double(decimals: Any) -> Any:
    """Convert ``decimal128`` values to ``float64``, each to the nearest; NULL stays NULL.

    Args:
        decimals: An Array or ChunkedArray of ``decimal128(p, s)`` with s up to :data:`SCALE_MAX`.

    Raises:
        InexactError: A value has more digits than a DOUBLE, and how it is rounded is DuckDB's affair.
    """
    if isinstance(decimals, pa.ChunkedArray):
        return pa.chunked_array([to_double(chunk) for chunk in decimals.chunks], pa.float64())
    filled = decimals.fill_null(0)
    words = np.frombuffer(filled.buffers()[1], "<i8", count=2 * len(filled), offset=16 * filled.offset).reshape(-1, 2)
    low, high = words[:, 0], words[:, 1]
    if (high != low >> 63).any():  # the upper half is more than the sign of the lower
        raise InexactError("a number that no DOUBLE holds")
    nulls = decimals.is_null().to_numpy(zero_copy_only=False) if decimals.null_count else None
    return pa.array(held_by_double(low) / float(10**decimals.type.scale), pa.float64(), mask=nulls)


def held_by_double(integers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Convert integers to ``float64``.

    Raises:
        InexactError: One is not a DOUBLE.
    """
    if len(integers) and (integers.max() > DOUBLE_INTEGER_MAX or integers.min() < -DOUBLE_INTEGER_MAX):
        raise InexactError("an integer that no DOUBLE holds")
    return integers.astype(np.float64)
