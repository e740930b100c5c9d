"""The few ways in which rows of a partition change. A log in front of a partition has to record nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from secateur.errors import ProgrammingError

__all__ = ["ChangeCount", "Operation", "load_mode"]


class Operation(StrEnum):
    """What happens to the rows given. The first three are also the modes of a load."""

    APPEND = "append"
    """Add rows; a key that is already there is an error."""

    OVERWRITE = "overwrite"
    """Replace everything by the rows given; a key that is given twice is an error."""

    UPSERT = "upsert"
    """Add rows, or replace those with the same key; of a key that is given twice the last row wins."""

    DELETE = "delete"
    """Remove the rows with the keys given; keys that are not there are ignored. Loads of DELETE statements have this mode, those of users do not."""


@dataclass(slots=True)
class ChangeCount:
    """Changes of a table on this member so far; a thing of its own, so that partitions need not refer to their table and a dropped table is freed at once."""

    total: int = 0


def load_mode(text: str) -> Operation:
    """Read the mode of a load.

    Raises:
        ProgrammingError: It is none of ``append``, ``overwrite`` and ``upsert``.
    """
    try:
        operation = Operation(text)
    except ValueError:
        operation = Operation.DELETE
    if operation is Operation.DELETE:
        raise ProgrammingError(f"load mode {text!r} does not exist; use 'append', 'overwrite' or 'upsert'")
    return operation
