"""The functions that tell the time at which a statement began, and how they follow from one instant.

A statement that reads the clock has that instant as its last parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CLOCKS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("now", "current_timestamp", "get_current_timestamp", "transaction_timestamp"), ()),
    **dict.fromkeys(("current_date", "today"), ("DATE",)),
    **dict.fromkeys(("localtimestamp", "current_localtimestamp"), ("TIMESTAMP",)),
    **dict.fromkeys(("localtime", "current_localtime"), ("TIMESTAMP", "TIME")),
    **dict.fromkeys(("current_time", "get_current_time"), ("TIMETZ",)),
}
"""The functions of the clock, by their names, and the casts by which each follows from a TIMESTAMPTZ."""
