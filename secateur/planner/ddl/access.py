"""Roles, grants and row policies, as written.

::

    CREATE ROLE [IF NOT EXISTS] r
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

from collections.abc import Sequence
from typing import Final

from secateur.errors import ProgrammingError, UnknownTableError
from secateur.partitioning.tables.table import TableDef
from secateur.planner.binding.session_claims import claims_in
from secateur.planner.ddl.row_expression import on_one_line, read_condition, row_expression
from secateur.planner.dml.target import FindTable, read_relation
from secateur.planner.statement import (
    CreatePolicy,
    CreateRole,
    DropPolicy,
    GrantTables,
    SecureTable,
)
from secateur.planner.system.tables import SCHEMA, SYSTEM_TABLES
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.views import FindRelation
from secateur.protocol.access import BUILT_IN_ROLES, TENANT, PolicyCommand, RowCondition
from secateur.protocol.statements import ForgetTenant
from secateur.protocol.tokens import Privilege, TableGrant

PUBLIC: Final = "public"
"""The word for everybody."""
_INSTEAD: Final = "a policy is the same for equal rows at any time: compare with a column, or with a claim"


def read_create_role(cursor: TokenCursor) -> CreateRole:
    """Read a CREATE ROLE statement.

    Raises:
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


def read_grant(cursor: TokenCursor, find: FindRelation) -> GrantTables:
    """Read a GRANT or REVOKE statement.

    Raises:
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
    expected = "SELECT, INSERT, UPDATE, DELETE or ALL"
    return tuple(dict.fromkeys(cursor.listed(lambda cursor: cursor.one_of(Privilege, expected))))


def _relation_name(
    cursor: TokenCursor,
    find: FindRelation | None,
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
    """Read what follows the table of an ALTER TABLE, from ENABLE or DISABLE on."""
    enables = cursor.accept("ENABLE")
    if not enables:
        cursor.expect("DISABLE")
    cursor.expect("ROW", "LEVEL", "SECURITY")
    cursor.expect_end()
    return SecureTable(table, enables)


def read_create_policy(cursor: TokenCursor, find: FindTable) -> CreatePolicy:
    """Read a CREATE POLICY statement, and check its conditions against the columns of the table.

    Raises:
        UnknownTableError, UnknownColumnError: With the position of the name.
        NotSupportedError: A condition reads more than its row, or is not the same for equal rows.
        ProgrammingError: A condition is none, or its command has no use for it.
    """
    cursor.expect("CREATE", "POLICY")
    name = cursor.name("the name of a policy")
    cursor.expect("ON")
    table = read_relation(cursor, find)
    command = PolicyCommand.ALL
    if cursor.accept("AS"):
        raise cursor.unsupported(
            "AS PERMISSIVE or RESTRICTIVE", "policies are permissive: write both conditions in one"
        )
    if cursor.accept("FOR"):
        command = cursor.one_of(PolicyCommand, "ALL, SELECT, INSERT, UPDATE or DELETE")
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
    """Read a FORGET TENANT statement."""
    cursor.expect("FORGET", "TENANT")
    value = cursor.string("the tenant, as 'text'")
    claim = cursor.string("the name of a claim, as 'text'") if cursor.accept("CLAIM") else TENANT
    cursor.expect_end()
    return ForgetTenant(value, claim)


def read_drop_policy(cursor: TokenCursor, find: FindTable) -> DropPolicy:
    """Read a DROP POLICY statement.

    Raises:
        UnknownTableError: With the position of the name.
    """
    cursor.expect("DROP", "POLICY")
    if_exists = cursor.accept("IF", "EXISTS")
    name = cursor.name("the name of a policy")
    cursor.expect("ON")
    table = read_relation(cursor, find)
    cursor.expect_end()
    return DropPolicy(name, table, if_exists)


def _condition(cursor: TokenCursor, clause: str, table: TableDef) -> RowCondition:
    first = cursor.rest()
    span = read_condition(cursor)
    tokens = first[: len(first) - len(cursor.rest())]
    claims = claims_in(cursor.sql, tokens)
    # DuckDB knows no claims: it reads a text in place of each, which may be of any type as well.
    plain, end = "", 0
    for claim in claims:
        plain += cursor.sql[end : claim.start] + "''".ljust(claim.end - claim.start)
        end = claim.end
    expression = row_expression(TokenCursor(plain + cursor.sql[end:], tokens), clause, span)
    columns = expression.columns_of_condition(table.name, table.visible_columns, _INSTEAD)
    return RowCondition(tuple(on_one_line(cursor.sql, tokens[1:-1], claims)), columns)
