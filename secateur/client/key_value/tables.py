"""A table as reads and writes by key see it: its primary key, its newest known definition, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from msgspec.structs import replace

from secateur.client.session import Session
from secateur.errors import (
    DataError,
    DeadlineError,
    IntegrityError,
    MemberLostError,
    NullKeyError,
    ParameterError,
    ProgrammingError,
    UnreachableError,
)
from secateur.partitioning.tables.row_ids import check_has_key
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.coerce import coerce, uncertain_finder
from secateur.protocol.statements import ResultColumn
from secateur.wire import CallControl, short_check, travels_short

_PLAIN: Final = frozenset({int, str})
"""The usual keys, which are told by their types: to ask whether one is a Mapping takes longer."""


class RowKeys:
    """Reads the keys of one table. Made once per definition of the table.

    Args:
        table: The table.

    Raises:
        ProgrammingError: It has no primary key.

    Attributes:
        definition: The table.
        group: The affinity group of its partitions; empty for a replicated table.
        result_columns: Its columns, as those of a result.
        types: The types of its columns.
        takes_values: Whether plain values represent these completely.
        uncertain: Finds the first column of rows with a value that is perhaps not canonical.
        is_short: Whether texts in columns of rows are short enough to be sent as plain values.
    """

    __slots__ = (
        "_columns",
        "_names",
        "_partition_of",
        "definition",
        "group",
        "is_short",
        "result_columns",
        "takes_values",
        "types",
        "uncertain",
    )

    def __init__(self, table: TableDef) -> None:
        check_has_key(table, "get, put and delete cannot find its rows")
        self.definition = table
        self.group = "" if table.replicated else table.scheme.affinity_group()
        self.result_columns = tuple(ResultColumn(column.name, str(column.type)) for column in table.columns)
        self.types = [column.type for column in table.columns]
        self.takes_values = travels_short(self.types)
        self.uncertain = uncertain_finder((column.type, column.nullable) for column in table.columns)
        self.is_short = short_check(self.types)
        self._columns: tuple[Column, ...] = tuple(table.column(name) for name in table.primary_key)
        self._names = table.primary_key
        self._partition_of = table.scheme.partition_function(table.primary_key)

    def read(self, key: Any) -> list[Any]:
        """The canonical values of a key, in key order.

        Args:
            key: The value of a key of one column; otherwise a tuple or list of values in key order; or, for both, a
                mapping of column names to values, without regard to case.

        Raises:
            ParameterError: Another number of values than the key has columns, or other names.
            DataError: A value that its column cannot hold; ``details`` has the column.
            NullKeyError: A value is NULL.

        Cost: a microsecond for each column.
        """
        columns = self._columns
        if len(columns) == 1 and (type(key) in _PLAIN or not isinstance(key, (Mapping, tuple, list))):
            values = [coerce(key, columns[0].type, column=columns[0].name)]
        else:
            given = self._named(key) if type(key) is not tuple and isinstance(key, Mapping) else key
            if not isinstance(given, (tuple, list)) or len(given) != len(columns):
                raise ParameterError(
                    f"the primary key of {self.definition.name} is ({', '.join(self._names)}): give a tuple of"
                    f" {len(columns)} values in this order, or a mapping of these names, not {key!r}",
                    table=self.definition.name,
                )
            values = [
                coerce(value, column.type, column=column.name) for value, column in zip(given, columns, strict=True)
            ]
        if None in values:
            name = self._names[values.index(None)]
            raise NullKeyError(
                f"table {self.definition.name}: column {name} is part of the primary key, and no row has NULL there",
                table=self.definition.name,
                column=name,
            )
        return values

    @property
    def names(self) -> list[str]:
        """The names of all columns, in their order."""
        return [column.name for column in self.definition.columns]

    def partition_of(self, values: list[Any]) -> int:
        """The partition of the row with a key that :meth:`read` has read.

        Raises:
            NoRangeError: No range holds it.
            UnknownRangesError: The ranges near it have to be fetched first.
        """
        if not self.group:
            return 0
        return self._partition_of(values)

    def _named(self, key: Mapping[str, Any]) -> list[Any]:
        given = {name.casefold(): value for name, value in key.items()}
        names = [name.casefold() for name in self._names]
        if given.keys() != set(names) or len(given) != len(key):
            raise ParameterError(
                f"the primary key of {self.definition.name} is ({', '.join(self._names)}), and the key has"
                f" ({', '.join(map(str, key))}): name each column of the key, and no other",
                table=self.definition.name,
            )
        return [given[name] for name in names]


R = TypeVar("R")

ServingGet: TypeAlias = Callable[[Session, CallControl, Any], Sequence[Any] | None]
"""A function from a session, what ends its request, and a key to the row of the key, or None, in a list; it returns
None where the general way has to read the key.
"""
_NOT_COMPILED: Final = None, None


class KeyTable:
    """One table in one session. Threads may share it: keys of a definition that is replaced stay what they are.

    Attributes:
        serving: What reads a row by its key, and the :attr:`Session.serving_calls` for which it was compiled.
    """

    __slots__ = ("_keys", "serving", "session")

    def __init__(self, session: Session, definition: TableDef) -> None:
        self.session = session
        self._keys = RowKeys(definition)
        self.serving: tuple[object, ServingGet | None] = _NOT_COMPILED

    @property
    def keys(self) -> RowKeys:
        """The newest definition that is known, and how its keys are read."""
        keys = self._keys
        if keys.definition.scheme.partial is not None:
            return RowKeys(replace(keys.definition))  # reads its reference again, which may have more ranges by now
        return keys

    def read(self, work: Callable[[RowKeys], R]) -> R:
        """Read what a user has given by the newest definition: again, if what is refused was read by an older one.

        Raises:
            Error: As ``work``; UnknownTableError: the table was dropped.
        """
        keys = self.keys
        try:
            return work(keys)
        except (ProgrammingError, DataError, IntegrityError):
            if not self.refresh(keys.definition):
                raise
            return work(self.keys)

    def owner(self, keys: RowKeys, partition: int) -> str:
        """The member that answers for a partition now.

        Raises:
            TopologyChangedError: The topology does not know the table.
            PartitionLostError: Every copy of it is lost.
            UnknownOwnersError: Its owners have to be fetched first.
        """
        if keys.group:
            return self.session.owner(keys.group, partition)
        topology = self.session.topology
        topology.check_any()
        members = topology.member_ids
        return members[self.session.turn() % len(members)]

    def refresh(self, used: TableDef, *, waits: bool = True) -> bool:
        """Fetch the definition again; whether it is another than the one used, which other threads may have replaced.

        Raises:
            UnknownTableError: The table was dropped.
            Error: The controller cannot be reached.
        """
        after = self.session.outlined_table(used.name, waits=waits)
        self._keys, self.serving = RowKeys(after), _NOT_COMPILED
        return (used.table_id, used.version) != (after.table_id, after.version)

    def refresh_if_possible(self) -> None:
        """As :meth:`refresh`; without a controller no table changes, so the definition stays.

        Raises:
            Error: As :meth:`refresh`, but for a controller that cannot be reached; or the statement was cancelled.
        """
        try:
            self.refresh(self._keys.definition, waits=False)
        except (UnreachableError, MemberLostError, DeadlineError):
            self.session.check_control()
