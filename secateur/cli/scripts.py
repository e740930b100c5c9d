"""Executes texts of several statements, and says of an error where it is and what was done before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from secateur.cli.rendering import CommandError, message_of
from secateur.errors import Error
from secateur.planner.text.positions import position_of


class Script(NamedTuple):
    """A text of statements, which end with semicolons.

    ``source`` is the name of its file, as errors have it; empty for what was typed.
    """

    text: str
    source: str = ""


class _Statement(NamedTuple):
    """A statement, where it begins in its script, and where its first word does, behind comments."""

    text: str
    offset: int
    begin: int


def run_scripts(scripts: Sequence[Script], execute: Callable[[str], None]) -> None:
    """Execute the statements of some texts one after the other, until one fails. All are split before that.

    Raises:
        CommandError: A statement has failed; its message has the position in the file, and says how many were executed
            before it.
    """
    statements = [(script, statement) for script in scripts for statement in _statements(script)]
    for done, (script, statement) in enumerate(statements):
        try:
            execute(statement.text)
        except Error as error:
            before = f"\n{done:,} of {len(statements):,} statements were executed before it"
            raise CommandError(_placed(error, script, statement) + before * (len(statements) > 1)) from error


def _statements(script: Script) -> Sequence[_Statement]:
    whole = _Statement(script.text, 0, 0)
    if ";" not in script.text:
        return [whole] if script.text.strip() else []
    from secateur.planner.text.tokens import split_statements  # half a second, which one statement need not wait

    try:
        return [_Statement(*found) for found in split_statements(script.text)]
    except Error as error:
        raise CommandError(f"{_placed(error, script, whole)}\nno statement was executed") from error


def _placed(error: Error, script: Script, statement: _Statement) -> str:
    """The message of an error with its place in the script; where the error has none, that of the statement."""
    line, column = error.details.get("line"), error.details.get("column")
    own = f" (line {line}, column {column})"
    said = message_of(error)
    if not isinstance(line, int) or not isinstance(column, int) or own not in said:
        line, column = position_of(script.text, statement.begin)
        own = ""
    else:
        above, before = position_of(script.text, statement.offset)
        line, column = line + above - 1, column + (before - 1) * (line == 1)
    if script.source:
        return f"{script.source}:{line}:{column}: {said.replace(own, '', 1)}"
    return said.replace(own, f" (line {line}, column {column})", 1) if own else said
