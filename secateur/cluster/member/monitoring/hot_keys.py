"""The hottest values of the partitioning keys, from a sample of the statements, gets and writes of a member.

One in some of them is looked at, at random distances, so that a client which does the same things in the same order
again and again is not always met at the same one: to count every key would cost a hash table on the path of statements
that take some tens of microseconds. All others pay for one decrement: each place that samples does

.. code-block:: python

    hot_keys.left -= 1
    if not hot_keys.left:
        hot_keys.note_...(...)
"""

from __future__ import annotations

import itertools
import math
import random
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
import pyarrow as pa

from secateur.engine.sql.select_plan import ScanPlan, SelectPlan
from secateur.errors import NoRangeError
from secateur.partitioning.pruning.domain import EVERYTHING
from secateur.partitioning.pruning.nodes import boxes_of
from secateur.partitioning.schemes.components import ROW_ID
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.membership import GetHotKeys, HotKey, HotKeys, HotTable
from secateur.storage.delta import FewRows
from secateur.wire import Reply, Request

_COUNTERS_MAX: Final = 64
"""Every key with more than a sixtieth of the look-ups of a table has a counter."""
_SHOWN_MAX: Final = 20
_SAMPLED_MAX: Final = 4096
"""Keys of a table after which the counts are halved: a share is known to some percent, and a key that has cooled down
is forgotten after some thousands.
"""
_TABLES_MAX: Final = 256
_KEYS_OF_STATEMENT_MAX: Final = 64
"""A statement that names more keys does not tell which of them is hot."""
_KEY_BYTES_MAX: Final = 256
"""A key with a longer text is not counted, so that the counters stay small."""
_NEVER: Final = -1

_Key: TypeAlias = tuple[Any, ...]
V = TypeVar("V", bound=Hashable)


class HotKeySampler:
    """Counts keys, and answers ``get_hot_keys``. Lives on the event loop of a member.

    Args:
        find: A table by its id; None for one that is not here any more.
        every: One in so many is looked at, on average; 0: none.
        seed: Decides the distances between them.

    Attributes:
        left: How many are still let pass, the one that is looked at included.
    """

    def __init__(self, find: Callable[[int], TableDef | None], every: int, seed: str) -> None:
        self._find = find
        self._every = every
        self._random = random.Random(seed)
        self._tables: OrderedDict[int, SpaceSaving[_Key]] = OrderedDict()
        self.left = self._distance()

    def executed(self, plan: SelectPlan, params: Sequence[Any]) -> None:
        """A statement was executed, as :meth:`note_statement` knows it: let it pass, or count its keys."""
        self.left -= 1
        if not self.left:
            self.note_statement(plan, params)

    def note_statement(self, plan: SelectPlan, params: Sequence[Any]) -> None:
        """Count the keys that a statement names.

        Args:
            plan: Its plan.
            params: Its parameters, with the values of its expressions behind them.
        """
        self.left = self._distance()
        for scan in plan.scans:
            table = None if scan.is_fetched or scan.replicated else self._find(scan.table_id)
            if table is not None and _has_keys(table):
                self._count(table, _named_keys(scan, table, params))

    def note_key(self, table: TableDef, key: Sequence[Any]) -> None:
        """Count a primary key that is read or changed.

        Args:
            table: Its table.
            key: The values of all its columns, canonical.
        """
        self.left = self._distance()
        if _has_keys(table):
            self._count(table, [tuple(key[table.primary_key.index(name)] for name in table.scheme.columns)])

    def note_rows(self, table: TableDef, rows: FewRows | pa.Table) -> None:
        """Count the keys of rows that are written, or of keys that are deleted, if they are few.

        Args:
            table: Their table.
            rows: The rows, which the table has accepted.
        """
        self.left = self._distance()
        if not isinstance(rows, FewRows) or not _has_keys(table):
            return
        names = [column.name for column in rows.form.columns]
        columns = [rows.columns[names.index(name)] for name in table.scheme.columns]
        self._count(table, list(zip(*columns, strict=True)))

    def send(self, _: Request[GetHotKeys]) -> Reply[HotKeys]:
        """The hottest keys of each table."""
        found = []
        for table_id, counted in list(self._tables.items()):
            table = self._find(table_id)
            if table is None:
                del self._tables[table_id]
                continue
            keys = [_told(table, one) for one in counted.values()[:_SHOWN_MAX]]
            found.append(HotTable(table_id, counted.total, keys))
        return Reply(HotKeys(found))

    def _distance(self) -> int:
        return self._random.randint(1, 2 * self._every - 1) if self._every else _NEVER

    def _count(self, table: TableDef, keys: Sequence[_Key]) -> None:
        if not keys:
            return
        counted = self._tables.get(table.table_id)
        if counted is None:
            counted = self._tables[table.table_id] = SpaceSaving(_COUNTERS_MAX, _SAMPLED_MAX)
            if len(self._tables) > _TABLES_MAX:
                self._tables.popitem(last=False)
        self._tables.move_to_end(table.table_id)
        for key in keys:
            if all(map(_is_kept, key)):
                counted.add(key)


def _has_keys(table: TableDef) -> bool:
    """Whether the rows of a table are placed by columns of their primary key."""
    return bool(table.scheme.columns) and table.is_placed_by_key and ROW_ID not in table.scheme.columns


def _is_kept(value: Any) -> bool:
    """Whether a value is short, and neither NULL nor a text that UTF-8 cannot carry, which are in no row."""
    if value is None:
        return False
    if isinstance(value, str):
        try:
            return len(value.encode()) <= _KEY_BYTES_MAX
        except UnicodeEncodeError:
            return False
    return not isinstance(value, bytes) or len(value) <= _KEY_BYTES_MAX


def _named_keys(scan: ScanPlan, table: TableDef, params: Sequence[Any]) -> Sequence[_Key]:
    """The values of the partitioning key that a scan looks for; nothing if it does not name a short list of them."""
    found = _searched_keys(scan, table, params) or _keys_of_tree(scan, params)
    return found if len(found) <= _KEYS_OF_STATEMENT_MAX else ()


def _searched_keys(scan: ScanPlan, table: TableDef, params: Sequence[Any]) -> Sequence[_Key]:
    """The keys that a search in the sorted rows looks for, literals of the statement included."""
    direct = scan.keys.direct
    if direct is None:
        return ()
    positions = [table.primary_key.index(name) for name in table.scheme.columns]
    prefixes = direct.prefixes(params) or [tuple(key.bind(params) for key in direct.prefix)]
    if max(positions) >= len(prefixes[0]):
        return ()
    keys = dict.fromkeys(tuple(prefix[position] for position in positions) for prefix in prefixes)
    return [] if any(None in key for key in keys) else list(keys)


def _keys_of_tree(scan: ScanPlan, params: Sequence[Any]) -> Sequence[_Key]:
    """The keys that the partition tree names, with the parameters of the statement bound."""
    scheme = scan.tree.scheme
    types = dict(scheme.types)
    found: dict[_Key, None] = {}
    for box in boxes_of(scan.tree.root):
        domains = box.resolve(params, types)
        of_key = [domains.get(name, EVERYTHING) for name in scheme.columns]
        if not all(domain.is_finite for domain in of_key):
            return ()
        if math.prod(len(domain.points) for domain in of_key) + len(found) > _KEYS_OF_STATEMENT_MAX:
            return ()
        found.update(dict.fromkeys(itertools.product(*(domain.points for domain in of_key))))
    return list(found)


def _told(table: TableDef, one: FrequentValue[_Key]) -> HotKey:
    key = dict(zip(table.scheme.columns, one.value, strict=True))
    try:
        partition = table.scheme.partition_of(key)
    except NoRangeError:
        partition = None
    return HotKey(msgspec.json.encode(key).decode(), partition, one.times, one.error)


class FrequentValue(NamedTuple, Generic[V]):
    """A value that has a counter.

    Attributes:
        value: The value.
        times: It has come at most so often,
        error: and at least so many times less: those that were counted before it got the counter.
    """

    value: V
    times: int
    error: int


class SpaceSaving(Generic[V]):
    """Counts values with few counters: a value without one takes over the smallest.

    Each value that makes up more than ``1 / counters_max`` of the stream has a counter, and none is counted too low.

    Args:
        counters_max: Counters.
        total_max: Values after which all counts are halved, so that what was frequent once is forgotten.

    Attributes:
        total: Values that have come, halved as the counts are.

    Source: Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams", ICDT
        2005.
    """

    def __init__(self, counters_max: int, total_max: int) -> None:
        self._counters_max = counters_max
        self._total_max = total_max
        self._counts: dict[V, int] = {}
        self._errors: dict[V, int] = {}
        self.total = 0

    def add(self, value: V) -> None:
        """Count a value. Costs a fraction of a microsecond, and for one without a counter a look at all counters."""
        counts = self._counts
        if value in counts:
            counts[value] += 1
        elif len(counts) < self._counters_max:
            counts[value], self._errors[value] = 1, 0
        else:
            smallest = min(counts, key=counts.__getitem__)
            count = counts.pop(smallest)
            del self._errors[smallest]
            counts[value], self._errors[value] = count + 1, count
        self.total += 1
        if self.total >= self._total_max:
            self._halve()

    def values(self) -> list[FrequentValue[V]]:
        """The values that have a counter, the most frequent first."""
        found = [FrequentValue(value, count, self._errors[value]) for value, count in self._counts.items()]
        return sorted(found, key=lambda one: -one.times)

    def _halve(self) -> None:
        self._errors = {value: self._errors[value] // 2 for value, count in self._counts.items() if count > 1}
        self._counts = {value: count // 2 for value, count in self._counts.items() if count > 1}
        self.total //= 2
