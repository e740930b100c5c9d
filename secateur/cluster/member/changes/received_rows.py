"""Rows that clients and members send, checked and copied on the event loop if they are few, in a thread otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa

from secateur.storage.gather import gather
from secateur.wire import decode_table

_INLINE_BYTES_MAX: Final = 1 << 20
"""Texts of so many bytes are checked in about 200 us, as long as a thread takes to wake up."""
_OWN_BYTES_MAX: Final = 4096
"""So few bytes are copied out of what was received with them: rows that are kept as they came keep no more alive."""
_SHARED_BYTES_MAX: Final = 1 << 20
"""A frame of more bytes does not wait as a whole until the last of its partitions is sorted. Copying takes about a
millisecond for each MiB, which the rows of a statement do not pay.
"""


async def received_rows(payload: memoryview) -> pa.Table:
    """The rows of a request. The caller has checked that they belong here.

    Raises:
        ProtocolError, LimitExceededError: As :func:`~secateur.wire.decode_table`.
    """
    if len(payload) <= _OWN_BYTES_MAX:
        return decode_table(bytes(payload))
    if len(payload) <= _INLINE_BYTES_MAX:
        return decode_table(payload)
    return await asyncio.to_thread(decode_table, payload)


async def pieces_to_keep(rows: pa.Table, parts: Sequence[Sequence[int]]) -> dict[int, pa.Table]:
    """The rows of each partition, of a frame whose rows will wait for the publication of a load.

    Those of a large frame are copied: as slices of the frame, the rows of its last partition would keep all of them.

    Args:
        rows: The rows of the frame.
        parts: Each partition with its number of rows, in their order.
    """
    pieces = dict(_slices(rows, parts))
    if len(pieces) == 1 or rows.get_total_buffer_size() <= _SHARED_BYTES_MAX:
        return pieces
    return await asyncio.to_thread(
        lambda: {partition: gather([piece], at_rest=True) for partition, piece in pieces.items()}
    )


def _slices(rows: pa.Table, parts: Sequence[Sequence[int]]) -> Iterable[tuple[int, pa.Table]]:
    start = 0
    for partition, count in parts:
        yield partition, rows.slice(start, count)
        start += count
