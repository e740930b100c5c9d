"""CREATE TYPE and DROP TYPE.

::

    CREATE [OR REPLACE] TYPE [IF NOT EXISTS] mood AS ENUM ('sad', 'ok', 'happy')
    DROP TYPE [IF EXISTS] mood
"""

from __future__ import annotations

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.errors import Error, ProgrammingError
from secateur.partitioning.tables.identifier import quoted
from secateur.partitioning.types.named_type import NamedType
from secateur.planner.ddl.column_type import read_enum
from secateur.planner.statement import CreateType, DropType
from secateur.planner.text.token_cursor import TokenCursor


def read_create_type(cursor: TokenCursor) -> CreateType:
    """Read a CREATE TYPE statement.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        NotSupportedError: A type that is no ENUM of listed values, or a schema in front of the name.
        ProgrammingError: DuckDB has a type of that name.
    """
    cursor.expect("CREATE")
    or_replace = cursor.accept("OR", "REPLACE")
    cursor.expect("TYPE")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    if or_replace and if_not_exists:
        raise cursor.expected("OR REPLACE or IF NOT EXISTS, not both")
    offset = cursor.offset
    name = cursor.name_in_main("the name of a type")
    if _is_known(name):
        raise cursor.error(
            ProgrammingError, f"type {name!r} is one of DuckDB's: choose another name", offset, len(name)
        )
    cursor.expect("AS")
    if not cursor.at("ENUM", "("):
        raise cursor.unsupported(f"a type of {cursor.word() or 'this kind'}", "write AS ENUM ('one', 'other')")
    if not cursor.at_ahead(2, "SELECT"):
        type_ = read_enum(cursor, f"type {name!r}")
    else:
        raise cursor.unsupported("an ENUM of a query", "list the values: AS ENUM ('one', 'other')")
    cursor.expect_end()
    return CreateType(NamedType(name, type_), or_replace, if_not_exists)


def read_drop_type(cursor: TokenCursor) -> DropType:
    """Read a DROP TYPE statement.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        NotSupportedError: CASCADE, several types, or a schema in front of the name.
    """
    cursor.expect("DROP", "TYPE")
    if_exists = cursor.accept("IF", "EXISTS")
    name = cursor.name_in_main("the name of a type")
    if cursor.at("CASCADE") or cursor.at("RESTRICT"):
        raise cursor.unsupported(cursor.word(), "a type that columns have is not dropped: drop their tables first")
    if cursor.at(","):
        raise cursor.unsupported("DROP of several types", "drop one at a time")
    cursor.expect_end()
    return DropType(name, if_exists=if_exists)


def _is_known(name: str) -> bool:
    try:
        default_kernel().describe(f"SELECT CAST(NULL AS {quoted(name)})", {})
    except Error:
        return False
    return True
