"""CREATE TABLE.

::

    CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t (
        col TYPE [NOT NULL] [DEFAULT v] [[CONSTRAINT n] CHECK (c)] [COMMENT 'text'], ...,
        [PRIMARY KEY (a, b, c)], [CONSTRAINT n] CHECK (c), ...
    ) [PARTITION BY ...] [BACKUPS n] [WITH (change_feed = true)] | [REPLICATED] [COMMENT 'text']

A table without a primary key gets a hidden column (:mod:`~secateur.partitioning.tables.row_ids`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from msgspec.structs import replace as with_fields

from secateur.errors import NotSupportedError, SchemeError, SqlSyntaxError
from secateur.partitioning.schemes.components import ROW_ID, HashComponent
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.schemes.scheme_rules import build_scheme
from secateur.partitioning.tables.row_ids import ROW_ID_COLUMN
from secateur.partitioning.tables.table import Column, NamedType, TableDef
from secateur.planner.ddl.column_type import read_type
from secateur.planner.ddl.partition_by import PartitionBy, read_partition_by
from secateur.planner.ddl.row_expression import WrittenCheck, checks_of, read_condition, read_default
from secateur.planner.statement import CreateTable
from secateur.planner.text.positions import located
from secateur.planner.text.token_cursor import TokenCursor
from secateur.storage.key_column import KeyColumn

PARTITIONS_DEFAULT: Final = 271
BACKUPS_DEFAULT: Final = 1
_BACKUPS_MAX: Final = 16
REFUSED_CLAUSES: Final = {
    "UNIQUE": "only the primary key is unique",
    **dict.fromkeys(("REFERENCES", "FOREIGN"), "there are no foreign keys"),
    "GENERATED": "compute the column before it is loaded, or in the query",
    "COLLATE": "strings compare by their bytes",
    "CONSTRAINT": "only a CHECK has a name: write PRIMARY KEY (...) and NOT NULL without one",
}


REFUSED_OBJECTS: Final = {
    **dict.fromkeys(("SCHEMA", "DATABASE"), "there is one schema of tables, main"),
    "SEQUENCE": "give keys with the rows",
    **dict.fromkeys(("MACRO", "FUNCTION"), "write the expression, or a view"),
    **dict.fromkeys(("TEMP", "TEMPORARY"), "write CREATE TABLE or CREATE VIEW, and DROP it afterwards"),
    "RECURSIVE": "write CREATE VIEW ... AS WITH RECURSIVE ...",
    "MATERIALIZED": "write CREATE TABLE ... AS, and CREATE OR REPLACE it to refresh it",
}
"""The advice in errors about creating objects of kinds that do not exist."""


@dataclass(slots=True)
class _Draft:
    """The parts of a table that have been read so far."""

    columns: list[Column] = field(default_factory=list)
    checks: list[WrittenCheck] = field(default_factory=list)
    primary_key: tuple[str, ...] = ()
    primary_key_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Clauses:
    """The partitioning, copies and change feed of a table.

    Attributes:
        offset: The place where the clauses begin, or PARTITION BY.
        partition_by: Its partitions; None for the usual ones.
        backups: Copies beside the primary; None for the usual number.
        replicated: Whether every member has all rows.
        change_feed: Whether changes of its rows are kept for readers; None where it is not said.
        comment: A text about it; None for none.
    """

    offset: int
    partition_by: PartitionBy | None = None
    backups: int | None = None
    replicated: bool = False
    change_feed: bool | None = None
    comment: str | None = None


def read_create_table(cursor: TokenCursor, types: Mapping[str, NamedType]) -> CreateTable:
    """Read a CREATE statement and check everything that can be checked without a catalog.

    Args:
        cursor: At the word CREATE.
        types: The named types, by case-folded name.

    Raises:
        SchemeError: An invalid key or partition scheme; the message explains why.
        NotSupportedError: A type, constraint or form that is not supported.
    """
    or_replace, if_not_exists = read_create(cursor)
    name = cursor.name_in_main("the name of a table")
    draft = _read_elements(cursor, name, types)
    clauses = read_clauses(cursor)
    cursor.expect_end()
    columns = [with_fields(one, nullable=one.nullable and one.name not in draft.primary_key) for one in draft.columns]
    tdef = described(cursor.sql, name, columns, draft.primary_key, clauses, draft.primary_key_offset)
    tdef = with_fields(tdef, checks=checks_of(cursor, draft.checks, name, columns))
    return CreateTable(tdef, if_not_exists, or_replace)


def read_create(cursor: TokenCursor) -> tuple[bool, bool]:
    """Read up to the name of the table.

    Returns whether it replaces a table, and whether an existing table is left alone.

    Raises:
        NotSupportedError: Something else than a table is to be created.
    """
    cursor.expect("CREATE")
    or_replace = cursor.accept("OR", "REPLACE")
    if not cursor.accept("TABLE"):
        raise cursor.unsupported(
            f"CREATE {cursor.word()}", REFUSED_OBJECTS.get(cursor.word(), "there are tables, views and indexes")
        )
    if or_replace and cursor.at("IF", "NOT", "EXISTS"):
        raise cursor.expected("the name of a table: OR REPLACE and IF NOT EXISTS exclude each other")
    return or_replace, cursor.accept("IF", "NOT", "EXISTS")


def read_clauses(cursor: TokenCursor, *ends: str) -> Clauses:
    """Read how a table is partitioned and copied, up to the end of the statement or one of ``ends``.

    Raises:
        NotSupportedError: REPLICATED beside another clause.
    """
    clauses = Clauses(offset=cursor.offset)
    while not (cursor.at_end or any(map(cursor.at, ends))):
        others = cursor.at("PARTITION", "BY") or cursor.at("BACKUPS")
        is_more = clauses.partition_by is not None or clauses.backups is not None
        if (clauses.replicated and others) or (cursor.at("REPLICATED") and is_more):
            raise cursor.unsupported(
                "REPLICATED with PARTITION BY or BACKUPS",
                "every member holds all of a replicated table; leave out one or the other",
            )
        if clauses.partition_by is None and cursor.at("PARTITION", "BY"):
            offset = cursor.offset
            cursor.expect("PARTITION", "BY")
            clauses = replace(clauses, offset=offset, partition_by=read_partition_by(cursor))
        elif clauses.backups is None and cursor.accept("BACKUPS"):
            clauses = replace(clauses, backups=_read_backups(cursor))
        elif not clauses.replicated and cursor.accept("REPLICATED"):
            clauses = replace(clauses, replicated=True)
        elif clauses.change_feed is None and cursor.at("WITH"):
            clauses = replace(clauses, change_feed=_read_options(cursor))
        elif clauses.comment is None and cursor.accept("COMMENT"):
            clauses = replace(clauses, comment=cursor.string("a text in single quotes", may_have_dollars=True))
        else:
            raise cursor.expected(
                f"PARTITION BY, BACKUPS, REPLICATED, WITH, COMMENT or {' or '.join(ends) or 'the end of the statement'}"
            )
        if clauses.replicated and clauses.change_feed:
            raise cursor.unsupported(
                "REPLICATED with a change feed",
                "the writes of a replicated table have no order of their own: partition it",
            )
    return clauses


def described(
    sql: str,
    name: str,
    columns: Sequence[Column],
    primary_key: tuple[str, ...],
    clauses: Clauses,
    key_offset: int | None,
) -> TableDef:
    """The definition of a table that was read.

    Args:
        sql: The statement.
        name: The table's name.
        columns: Its columns.
        primary_key: The names of those of its key, as in ``columns``; none for a table without one.
        clauses: How it is partitioned and copied.
        key_offset: The place of its key in the statement; None without one.

    Raises:
        NotSupportedError: A column of the key is of a type without an order.
        SchemeError: The partition scheme cannot be.
    """
    offset = clauses.offset if key_offset is None else key_offset
    taken = next((column.name for column in columns if column.name.casefold() == ROW_ID), None)
    if taken is not None:
        message = f"column {taken!r}: tables without a primary key have a hidden column of that name: use another one"
        raise located(NotSupportedError, message, sql, offset)
    if key_offset is None:
        columns, primary_key = _with_row_ids(columns, clauses)
    elif any(component.is_random for component in _hashes(clauses)):
        message = (
            f"table {name} has a primary key, which finds the partition of a row: RANDOM is for tables without one;"
            " write HASH (columns of the key)"
        )
        raise located(SchemeError, message, sql, clauses.offset, len("PARTITION BY"))
    types = {column.name: column.type for column in columns}
    for column in primary_key if key_offset is not None else ():  # what partitions is checked with the scheme
        try:
            KeyColumn.of(name, column, types[column])
        except NotSupportedError as error:
            raise located(NotSupportedError, error.message, sql, offset, len("PRIMARY KEY")) from None
    scheme = PartitionScheme() if clauses.replicated else _scheme(sql, name, columns, primary_key, clauses, offset)
    return TableDef(
        name,
        0,
        tuple(columns),
        primary_key,
        scheme,
        BACKUPS_DEFAULT if clauses.backups is None else clauses.backups,
        clauses.replicated,
        change_feed=bool(clauses.change_feed),
        comment=clauses.comment,
    )


def _with_row_ids(columns: Sequence[Column], clauses: Clauses) -> tuple[Sequence[Column], tuple[str, ...]]:
    """The columns of a table without a primary key with its hidden one, and the key that orders its rows.

    That has the partitioning columns in front, so that it tells the partition of a row, and they are NOT NULL.
    """
    ranged = () if clauses.partition_by is None else clauses.partition_by.range_columns
    partitioning = dict.fromkeys(
        name.casefold() for name in (*(name for component in _hashes(clauses) for name in component.columns), *ranged)
    )
    declared = {column.name.casefold(): column.name for column in columns}
    key = [declared[name] for name in partitioning if name in declared]  # others are reported with the scheme
    own = [with_fields(column, nullable=column.nullable and column.name not in key) for column in columns]
    return [*own, ROW_ID_COLUMN], (*key, ROW_ID)


def _hashes(clauses: Clauses) -> list[HashComponent]:
    """The hash components of a table, and those of its ranges."""
    clause = clauses.partition_by
    return [] if clause is None else [*clause.hashes, *(own for spec in clause.ranges for own in spec.hashes or ())]


def _read_backups(cursor: TokenCursor) -> int:
    offset = cursor.offset
    backups = cursor.natural("the number of backups")
    if backups > _BACKUPS_MAX:
        raise cursor.error(SchemeError, f"BACKUPS {backups}: at most {_BACKUPS_MAX} copies beside the primary", offset)
    return backups


def _read_options(cursor: TokenCursor) -> bool:
    """Read WITH (change_feed = true)."""
    cursor.expect("WITH", "(")
    offset = cursor.offset
    option = cursor.name("the option change_feed")
    if option.casefold() != "change_feed":
        raise cursor.error(
            SqlSyntaxError, f"tables have no option {option!r}: there is change_feed", offset, len(option)
        )
    cursor.expect("=")
    is_on = cursor.accept("TRUE")
    if not is_on and not cursor.accept("FALSE"):
        raise cursor.expected("TRUE or FALSE")
    cursor.expect(")")
    return is_on


def _read_elements(cursor: TokenCursor, table: str, types: Mapping[str, NamedType]) -> _Draft:
    draft = _Draft()
    cursor.expect("(")
    while True:
        if cursor.at("PRIMARY", "KEY"):
            offset = cursor.offset
            cursor.expect("PRIMARY", "KEY")
            _set_primary_key(cursor, draft, cursor.names("a column"), offset)
        elif cursor.at("CHECK", "(") or cursor.at("CONSTRAINT"):
            draft.checks.append(_read_check(cursor))
        elif any(cursor.at(word, "(") or cursor.at(word, "KEY") for word in REFUSED_CLAUSES):
            raise _unsupported_constraint(cursor)
        else:
            _read_column(cursor, draft, types)
        if not cursor.accept(",") or cursor.at(")"):  # DuckDB, too, takes a comma behind the last one
            break
    cursor.expect(")")
    if draft.primary_key_offset is None:
        return draft
    names = [column.name for column in draft.columns]
    draft.primary_key = resolved_key(cursor.sql, draft.primary_key, draft.primary_key_offset, names, f"table {table}")
    return draft


def resolved_key(sql: str, key: Sequence[str], offset: int, columns: Sequence[str], owner: str) -> tuple[str, ...]:
    """The columns of a primary key as they are declared; ``owner`` is what has them, for messages.

    Raises:
        SchemeError: The key names a column that there is not, or one twice.
    """
    declared = {name.casefold(): name for name in columns}
    found = tuple(declared.get(name.casefold(), "") for name in key)
    message = "the primary key names a column twice" if len(set(found)) < len(found) else ""
    if "" in found:
        missing = key[found.index("")]
        message = f"the primary key names {missing!r}, which is not a column of {owner}; it has {', '.join(columns)}"
    if message:
        raise located(SchemeError, message, sql, offset, len("PRIMARY KEY"))
    return found


def _read_column(cursor: TokenCursor, draft: _Draft, types: Mapping[str, NamedType]) -> None:
    offset = cursor.offset
    name = cursor.name("the name of a column or PRIMARY KEY (...)")
    if any(name.casefold() == column.name.casefold() for column in draft.columns):
        raise cursor.error(
            SqlSyntaxError,
            f"column {name!r} is declared twice (names are compared without regard to case)",
            offset,
            len(name),
        )
    if cursor.at("GENERATED") or cursor.at("AS", "("):
        raise cursor.unsupported(f"the generated column {name!r}", REFUSED_CLAUSES["GENERATED"])
    column = Column(name, read_type(cursor, name, types))
    while not (cursor.at(",") or cursor.at(")") or cursor.at_end):
        constraint_offset = cursor.offset
        if cursor.accept("NOT"):
            cursor.expect("NULL")
            column = with_fields(column, nullable=False)
        elif cursor.accept("PRIMARY"):
            cursor.expect("KEY")
            _set_primary_key(cursor, draft, (name,), constraint_offset)
        elif cursor.at("DEFAULT") and column.default is not None:
            raise cursor.error(SqlSyntaxError, f"column {name!r} has two DEFAULTs", constraint_offset, len("DEFAULT"))
        elif cursor.accept("DEFAULT"):
            column = with_fields(column, default=read_default(cursor, name, column.type))
        elif cursor.at("CHECK") or cursor.at("CONSTRAINT"):
            draft.checks.append(_read_check(cursor))
        elif column.comment is None and cursor.accept("COMMENT"):
            column = with_fields(column, comment=cursor.string("a text in single quotes", may_have_dollars=True))
        elif not cursor.accept("NULL"):
            raise (
                _unsupported_constraint(cursor)
                if any(cursor.at(word) for word in REFUSED_CLAUSES)
                else cursor.expected("NOT NULL, DEFAULT, CHECK, ',' or ')'")
            )
    draft.columns.append(column)


def _read_check(cursor: TokenCursor) -> WrittenCheck:
    """Read ``[CONSTRAINT name] CHECK (condition)``."""
    name = None
    if cursor.at("CONSTRAINT"):
        if not cursor.at_ahead(2, "CHECK"):
            raise _unsupported_constraint(cursor)
        cursor.expect("CONSTRAINT")
        name = cursor.name("the name of the constraint")
    cursor.expect("CHECK")
    return WrittenCheck(name, read_condition(cursor))


def _set_primary_key(cursor: TokenCursor, draft: _Draft, columns: tuple[str, ...], offset: int) -> None:
    if draft.primary_key_offset is not None:
        raise cursor.error(
            SqlSyntaxError,
            "a table has one PRIMARY KEY: name all its columns in one PRIMARY KEY (...)",
            offset,
            len("PRIMARY KEY"),
        )
    draft.primary_key, draft.primary_key_offset = columns, offset


def _unsupported_constraint(cursor: TokenCursor) -> SqlSyntaxError | NotSupportedError:
    token = cursor.peek()
    assert token is not None
    word = token.text.upper()
    return cursor.unsupported(word, REFUSED_CLAUSES[word])


def _scheme(
    sql: str, table: str, columns: Sequence[Column], primary_key: tuple[str, ...], clauses: Clauses, key_offset: int
) -> PartitionScheme:
    clause, offset = clauses.partition_by, clauses.offset
    if clause is None:  # without a primary key, that is the hidden row id
        clause, offset = PartitionBy(hashes=(HashComponent(primary_key, PARTITIONS_DEFAULT),)), key_offset
    try:
        return build_scheme(
            hashes=clause.hashes,
            range_columns=clause.range_columns,
            ranges=clause.ranges,
            every=clause.every,
            types={column.name: column.type for column in columns},
            primary_key=primary_key,
            table=table,
        )
    except SchemeError as error:
        raise located(SchemeError, error.message, sql, offset, len("PARTITION BY"), **error.details) from error
