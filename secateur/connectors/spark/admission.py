"""The size of the batches of a streaming read: the limits of Spark 4.2 and later.

Spark 4.1 has none: its streams take all that there is with every batch, and an option that limits them is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from secateur.errors import NotSupportedError

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # Spark 4.1
    ReadAllAvailable = ReadMaxBytes = ReadMaxRows = None
    SupportsTriggerAvailableNow = object

__all__ = ["BatchLimit", "SupportsTriggerAvailableNow"]


@dataclass(frozen=True, slots=True)
class BatchLimit:
    """About so many rows, or bytes of rows, are wanted with a batch.

    Attributes:
        size_max: The number.
        in_rows: Whether it is one of rows.
    """

    size_max: int
    in_rows: bool

    @classmethod
    def of_spark(cls, limit: Any) -> BatchLimit | None:
        """Read the limit that Spark gives to a batch; None for none, and from a Spark without limits."""
        if ReadMaxRows is not None and isinstance(limit, ReadMaxRows):
            return cls(limit.max_rows, in_rows=True)
        if ReadMaxBytes is not None and isinstance(limit, ReadMaxBytes):
            return cls(limit.max_bytes, in_rows=False)
        return None

    @staticmethod
    def to_spark(limit: BatchLimit | None) -> Any:
        """The limit as Spark has it.

        Raises:
            NotSupportedError: This Spark has none.
        """
        if ReadMaxRows is None:
            if limit is None:
                return None
            raise NotSupportedError(
                "options maxRowsPerTrigger and maxBytesPerTrigger need Spark 4.2 or later: this one takes all changes"
                " that there are with every batch; leave them out"
            )
        if limit is None:
            return ReadAllAvailable()
        return ReadMaxRows(limit.size_max) if limit.in_rows else ReadMaxBytes(limit.size_max)
