"""Whether a statement of many parts is gathered or runs in stages: a cost model of the two forms.

What differs between them is the time beyond what DuckDB takes over its own tables. A statement that is gathered pays
for each byte that moves, once, and for each reference to a table in the one kernel call that joins them. A statement in
stages pays for each reference at every member, in kernels that know how many rows an input has but nothing of their
values, and for what its stages send each other, which filters and co-location may leave little of.

The constants are of three members on two cores: statements of TPC-DS at scale factor 0.1 and of TPC-H at scale factor 1
ran in both forms by turns, in one process and, q02 and q11 of TPC-H, as Ray actors; what they took beyond DuckDB was
fitted to what the planner knows of them. More members raise the cost of a statement in stages, more cores lower it.

Source: plans weighed by their work and by what they send, as in System R* (Mackert and Lohman, 1986).
"""

from __future__ import annotations

from typing import Final

__all__ = ["GATHERED_BYTES_MAX", "GATHERED_PARTS_MIN", "gathered_ms", "placed_ms"]

GATHERED_BYTES_MAX: Final = 64e6
"""Bytes of a statement that is gathered for its cost alone. One member holds them, as they come and for its kernel."""
GATHERED_PARTS_MIN: Final = 8
"""References to tables and queries, together, from which on a statement is one of many parts. A statement of fewer has
few stages, and the two forms differ by less than the estimates are wrong."""

_GATHERED_MS: Final = 10.0
"""To send rows at all, and to join them elsewhere."""
_GATHERED_MS_PER_BYTE: Final = 1.9e-6
"""1.05 ms a megabyte within one process, 1.9 between Ray actors: a byte is written, checked and copied."""
_GATHERED_MS_PER_PART: Final = 0.7
_PLACED_MS_PER_PART: Final = 5.0
"""4.8 within one process, 5.2 between Ray actors, at three members together."""
_SENT_MS_PER_BYTE: Final = 2.5e-6
"""1.7 to 4.6 ms a megabyte in single statements: a kernel makes these bytes, and the next joins them without
statistics."""


def gathered_ms(nbytes: float, parts: int) -> float:
    """What it costs to gather a statement, in milliseconds.

    Args:
        nbytes: Bytes that its scans send.
        parts: References to tables and queries in it.
    """
    return _GATHERED_MS + _GATHERED_MS_PER_BYTE * nbytes + _GATHERED_MS_PER_PART * parts


def placed_ms(sent: float, parts: int) -> float:
    """What it costs to run a statement in stages, as :func:`gathered_ms`.

    Args:
        sent: Bytes that its stages send; 0 gives a lower bound, for a statement that has not been placed yet.
        parts: As there.
    """
    return _PLACED_MS_PER_PART * parts + _SENT_MS_PER_BYTE * sent
