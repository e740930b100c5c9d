"""Roles, grants and row policies, as written.

::

    CREATE ROLE [IF NOT EXISTS] r  |  DROP ROLE [IF EXISTS] r
    GRANT <privilege>, ... ON [TABLE] t, ... TO r, ...  |  REVOKE <privilege>, ... ON [TABLE] t, ... FROM r, ...
    <privilege> := SELECT | INSERT | UPDATE | DELETE | ALL [PRIVILEGES]

    ALTER TABLE [IF EXISTS] t { ENABLE | DISABLE } ROW LEVEL SECURITY
    CREATE POLICY p ON t [FOR { ALL | SELECT | INSERT | UPDATE | DELETE }] [TO { PUBLIC | r }, ...]
      [USING (<condition>)] [WITH CHECK (<condition>)]
    DROP POLICY [IF EXISTS] p ON t

    FORGET TENANT 'value' [CLAIM 'name']

Source: the statements of PostgreSQL, of which these are a part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.errors import Error, ProgrammingError, UnknownColumnError, UnknownTableError
from secateur.partitioning.tables.table import ExternalTable, TableDef
from secateur.partitioning.types.sql_text import CLOCKS, folded
from secateur.planner.binding.catalog_view import similar_names
from secateur.planner.binding.session_claims import ClaimCall, claims_in
from secateur.planner.ddl.row_expression import RowExpression, row_expression
from secateur.planner.dml.target import read_relation, read_table
from secateur.planner.statement import (
    CreatePolicy,
    CreateRole,
    DropPolicy,
    DropRole,
    GrantTables,
    SecureTable,
)
from secateur.planner.system.tables import SCHEMA, SYSTEM_TABLES
from secateur.planner.text.token_cursor import TokenCursor, read_parenthesized
from secateur.planner.text.tokens import Token, TokenKind
from secateur.planner.views import ViewDef
from secateur.protocol.access import BUILT_IN_ROLES, TENANT, PolicyCommand, RowCondition
from secateur.protocol.statements import ForgetTenant
from secateur.protocol.tokens import Privilege, TableGrant

PUBLIC: Final = "public"
"""The word for everybody."""
_INSTEAD: Final = "a policy is the same for equal rows at any time: compare with a column, or with a claim"


def read_create_role(cursor: TokenCursor) -> CreateRole:
    """Read a CREATE ROLE statement.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        ProgrammingError: The name is that of a role that there always is.
    """
    cursor.expect("CREATE", "ROLE")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    offset = cursor.offset
    name = cursor.name("the name of a role")
    if name.casefold() in BUILT_IN_ROLES or name.casefold() == PUBLIC:
        message = f"role {name!r} is there always: choose another name"
        raise cursor.error(ProgrammingError, message, offset, len(name))
    cursor.expect_end()
    return CreateRole(name.casefold(), if_not_exists)


def read_drop_role(cursor: TokenCursor) -> DropRole:
    """Read a DROP ROLE statement.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
    """
    cursor.expect("DROP", "ROLE")
    if_exists = cursor.accept("IF", "EXISTS")
    name = cursor.name("the name of a role")
    cursor.expect_end()
    return DropRole(name.casefold(), if_exists)


def read_grant(cursor: TokenCursor, find: Callable[[str], TableDef | ViewDef | ExternalTable]) -> GrantTables:
    """Read a GRANT or REVOKE statement.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        UnknownTableError: There is no such table to grant something on; with the position of the name.
        ProgrammingError: Something is granted that nobody may do with a system table.
    """
    is_grant = cursor.accept("GRANT")
    if not is_grant:
        cursor.expect("REVOKE")
    privileges = _privileges(cursor)
    cursor.expect("ON")
    cursor.accept("TABLE")
    tables = cursor.listed(lambda cursor: _relation_name(cursor, find if is_grant else None, privileges))
    cursor.expect("TO" if is_grant else "FROM")
    roles = cursor.listed(lambda cursor: cursor.name("the name of a role").casefold())
    cursor.expect_end()
    grants = tuple(TableGrant(table, privilege) for table in tables for privilege in privileges)
    return GrantTables(grants, tuple(roles), is_grant)


def _privileges(cursor: TokenCursor) -> tuple[Privilege, ...]:
    if cursor.accept("ALL"):
        cursor.accept("PRIVILEGES")
        return tuple(Privilege)

    def privilege(cursor: TokenCursor) -> Privilege:
        for each in Privilege:
            if cursor.accept(each.value.upper()):
                return each
        raise cursor.expected("SELECT, INSERT, UPDATE, DELETE or ALL")

    return tuple(dict.fromkeys(cursor.listed(privilege)))


def _relation_name(
    cursor: TokenCursor,
    find: Callable[[str], TableDef | ViewDef | ExternalTable] | None,
    privileges: Sequence[Privilege],
) -> str:
    """The case-folded name of a table, view or system table; it has to exist where something is granted on it."""
    behind = cursor.peek(1)
    if behind is not None and behind.word == "." and not cursor.at("MAIN"):
        offset = cursor.offset
        schema = cursor.name("the name of a table").casefold()
        cursor.expect(".")
        name = cursor.name("the name of a system table").casefold()
        if find is not None and (schema != SCHEMA or name not in SYSTEM_TABLES):
            message = f"table {schema}.{name} does not exist"
            raise cursor.error(UnknownTableError, message, offset, len(schema) + 1 + len(name))
        if find is not None and set(privileges) != {Privilege.SELECT}:
            message = f"nobody changes the system table {schema}.{name}: GRANT SELECT on it"
            raise cursor.error(ProgrammingError, message, offset, len(schema) + 1 + len(name))
        return f"{schema}.{name}"
    if find is None:
        return cursor.name_in_main("the name of a table").casefold()
    return read_relation(cursor, find).name.casefold()


def read_row_security(cursor: TokenCursor, table: TableDef) -> SecureTable:
    """Read what follows the table of an ALTER TABLE, from ENABLE or DISABLE on.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
    """
    enables = cursor.accept("ENABLE")
    if not enables:
        cursor.expect("DISABLE")
    cursor.expect("ROW", "LEVEL", "SECURITY")
    cursor.expect_end()
    return SecureTable(table, enables)


def read_create_policy(cursor: TokenCursor, find: Callable[[str], TableDef]) -> CreatePolicy:
    """Read a CREATE POLICY statement, and check its conditions against the columns of the table.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        UnknownTableError, UnknownColumnError: With the position of the name.
        NotSupportedError: A condition reads more than its row, or is not the same for equal rows.
        ProgrammingError: A condition is none, or its command has no use for it.
    """
    cursor.expect("CREATE", "POLICY")
    name = cursor.name("the name of a policy")
    cursor.expect("ON")
    table = read_table(cursor, find)
    command = PolicyCommand.ALL
    if cursor.accept("AS"):
        raise cursor.unsupported(
            "AS PERMISSIVE or RESTRICTIVE", "policies are permissive: write both conditions in one"
        )
    if cursor.accept("FOR"):
        command = _command(cursor)
    roles: tuple[str, ...] = ()
    if cursor.accept("TO"):
        roles = tuple(cursor.listed(lambda cursor: cursor.name("the name of a role").casefold()))
        roles = () if PUBLIC in roles else roles
    using = check = None
    if cursor.accept("USING"):
        if command is PolicyCommand.INSERT:
            raise cursor.error(ProgrammingError, "a policy for INSERT has no rows to read: write WITH CHECK alone")
        using = _condition(cursor, "USING", table)
    if cursor.accept("WITH", "CHECK"):
        if command in (PolicyCommand.SELECT, PolicyCommand.DELETE):
            message = f"a policy for {command.value.upper()} has no new rows to check: write USING alone"
            raise cursor.error(ProgrammingError, message)
        check = _condition(cursor, "WITH CHECK", table)
    cursor.expect_end()
    if using is None and (command is not PolicyCommand.INSERT or check is None):
        raise cursor.expected("WITH CHECK (...)" if command is PolicyCommand.INSERT else "USING (...)")
    return CreatePolicy(name, table, command, roles, using, check)


def read_forget_tenant(cursor: TokenCursor) -> ForgetTenant:
    """Read a FORGET TENANT statement.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
    """
    cursor.expect("FORGET", "TENANT")
    value = _text(cursor, "the tenant")
    claim = _text(cursor, "the name of a claim") if cursor.accept("CLAIM") else TENANT
    cursor.expect_end()
    return ForgetTenant(value, claim)


def _text(cursor: TokenCursor, what: str) -> str:
    token = cursor.peek()
    if token is None or token.kind is not TokenKind.STRING:
        raise cursor.expected(f"{what}, as 'text'")
    return cursor.take().text


def _command(cursor: TokenCursor) -> PolicyCommand:
    for command in PolicyCommand:
        if cursor.accept(command.value.upper()):
            return command
    raise cursor.expected("ALL, SELECT, INSERT, UPDATE or DELETE")


def read_drop_policy(cursor: TokenCursor, find: Callable[[str], TableDef]) -> DropPolicy:
    """Read a DROP POLICY statement.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        UnknownTableError: With the position of the name.
    """
    cursor.expect("DROP", "POLICY")
    if_exists = cursor.accept("IF", "EXISTS")
    name = cursor.name("the name of a policy")
    cursor.expect("ON")
    table = read_table(cursor, find)
    cursor.expect_end()
    return DropPolicy(name, table, if_exists)


def _condition(cursor: TokenCursor, clause: str, table: TableDef) -> RowCondition:
    if not cursor.at("("):
        raise cursor.expected("'(' and a condition")
    first = cursor.rest()
    span = read_parenthesized(cursor)
    tokens = first[: len(first) - len(cursor.rest())]
    claims = claims_in(cursor.sql, tokens)
    # DuckDB knows no claims: it reads a text in place of each, which may be of any type as well.
    plain, end = "", 0
    for claim in claims:
        plain += cursor.sql[end : claim.start] + "''".ljust(claim.end - claim.start)
        end = claim.end
    plain_cursor = TokenCursor(plain + cursor.sql[end:], tokens)
    expression = row_expression(plain_cursor, clause, span)
    expression.check(plain_cursor, _INSTEAD)
    columns = _columns_read(plain_cursor, expression, table)
    _check_type(plain_cursor, expression, table)
    return RowCondition(tuple(_pieces(cursor.sql, tokens[1:-1], claims)), columns)


def _pieces(sql: str, tokens: Sequence[Token], claims: Sequence[ClaimCall]) -> list[str]:
    """The text of a condition on one line and without comments, cut at its claims."""
    pieces, end = [""], tokens[0].start if tokens else 0
    left = list(claims)
    for token in tokens:
        if left and token.start >= left[0].end:
            left.pop(0)
        if left and token.start >= left[0].start:
            if token.start == left[0].start:
                pieces[-1] += " " * bool(pieces[-1] and token.start > end)
                pieces += [left[0].claim, ""]
            end = left[0].end
            continue
        pieces[-1] += " " * ((len(pieces) > 1 or bool(pieces[-1])) and token.start > end)
        pieces[-1] += sql[token.start : token.end + 1]
        end = token.end + 1
    return pieces


def _columns_read(cursor: TokenCursor, expression: RowExpression, table: TableDef) -> tuple[str, ...]:
    by_name = {folded(column.name): column.name for column in table.visible_columns}
    read: dict[str, None] = {}
    for node in expression.nodes():
        if node.get("class") != "COLUMN_REF":
            continue
        first, span = folded(node["column_names"][0]), expression.span
        if first in by_name:
            read[by_name[first]] = None
        elif first in CLOCKS:
            raise expression.refused(cursor, first, _INSTEAD)
        elif first == folded(table.name) and len(node["column_names"]) > 1:
            raise expression.refused(cursor, f"{table.name}.{node['column_names'][-1]}", "name the column alone")
        else:
            known = similar_names(node["column_names"][0], list(by_name.values()))
            message = f"table {table.name} has no column {node['column_names'][0]!r}; {known}"
            raise cursor.error(UnknownColumnError, message, span.start, span.end - span.start)
    return tuple(column.name for column in table.columns if column.name in read)


def _check_type(cursor: TokenCursor, expression: RowExpression, table: TableDef) -> None:
    span, relations = expression.span, {"one row": {column.name: column.type for column in table.visible_columns}}
    try:
        ((_, kind),) = default_kernel().describe(f'SELECT {expression.text} AS holds FROM "one row"', relations)
    except Error as error:
        message = f"{expression.clause} {expression.text}: {error.message.partition(chr(10))[0]}"
        raise cursor.error(type(error), message, span.start, span.end - span.start) from error
    if kind != "BOOLEAN":
        message = f"{expression.clause} takes a condition, and the expression is of type {kind}"
        raise cursor.error(ProgrammingError, message, span.start, span.end - span.start)
