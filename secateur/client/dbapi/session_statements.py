"""Statements that a connection answers by itself: PREPARE, EXECUTE and DEALLOCATE, and the bounds of transactions.

::

    PREPARE name AS <statement>
    EXECUTE name [(value, ...)]
    DEALLOCATE [PREPARE] { name | ALL }
    BEGIN | START TRANSACTION | COMMIT | END | ROLLBACK | ABORT

A prepared name is the text of its statement: plans are kept by their texts, with or without a name. Other forms of
these statements are left to the planner, which refuses them with the reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

import pyarrow as pa

from secateur.client.dbapi.parameters import plain_values
from secateur.client.dbapi.pep249 import CursorConnection
from secateur.client.execution.execute import Params
from secateur.client.session import Session
from secateur.errors import NotSupportedError, ParameterError, ProgrammingError
from secateur.protocol.statements import ResultColumn, ShowSettings

# Each gap is matched in one way only, so that a long comment in front costs no more than to read it.
_GAP: Final = r"(?:\s++|--[^\n]*+(?:\n|\Z)|(?>/\*.*?\*/))"
_NAME: Final = r'(?P<name>[A-Za-z_]\w*+|"(?:[^"]|"")++")'
_END: Final = r"[\s;]*+"


def _pattern(text: str) -> re.Pattern[str]:
    """A pattern in which a space stands for space and comments, at least one of them, and ``~`` for any number."""
    return re.compile(text.replace(" ", f"{_GAP}++").replace("~", f"{_GAP}*+"), re.IGNORECASE | re.DOTALL)


_WORDS: Final = _pattern(r"~(?:PREPARE|EXECUTE|DEALLOCATE|BEGIN|START|COMMIT|END|ROLLBACK|ABORT)\b")
_PREPARE: Final = _pattern(rf"~PREPARE {_NAME} AS\b(?P<text>.*)")
_EXECUTE: Final = _pattern(rf"~EXECUTE {_NAME}~(?P<values>\(.*\))?{_END}")
_DEALLOCATE: Final = _pattern(rf"~DEALLOCATE (?:PREPARE )?(?:(?P<all>ALL)|{_NAME}){_END}")
_BOUND: Final = _pattern(
    r"~(?P<word>START(?= TRANSACTION\b)|BEGIN|COMMIT|END|ROLLBACK|ABORT)(?: (?:TRANSACTION|WORK))?" + _END
)


@dataclass(frozen=True, slots=True)
class PrepareText:
    """``PREPARE``: from now on, the name stands for the text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ExecuteText:
    """``EXECUTE``.

    Attributes:
        name: The name, as it is kept.
        values: The query of one row whose columns are the values, with each at its place in the user's text; None for
            a statement without parameters.
    """

    name: str
    values: str | None


@dataclass(frozen=True, slots=True)
class Deallocate:
    """``DEALLOCATE``: forget a name; None for all."""

    name: str | None


class TransactionBound(Enum):
    """A statement that begins or ends a transaction."""

    BEGIN = "BEGIN"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"


SessionStatement: TypeAlias = PrepareText | ExecuteText | Deallocate | TransactionBound

_BOUNDS: Final = {
    "BEGIN": TransactionBound.BEGIN,
    "START": TransactionBound.BEGIN,
    "COMMIT": TransactionBound.COMMIT,
    "END": TransactionBound.COMMIT,
    "ROLLBACK": TransactionBound.ROLLBACK,
    "ABORT": TransactionBound.ROLLBACK,
}


def read_session_statement(sql: str) -> SessionStatement | None:
    """Read a statement that a connection answers by itself; None for any other.

    Cost: less than a microsecond for one that begins with another word.
    """
    if _WORDS.match(sql) is None:
        return None
    if found := _PREPARE.fullmatch(sql):
        return PrepareText(_kept(found["name"]), found["text"].strip())
    if found := _EXECUTE.fullmatch(sql):
        return ExecuteText(_kept(found["name"]), _values(sql, found))
    if found := _DEALLOCATE.fullmatch(sql):
        return Deallocate(None if found["all"] else _kept(found["name"]))
    found = _BOUND.fullmatch(sql)
    return None if found is None else _BOUNDS[found["word"].upper()]


def carry_out(
    statement: PrepareText | Deallocate | TransactionBound, session: Session, connection: CursorConnection
) -> None:
    """Carry out a statement other than EXECUTE.

    Raises:
        NotSupportedError: The connection executes statements of others, or there is something to roll back.
        ProgrammingError: PREPARE has no statement to prepare, or DEALLOCATE names none that was.
    """
    if not session.local_effects:
        raise NotSupportedError(
            "PREPARE, DEALLOCATE and BEGIN concern a connection, and this one executes statements of others: give the"
            " statement itself, with its parameters"
        )
    match statement:
        case PrepareText(name, text):
            if not text or isinstance(read_session_statement(text), PrepareText | ExecuteText | Deallocate):
                raise ProgrammingError(
                    f"PREPARE {name} AS names no statement: write a query, a change of rows or DDL behind AS"
                )
            session.prepared_texts[name] = text
        case Deallocate(str(name)):
            if session.prepared_texts.pop(name, None) is None:
                raise _not_prepared(name, session)
        case Deallocate():
            session.prepared_texts.clear()
        case TransactionBound.ROLLBACK:
            connection.rollback()
        case TransactionBound.BEGIN | TransactionBound.COMMIT:
            connection.commit()


def prepared_text(
    statement: ExecuteText, params: Params, session: Session, connection: CursorConnection
) -> tuple[str, Params]:
    """Return the text for which a name of PREPARE stands, and the values of EXECUTE, which a query computes.

    Raises:
        ProgrammingError: Nothing was prepared under that name.
        ParameterError: There is more than one list of values.
    """
    text = session.prepared_texts.get(statement.name)
    if text is None:
        raise _not_prepared(statement.name, session)
    if statement.values is None:
        return text, params
    with connection.cursor() as evaluating:
        rows = evaluating.execute(statement.values, params).fetchall()
    if len(rows) != 1:
        raise ParameterError(f"EXECUTE {statement.name} takes one list of values, {len(rows)} were given")
    return text, plain_values(rows[0])


def _not_prepared(name: str, session: Session) -> ProgrammingError:
    names = ", ".join(session.prepared_texts) or "none"
    return ProgrammingError(
        f"no statement is prepared under the name {name!r} on this connection; there is {names}: PREPARE {name} AS a"
        " statement first"
    )


def _kept(name: str) -> str:
    """A name as it is kept: without quotes, and without regard to case, as names of tables are."""
    return (name[1:-1].replace('""', '"') if name.startswith('"') else name).casefold()


def _values(sql: str, found: re.Match[str]) -> str | None:
    """``VALUES (...)``, with the parentheses where they are in the user's text: errors show their place."""
    if found["values"] is None or found["values"][1:-1].isspace() or found["values"] == "()":
        return None
    before = re.sub(r"[^\n]", " ", sql[: found.start("values")])
    word = found.start("name") - len("EXECUTE ")
    return f"{before[:word]}VALUES{before[word + len('VALUES') :]}{found['values']}"


def shown_settings(session: Session, statement: ShowSettings) -> tuple[pa.Table, tuple[ResultColumn, ...]]:
    """Return the result of SHOW, all VARCHAR.

    It is one row with the value under the setting's name, or a row of (name, value, default, description) for each.
    """
    values = {**session.settings(), "statement_timeout": session.statement_timeout.text}
    defaults = {"pruning": session.cluster_pruning.value}
    rows = [
        (name, values.get(name, default), defaults.get(name, default), description)
        for name, default, description in statement.settings
    ]
    found = {name: [value] for name, value, _, _ in rows}
    if not statement.is_single:
        found = dict(zip(("name", "value", "default", "description"), map(list, zip(*rows, strict=True)), strict=True))
    table = pa.table({name: pa.array(column, pa.string()) for name, column in found.items()})
    return table, tuple(ResultColumn(name, "VARCHAR") for name in table.schema.names)
