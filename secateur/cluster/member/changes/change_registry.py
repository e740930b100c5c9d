"""The recent changes of a member, by the ids that clients gave them, so that a repeated request is not applied twice.

A client whose connection breaks cannot know whether its ``UPDATE t SET v = v + 1`` was carried out. It sends the
request again under the same id: the primary knows whether it made the change, and a backup that replaced it has the id
with the copy of the rows. A known change is not acknowledged at once: a repeated request waits, as the first one did,
until all copies have it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Container
from typing import Final, TypeAlias

import msgspec

_KEPT_MAX: Final = 50_000
"""Some 15 MB; at several thousand writes a second still longer than a client asks again."""

ChangeKey: TypeAlias = tuple[int, int, str]
"""Table, partition, and the id that the client gave."""


class RecordedChange(msgspec.Struct, frozen=True, gc=False):
    """A change that was made here.

    Attributes:
        rows: Rows written or removed.
        sequence: Its number among those of its partition; 0 when there was nothing to change.
    """

    rows: int
    sequence: int


class ChangeRegistry:
    """The changes made, of which the oldest are dropped first. Lives on the member's event loop.

    Args:
        kept_max: Changes kept.
    """

    def __init__(self, kept_max: int = _KEPT_MAX) -> None:
        self._known: OrderedDict[ChangeKey, RecordedChange | asyncio.Future[RecordedChange]] = OrderedDict()
        self._kept_max = kept_max

    async def once(self, key: ChangeKey, make: Callable[[], Awaitable[RecordedChange]]) -> RecordedChange:
        """Make a change, unless it was made before; if it is being made, wait for its outcome.

        Args:
            key: Which change.
            make: Makes the change. When it raises, nothing was changed, and asking again tries again.

        Raises:
            Error: As ``make``.
        """
        known = self._known.get(key)
        if known is not None:
            return known if isinstance(known, RecordedChange) else await asyncio.shield(known)
        making = asyncio.get_running_loop().create_future()
        self.note(key, making)
        try:
            made = await make()
        except BaseException as error:
            self._known.pop(key, None)
            _fail(making, error)
            raise
        self.note(key, made)
        making.set_result(made)
        return made

    def is_new(self, key: ChangeKey) -> bool:
        """Whether a change was not made, nor is being made, as far as that is remembered."""
        return key not in self._known

    def made(self, key: ChangeKey) -> RecordedChange | None:
        """A change that was made, as far as that is remembered."""
        known = self._known.get(key)
        return known if isinstance(known, RecordedChange) else None

    def of_partitions(self, table_id: int, partitions: Container[int]) -> dict[int, list[tuple[str, RecordedChange]]]:
        """The changes that were made to some partitions of a table, by partition, with their ids, oldest first.

        Costs 5 ms at most, when as many are known as are kept.
        """
        found: defaultdict[int, list[tuple[str, RecordedChange]]] = defaultdict(list)
        for (table, partition, change_id), known in self._known.items():
            if table == table_id and partition in partitions and isinstance(known, RecordedChange):
                found[partition].append((change_id, known))
        return dict(found)

    def all_made(self) -> list[tuple[ChangeKey, RecordedChange]]:
        """All changes that were made, as far as they are remembered, the oldest first."""
        return [(key, known) for key, known in self._known.items() if isinstance(known, RecordedChange)]

    def succeed(self, before: int, after: int) -> None:
        """A table has another id: what was made under the one before is known under that one.

        Costs 10 ms at most, when as many changes are known as are kept.
        """
        known = [(key, made) for key, made in self._known.items() if key[0] == before]
        for key, made in known:
            if isinstance(made, RecordedChange):
                del self._known[key]
                self._known[(after, *key[1:])] = made

    def note(self, key: ChangeKey, made: RecordedChange | asyncio.Future[RecordedChange]) -> None:
        """Remember a change that was made, here or as the copy of another member's, or is being made."""
        self._known[key] = made
        if len(self._known) > self._kept_max:
            self._known.popitem(last=False)


def _fail(making: asyncio.Future[RecordedChange], error: BaseException) -> None:
    if isinstance(error, asyncio.CancelledError):
        making.cancel()
        return
    making.set_exception(error)
    making.exception()  # looked at: mostly nobody else waits for it
