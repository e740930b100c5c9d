"""Tables and batches without rows.

Arrow's own ``Schema.empty_table()`` makes each column from an empty list, which fails for some nested types, such as
lists of UUIDs.
"""

from __future__ import annotations

import pyarrow as pa


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch of these columns without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def empty_table(schema: pa.Schema) -> pa.Table:
    """A table of these columns without rows."""
    return pa.Table.from_batches([empty_batch(schema)])
