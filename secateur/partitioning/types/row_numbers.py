"""Numbers of rows as Arrow wants them, over the memory of numpy.

``pyarrow.array`` loads pandas, if it is installed, to find out whether it was given some of it: 0.4 s of processor time
in a fresh process, such as a worker of Spark, and memory for as long as the process lives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def row_numbers(values: npt.NDArray[Any]) -> pa.Array:
    """Integers of numpy as an Arrow array of the same width, none of them NULL.

    The array shares the memory of contiguous integers, which must not change any more.
    """
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))]
    )
