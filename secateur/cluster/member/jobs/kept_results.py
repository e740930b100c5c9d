"""The results of ended jobs, kept by the member that coordinated them until they are fetched or displaced."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from secateur.errors import LimitExceededError

_COUNT_MAX: Final = 256
_BYTES_MAX: Final = 256 << 20


class KeptResults:
    """The newest results, bounded by number and bytes.

    The newest one is kept whatever its size, which ``JobConfig.result_bytes_max`` bounds.
    """

    def __init__(self, count_max: int = _COUNT_MAX, bytes_max: int = _BYTES_MAX) -> None:
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._results: OrderedDict[str, Mapping[str, pa.Table]] = OrderedDict()

    def keep(self, job_id: str, tables: Mapping[str, pa.Table]) -> None:
        """Keep the rows of a job, by sink, and drop the oldest that are too many.

        Those of an earlier attempt of the job are replaced.
        """
        self._bytes -= _size(self._results.pop(job_id, {}))
        self._results[job_id] = tables
        self._bytes += _size(tables)
        while len(self._results) > 1 and (len(self._results) > self._count_max or self._bytes > self._bytes_max):
            _, dropped = self._results.popitem(last=False)
            self._bytes -= _size(dropped)

    def find(self, job_id: str) -> Mapping[str, pa.Table] | None:
        """The rows of a job, by sink; None if they were dropped, or this process never had them."""
        return self._results.get(job_id)

    def tables(self, job_id: str) -> Mapping[str, pa.Table]:
        """The rows of a job, by sink.

        Raises:
            LimitExceededError: They were dropped.
        """
        found = self.find(job_id)
        if found is None:
            raise LimitExceededError(
                f"the result of job {job_id} was dropped: a member keeps the newest {self._count_max} results, up to"
                f" {self._bytes_max:,} bytes, for as long as its process lives; submit the job again, and fetch it"
                " sooner, or write it to a sink",
                job=job_id,
            )
        return found


def _size(tables: Mapping[str, pa.Table]) -> int:
    return sum(table.nbytes for table in tables.values())
