"""COPY, BACKUP and RESTORE: rows in files, which the client reads and writes.

::

    COPY t [(a, b, ...)] FROM 'path' [[WITH] (option [value], ...)]
    COPY { t [(a, b, ...)] | (query) } TO 'path' [[WITH] (option [value], ...)]
    BACKUP [TABLE a, b, ...] TO 'folder'
    RESTORE [OR REPLACE] [TABLE a, b, ...] FROM 'folder'

Options: FORMAT (csv, parquet or json; by default that of the path), and those that DuckDB has for the format and the
direction (:mod:`~secateur.protocol.copy_file`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, assert_never

from secateur.errors import ProgrammingError
from secateur.partitioning.types.sql_text import quoted
from secateur.planner.dml.composed import Composed, Composer
from secateur.planner.dml.target import FindTable, read_relation
from secateur.planner.dml.values import read_column
from secateur.planner.statement import PlannedSelect
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.positions import located
from secateur.planner.text.token_cursor import TokenCursor, read_expression
from secateur.planner.text.tokens import Token, TokenKind
from secateur.protocol.copy_file import OPTIONS, SYNONYMS, CopyFile, CopyFormat, Direction, OptionKind, OptionValue
from secateur.protocol.statements import BackupTo, CopyFrom, CopyTo, RestoreFrom

_TRUE: Final = frozenset({"TRUE", "1", "ON"})
_FALSE: Final = frozenset({"FALSE", "0", "OFF"})
_MARKS: Final = "()[],*"


def read_copy(
    cursor: TokenCursor, parameters: Parameters, find: FindTable, plan: Callable[[Composed], PlannedSelect]
) -> CopyFrom | CopyTo[PlannedSelect]:
    """Read a COPY statement.

    Raises:
        UnknownTableError, UnknownColumnError: With the position of the name.
        ProgrammingError: An option with a value that it cannot have.
    """
    cursor.expect("COPY")
    composer = Composer(cursor.sql, parameters)
    if cursor.accept("("):
        composer.say(read_expression(cursor, ")", what="a query"))
        cursor.expect(")")
        cursor.expect("TO")
    else:
        table = read_relation(cursor, find)
        columns = tuple(column.name for column in table.visible_columns)
        if cursor.at("("):
            columns = tuple(cursor.in_parentheses(lambda cursor: read_column(cursor, table)))
        if cursor.accept("FROM"):
            return CopyFrom(table, columns, _read_file(cursor, Direction.READ))
        if not cursor.accept("TO"):
            raise cursor.expected("FROM or TO")
        composer.say(f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(table.name)}")
    file = _read_file(cursor, Direction.WRITE)
    return CopyTo(plan(composer.finish()), file)


def _read_file(cursor: TokenCursor, direction: Direction) -> CopyFile:
    """The path and the options, which end the statement."""
    path = cursor.string("the path of a file, as 'text'")
    cursor.accept("WITH")
    written = _read_options(cursor) if cursor.accept("(") else {}
    cursor.expect_end()
    file_format = _read_format(written.pop("FORMAT")) if "FORMAT" in written else CopyFormat.of_path(path)
    known = OPTIONS[file_format, direction]
    for name, values in written.items():
        if name not in known:
            message = (
                f"COPY {direction.value} a {file_format.value} file has no option {name}: it has"
                f" {', '.join(['FORMAT', *sorted(known)])}"
            )
            raise cursor.error(ProgrammingError, message, values.offset, len(values.name))
    return CopyFile(path, file_format, tuple((name, values.read(known[name])) for name, values in written.items()))


@dataclass(frozen=True, slots=True)
class _Option:
    """An option as it is written: its name, where that stands, and a cursor over the tokens of its value."""

    name: str
    offset: int
    value: TokenCursor

    def read(self, kind: OptionKind) -> OptionValue:
        """The value, which has to be of its kind and alone."""
        value = _read_value(self.value, kind)
        if self.value.peek() is not None:
            raise self.value.expected(f"{kind.value} for {self.name}")
        return value


def _read_options(cursor: TokenCursor) -> dict[str, _Option]:
    """Return the unparsed options by their canonical names; FORMAT, which decides what is valid, may come last."""
    found: dict[str, _Option] = {}
    while True:
        offset = cursor.offset
        token = cursor.take()
        name = SYNONYMS.get(token.text.upper(), token.text.upper())
        if name in found:
            raise cursor.error(ProgrammingError, f"COPY has the option {name} twice", offset, len(token.text))
        value: list[Token] = []
        depth = 0
        while depth or not (cursor.at(",") or cursor.at(")")):
            depth += cursor.at("(") or cursor.at("[")
            depth -= cursor.at(")") or cursor.at("]")
            value.append(cursor.take())
        found[name] = _Option(token.text, offset, TokenCursor(cursor.sql, value))
        if not cursor.accept(","):
            cursor.expect(")")
            return found


def _read_format(option: _Option) -> CopyFormat:
    token = option.value.peek()
    name = option.read(OptionKind.TEXT)
    try:
        return CopyFormat(str(name).lower())
    except ValueError:
        assert token is not None
        message = f"{name!r} is not a format of COPY: use csv, parquet or json"
        raise located(ProgrammingError, message, option.value.sql, token.start, len(token.text)) from None


def _read_value(cursor: TokenCursor, kind: OptionKind) -> OptionValue:
    match kind:
        case OptionKind.FLAG:
            return _read_flag(cursor)
        case OptionKind.NUMBER:
            token = cursor.peek()
            if token is None or token.kind is not TokenKind.NUMBER or not token.text.isdecimal():
                raise cursor.expected("a number")
            return int(cursor.take().text)
        case OptionKind.TEXT:
            return _read_text(cursor)
        case OptionKind.TEXTS:
            return _read_listed(cursor) if cursor.at("(") or cursor.at("[") else _read_text(cursor)
        case OptionKind.NAMES:
            if cursor.accept("*"):
                return ("*",)
            return _read_listed(cursor) if cursor.at("(") or cursor.at("[") else (_read_text(cursor),)
        case _:
            assert_never(kind)


def _read_listed(cursor: TokenCursor) -> tuple[str, ...]:
    closing = ")" if cursor.take().text == "(" else "]"
    values = cursor.listed(_read_text)
    cursor.expect(closing)
    return tuple(values)


def _read_flag(cursor: TokenCursor) -> bool:
    """A boolean; nothing is true."""
    if cursor.peek() is None:
        return True
    offset = cursor.offset
    token = cursor.take()
    if token.text.upper() in _TRUE:
        return True
    if token.text.upper() not in _FALSE:
        raise cursor.error(ProgrammingError, f"{token.text!r} is neither true nor false", offset, len(token.text))
    return False


def _read_text(cursor: TokenCursor) -> str:
    """A text in quotes, or a word."""
    if cursor.at_end or any(cursor.at(mark) for mark in _MARKS):
        raise cursor.expected("a text")
    return cursor.take().text


def read_backup(cursor: TokenCursor, find: FindTable) -> BackupTo:
    """Read a BACKUP statement.

    Raises:
        UnknownTableError: With the position of the name.
    """
    cursor.expect("BACKUP")
    tables = cursor.listed(lambda cursor: read_relation(cursor, find).name) if cursor.accept("TABLE") else []
    cursor.expect("TO")
    return BackupTo(_read_folder(cursor), tuple(tables))


def read_restore(cursor: TokenCursor) -> RestoreFrom:
    """Read a RESTORE statement; the names of its tables are those of the backup, which only the client has."""
    cursor.expect("RESTORE")
    or_replace = cursor.accept("OR", "REPLACE")
    is_named = cursor.accept("TABLE")
    tables = cursor.listed(lambda cursor: cursor.name_in_main("the name of a table")) if is_named else []
    cursor.expect("FROM")
    return RestoreFrom(_read_folder(cursor), tuple(tables), or_replace)


def _read_folder(cursor: TokenCursor) -> str:
    path = cursor.string("the path of a folder, as 'text'")
    cursor.expect_end()
    return path
