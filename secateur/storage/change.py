"""The operations that change rows of a partition; a log of a partition needs to record nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum, StrEnum
from typing import Final, assert_never

from secateur.errors import ProgrammingError

MIXED: Final = "mixed"
"""The mode of a load that removes, replaces and adds rows at once, as MERGE does. An attempt's number is then its
operation: :class:`MixedAttempt`."""


class DuplicateKeys(Enum):
    """The treatment of a key that occurs twice."""

    REFUSED = "refused"
    FIRST_WINS = "first wins"
    LAST_WINS = "last wins"


class ChangeOperation(StrEnum):
    """The operation on the given rows. All but the last are also modes of a load."""

    APPEND = "append"
    """Add rows; a key that is already there is an error."""

    OVERWRITE = "overwrite"
    """Replace everything by the rows given; a key that is given twice is an error."""

    OVERWRITE_RANGES = "overwrite_ranges"
    """Replace everything in the partitions named; a key that is given twice is an error.

    The controller names all partitions of each range that gets rows; without rows, they become empty.
    """

    UPSERT = "upsert"
    """Add rows, or replace those with the same key; of a key that is given twice the last row wins."""

    IGNORE = "ignore"
    """Add rows whose key is not there, leave out the others; of a key that is given twice the first row counts."""

    DELETE = "delete"
    """Remove the rows with the keys given; keys that are not there are ignored.

    Loads of DELETE statements have this mode, those of users do not.
    """

    @property
    def repeats(self) -> DuplicateKeys:
        """The treatment of a key that occurs twice."""
        match self:
            case ChangeOperation.APPEND | ChangeOperation.OVERWRITE | ChangeOperation.OVERWRITE_RANGES:
                return DuplicateKeys.REFUSED
            case ChangeOperation.IGNORE:
                return DuplicateKeys.FIRST_WINS
            case ChangeOperation.UPSERT | ChangeOperation.DELETE:
                return DuplicateKeys.LAST_WINS
            case _:
                assert_never(self)

    @property
    def replaces_all(self) -> bool:
        """Whether the rows that a partition had before do not matter."""
        return self in (ChangeOperation.OVERWRITE, ChangeOperation.OVERWRITE_RANGES)


class MixedAttempt(IntEnum):
    """The operation on the rows of an attempt of a mixed load; attempts are applied in this order."""

    REMOVED = 0
    """They are keys: the rows with these keys go."""
    ADDED = 1
    """They are new: a key that is there, and not removed by the same load, is an error."""
    REPLACED = 2
    """They replace the rows with the same keys."""


@dataclass(slots=True)
class ChangeCount:
    """Counts the changes of a table on this member.

    It is a separate object, so that partitions need not refer to their table and a dropped table is freed at once.
    """

    total: int = 0
    rows: int = 0
    """Rows that were written or removed one by one, and not by loads."""
    unfolded: set[int] = field(default_factory=set)
    """Partitions that were written so since :class:`~secateur.storage.fold_queue.FoldQueue` looked at them."""


_OPERATIONS: Final = {operation.value: operation for operation in ChangeOperation}


def change_operation(text: str) -> ChangeOperation:
    """As :func:`load_mode`, and ``delete``."""
    return _OPERATIONS.get(text) or load_mode(text)


def load_mode(text: str) -> ChangeOperation:
    """Read the mode of a load.

    Raises:
        ProgrammingError: It is none of ``append``, ``overwrite``, ``overwrite_ranges``, ``upsert`` and ``ignore``.
    """
    operation = _OPERATIONS.get(text)
    if operation is None or operation is ChangeOperation.DELETE:
        raise ProgrammingError(
            f"load mode {text!r} does not exist; use 'append', 'overwrite', 'overwrite_ranges', 'upsert' or 'ignore'"
        )
    return operation
