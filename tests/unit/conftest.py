"""What tests of every room measure with."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from secateur.partitioning.schemes import no_garbage_collection


@pytest.fixture
def allocated() -> Iterator[Callable[[], int]]:
    """Bytes that Arrow has allocated since the test began.

    The count is that of the process. What earlier tests left in cycles is freed before, and none is while the test
    runs: it would be subtracted; and what the test drops must be free at once.
    """
    gc.collect()
    with no_garbage_collection():
        before = pa.total_allocated_bytes()
        yield lambda: pa.total_allocated_bytes() - before
