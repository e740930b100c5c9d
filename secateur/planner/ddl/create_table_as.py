"""CREATE TABLE ... AS: a table with the columns of a query, and its rows.

::

    CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t [PRIMARY KEY (a, b)]
        [PARTITION BY ...] [BACKUPS n] | [REPLICATED] AS query [WITH [NO] DATA]

The query determines the columns; ``SELECT * FROM 'file'`` has those of a file, which the client reads. The key cannot
be inferred: where none is given, the table has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from secateur.errors import NotSupportedError, SchemeError
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.column_type import parse_type
from secateur.planner.ddl.create_table import Clauses, described, read_clauses, read_create, resolved_key
from secateur.planner.ddl.table_sql import table_sql
from secateur.planner.statement import PlannedSelect
from secateur.planner.text.positions import located
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import Token, TokenKind
from secateur.protocol.statements import CreateTableAs, CreateTableFrom


@dataclass(frozen=True, slots=True)
class TableAs:
    """CREATE TABLE ... AS, not planned.

    Attributes:
        name: The table's name.
        if_not_exists: Whether nothing is done when there is such a table.
        or_replace: Whether it takes the place of a table of its name.
        primary_key: The columns of its key, as written; none for a table without one.
        key_offset: Where they are said; None where they are not.
        clauses: How it is partitioned.
        clauses_text: The same as written.
        query: The tokens of the query.
        with_data: Whether its rows are wanted.
    """

    sql: str
    name: str
    if_not_exists: bool
    or_replace: bool
    primary_key: tuple[str, ...]
    key_offset: int | None
    clauses: Clauses
    clauses_text: str
    query: tuple[Token, ...]
    with_data: bool

    def from_file(self) -> CreateTableFrom | None:
        """The table that a file makes, where the query is ``SELECT * FROM 'file'`` or ``FROM 'file'``."""
        *words, last = self.query
        is_whole = [token.word for token in words] in (["FROM"], ["SELECT", "*", "FROM"])
        if not is_whole or last.kind is not TokenKind.STRING:
            return None
        return CreateTableFrom(
            self.name,
            self.primary_key,
            self.clauses_text,
            last.text,
            self.if_not_exists,
            self.or_replace,
            self.with_data,
        )

    def statement(self, plan: Callable[[Sequence[Token]], PlannedSelect]) -> CreateTableAs[PlannedSelect]:
        """The table that the query makes.

        Raises:
            SchemeError: A key column that the query does not have, or a partition scheme that cannot be.
            NotSupportedError: A column of a type that tables do not have.
        """
        select = plan(self.query)
        found, start = select.plan.columns, self.query[0].start
        names = {name.casefold(): name for name, _ in found}
        if len(names) < len(found):
            raise located(
                SchemeError,
                "the query has two columns of one name (without regard to case): give each its own with AS",
                self.sql,
                start,
            )
        key = resolved_key(self.sql, self.primary_key, self.key_offset or 0, list(names.values()), "the query")
        columns = []
        for name, text in found:
            try:
                columns.append(Column(name, parse_type(text), nullable=name not in key))
            except NotSupportedError as error:
                raise located(
                    NotSupportedError, f"column {name!r}: {error.message}: CAST it in the query", self.sql, start
                ) from None
        tdef = described(self.sql, self.name, columns, key, self.clauses, self.key_offset)
        create = table_sql(tdef, or_replace=self.or_replace)
        return CreateTableAs(tdef, self.if_not_exists, self.or_replace, create, select if self.with_data else None)


def is_create_table_as(cursor: TokenCursor) -> bool:
    """Whether the statement at the word CREATE has AS or PRIMARY KEY in place of the columns of a table."""
    table = 3 if cursor.at("CREATE", "OR", "REPLACE", "TABLE") else 1
    if not cursor.at("CREATE") or not cursor.at_ahead(table, "TABLE"):
        return False
    behind = table + (4 if cursor.at_ahead(table + 1, "IF", "NOT", "EXISTS") else 1)
    qualifier = cursor.peek(behind + 1)
    if qualifier is not None and qualifier.text == ".":
        behind += 2
    ahead = [cursor.peek(behind + offset) for offset in (1, 2)]
    words = [token.text.upper() if token is not None else "" for token in ahead]
    return words[0] in ("AS", "PARTITION", "BACKUPS", "REPLICATED", "WITH", "COMMENT") or words == ["PRIMARY", "KEY"]


def read_create_table_as(cursor: TokenCursor) -> TableAs:
    """Read the statement."""
    or_replace, if_not_exists = read_create(cursor)
    name = cursor.name_in_main("the name of a table")
    key: tuple[str, ...] = ()
    key_offset = cursor.offset if cursor.at("PRIMARY", "KEY") else None
    if cursor.accept("PRIMARY", "KEY"):
        key = cursor.names("a column")
    start = cursor.offset
    clauses = read_clauses(cursor, "AS")
    text = cursor.sql[start : cursor.offset].strip()
    cursor.expect("AS")
    query = cursor.rest()
    words = [token.text.upper() for token in query[-3:]]
    with_data = True
    if words == ["WITH", "NO", "DATA"]:
        query, with_data = query[:-3], False
    elif words[-2:] == ["WITH", "DATA"]:
        query = query[:-2]
    if not query:
        raise cursor.expected("a query")
    return TableAs(cursor.sql, name, if_not_exists, or_replace, key, key_offset, clauses, text, query, with_data)
