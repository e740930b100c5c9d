"""The changes that ALTER TABLE makes to a definition: functions from table to table.

A table with other columns is another table: it gets an id of its own, and everything that was made for the columns of
before (plans, staged rows, changes on their way) names an id that is not there any more, and so is refused instead of
being read by wrong columns. What identifies the table through its changes is its :attr:`~.table.TableDef.origin`.

No row is written anew for a column that comes, goes or is renamed: all partitions of a member share the values of a new
one (:mod:`secateur.storage.altered_rows`).

Source: the versions of a schema in "Online, Asynchronous Schema Change in F1" (Rae et al., 2013), without its
intermediate states: a change is one step here, since writes wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias, assert_never

from msgspec.structs import replace

from secateur.errors import SchemeError, UnknownColumnError
from secateur.partitioning.schemes.components import ROW_ID
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import EXACT_INTEGERS, SqlType, TypeKind
from secateur.partitioning.types.default_value import DefaultValue
from secateur.partitioning.types.literals import literal_sql


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A column comes behind all others; the rows that are there get its default, or NULL."""

    column: Column
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """A column goes, with its values."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """A column gets another name."""

    name: str
    to: str


@dataclass(frozen=True, slots=True)
class RenameTable:
    """The table gets another name."""

    to: str


@dataclass(frozen=True, slots=True)
class SetDefault:
    """Rows that come get another value where they do not name the column; None for NULL."""

    name: str
    default: str | None


@dataclass(frozen=True, slots=True)
class SetNullable:
    """A column may be NULL from now on, or may not; then no row has NULL there now."""

    name: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class SetType:
    """A column gets a type that has all values of its type of before."""

    name: str
    type: SqlType


ColumnChange: TypeAlias = AddColumn | DropColumn | RenameColumn | RenameTable | SetDefault | SetNullable | SetType


@dataclass(frozen=True, slots=True)
class Altered:
    """A table after changes.

    Attributes:
        table: The table, under the id of before.
        sources: For each of its columns, the column of before whose values it takes; None for a new one.
        fill: The canonical values that the rows of now have in the new columns, by their names.
    """

    table: TableDef
    sources: tuple[str | None, ...]
    fill: Mapping[str, Any]


def altered(table: TableDef, changes: Sequence[ColumnChange], now: datetime) -> Altered:
    """Change a table: all changes in their order, or none.

    The statement started at ``now``, in UTC: what a default of the clock is for the rows that are there.

    Raises:
        SchemeError: A change cannot be: the name is taken, the column is of the key, an index or a CHECK needs it, or
            the type is not wider.
        UnknownColumnError: There is no such column.
    """
    sources: dict[str, str | None] = {column.name: column.name for column in table.columns}
    fill: dict[str, Any] = {}
    for change in changes:
        match change:
            case AddColumn(column, if_not_exists):
                if if_not_exists and _find(table, column.name) is not None:
                    continue
                _check_name(table, column.name)
                hidden = [own for own in table.columns if own.hidden]
                table = replace(table, columns=(*table.visible_columns, column, *hidden))
                sources[column.name], fill[column.name] = None, _value(table, column, now)
            case DropColumn(name, if_exists):
                if if_exists and _find(table, name) is None:
                    continue
                name = _free_column(table, name, "be dropped").name
                table = replace(table, columns=tuple(column for column in table.columns if column.name != name))
                del sources[name]
                fill.pop(name, None)
            case RenameColumn(name, to):
                column = _free_column(table, name, "be renamed")
                _check_name(table, to, of=column)
                table = _with_column(table, column.name, replace(column, name=to))
                sources[to] = sources.pop(column.name)
                if column.name in fill:
                    fill[to] = fill.pop(column.name)
            case RenameTable(to):
                table = replace(table, name=to)
            case SetDefault(name, default):
                column = table.visible_column(name)
                table = _with_column(table, column.name, replace(column, default=default))
            case SetNullable(name, nullable):
                column = table.visible_column(name)
                if nullable and column.name in key_columns(table):
                    raise _refused(
                        table, f"column {column.name} is of the key, and what places a row is never NULL: leave it so"
                    )
                table = _with_column(table, column.name, replace(column, nullable=nullable))
            case SetType(name, type_):
                column = _free_column(table, name, "get another type", indexes=False)
                if not is_wider(type_, column.type):
                    raise _refused(
                        table,
                        f"column {column.name} cannot become {type_}, which does not have every value of"
                        f" {column.type}: add a column, UPDATE it with a CAST, drop this one and rename the other",
                    )
                default = None if column.default is None else _literal(column, type_)
                table = _with_column(table, column.name, replace(column, type=type_, default=default))
                if column.name in fill:
                    fill[column.name] = coerce(fill[column.name], type_, column=column.name)
            case _:
                assert_never(change)
    names = [column.name for column in table.columns]
    return Altered(table, tuple(sources[name] for name in names), fill)


def key_columns(table: TableDef) -> frozenset[str]:
    """The columns that say where a row is: those of the primary key and of the partition scheme."""
    return frozenset((*table.primary_key, *table.scheme.columns))


def is_wider(after: SqlType, before: SqlType) -> bool:
    """Whether a type has every value of another one, under the same order and with the same text."""
    if after == before:
        return True
    if before.is_integer and after.is_integer:
        return all(map(after.has_integer, before.integer_range))
    if before.is_integer and after.is_float:
        return all(abs(value) <= EXACT_INTEGERS[after.kind] for value in before.integer_range)
    if before.is_integer and after.kind is TypeKind.DECIMAL:
        largest = 10 ** (after.precision - after.scale)
        return all(-largest < value < largest for value in before.integer_range)
    if before.kind is TypeKind.DECIMAL and after.kind is TypeKind.DECIMAL:
        return after.scale >= before.scale and after.precision - after.scale >= before.precision - before.scale
    return (before.kind, after.kind) == (TypeKind.FLOAT, TypeKind.DOUBLE)


def _value(table: TableDef, column: Column, now: datetime) -> Any:
    """The value of a new column in the rows that are there."""
    default = DefaultValue.of(column.default or "NULL", column.type)
    if default.is_random:
        raise _refused(
            table,
            f"DEFAULT {default.text} has another value in each row, and the rows that are there would get one: add"
            f" column {column.name} without it, UPDATE it, and ALTER COLUMN {column.name} SET DEFAULT {default.text}",
        )
    (value,) = default.values(1, now)
    return value


def _literal(column: Column, type_: SqlType) -> str:
    """The default of a column, as one of another type."""
    default = DefaultValue.of(column.default or "NULL", column.type)
    return (
        literal_sql(coerce(default.constant, type_, column=column.name), type_) if default.is_constant else default.text
    )


def _check_name(table: TableDef, name: str, of: Column | None = None) -> None:
    """Refuse a name that is no new one, for a column of the table or one that comes."""
    taken = _find(table, name)
    if taken is not None and taken is not of:
        raise _refused(table, f"there is a column {taken.name} already: choose another name")
    if not name:
        raise _refused(table, "a column has a name of at least one character: give it one")
    if name.casefold() == ROW_ID:
        raise _refused(table, f"{name} is the name of the hidden ids of rows: choose another one")


def _find(table: TableDef, name: str) -> Column | None:
    try:
        return table.column(name)
    except UnknownColumnError:
        return None


def _free_column(table: TableDef, name: str, what: str, *, indexes: bool = True) -> Column:
    """A column that nothing else of the table rests on.

    Raises:
        UnknownColumnError: There is none.
        SchemeError: Something does.
    """
    column = table.visible_column(name)
    if column.name in key_columns(table):
        raise _refused(
            table,
            f"column {column.name} is of the {'primary key' if column.name in table.declared_key else 'partitioning'},"
            f" by which rows are found, and cannot {what}: CREATE a TABLE as it is to be, and INSERT INTO it SELECT",
        )
    index = next((index for index in table.indexes if column.name in index.columns), None) if indexes else None
    if index is not None:
        raise _refused(table, f"index {index.name} has column {column.name}, which cannot {what}: DROP INDEX it first")
    check = next((check for check in table.checks if column.name in check.columns), None)
    if check is not None:
        raise _refused(table, f"CHECK {check.name} reads column {column.name}, which therefore cannot {what}")
    return column


def _with_column(table: TableDef, name: str, column: Column) -> TableDef:
    return replace(table, columns=tuple(column if other.name == name else other for other in table.columns))


def _refused(table: TableDef, why: str) -> SchemeError:
    return SchemeError(f"table {table.name}: {why}", table=table.name)
