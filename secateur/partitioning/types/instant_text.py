"""Days and instants that Python's calendar lacks, as DuckDB writes them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def instant_text(value: pa.Scalar) -> str | None:
    """An Arrow day or timestamp for a message: ``infinity``, ``10000-01-01``, ``0044-03-15 (BC)``; None for others."""
    if pa.types.is_date32(value.type):
        unit, infinite = "D", 2**31 - 1
    elif pa.types.is_timestamp(value.type):
        unit, infinite = value.type.unit, 2**63 - 1
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
