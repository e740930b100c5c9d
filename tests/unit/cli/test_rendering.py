"""What commands write: rows, and the message of one that failed."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any

import pytest
import typer

from secateur.cli import CommandError, OutputFormat, failing_with_a_message, write_rows
from secateur.errors import UnreachableError


class Rows:
    """A cursor whose rows come in parts, as from a cluster."""

    description = (("n", "BIGINT"), ("n", "VARCHAR"))

    def __init__(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._left = list(rows)

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        taken, self._left = self._left[:size], self._left[size:]
        return taken


@pytest.mark.parametrize("count", [0, 1, 25_000])
def test_json_has_every_row(count: int) -> None:
    written = io.StringIO()
    rows: Any = Rows((number, None if number % 2 else f'"{number}"') for number in range(count))
    assert write_rows(rows, OutputFormat.JSON, into=written) == count
    assert json.loads(written.getvalue()) == [
        {"n": number, "n_1": None if number % 2 else f'"{number}"'} for number in range(count)
    ]


def drawn(rows: Iterable[tuple[Any, ...]], *, is_expanded: bool = False) -> list[str]:
    cursor: Any = Rows(rows)
    written = io.StringIO()
    write_rows(cursor, OutputFormat.TABLE, into=written, rows_max=1, is_expanded=is_expanded)
    return written.getvalue().splitlines()


def test_a_table_that_goes_into_a_file() -> None:
    assert drawn([(1, "[bold]x"), (20, None), (None, "two\nlines"), (3, "日本")]) == [
        "┏━━━━━━┳━━━━━━━━━┓",
        "┃ n    ┃ n       ┃",
        "┡━━━━━━╇━━━━━━━━━┩",
        "│    1 │ [bold]x │",
        "│   20 │ NULL    │",
        "│ NULL │ two     │",
        "│      │ lines   │",
        "│    3 │ 日本    │",
        "└──────┴─────────┘",
    ]
    assert drawn([]) == ["┏━━━┳━━━┓", "┃ n ┃ n ┃", "┡━━━╇━━━┩", "└───┴───┘"]
    assert drawn([(1, "a"), (2, None)], is_expanded=True) == ["row 1", "n  1", "n  a", "row 2", "n  2   ", "n  NULL"]


def test_later_rows_may_be_wider() -> None:
    lines = drawn((number, "wide" if number == 10_000 else "a") for number in range(10_001))
    assert lines[1] == "┃ n    ┃ n ┃"
    assert lines[-3:] == ["│ 9999 │ a │", "│ 10000 │ wide │", "└───────┴──────┘"]


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (UnreachableError("nobody is there"), 1, "UnreachableError: nobody is there\n"),
        (CommandError("no file"), 1, "no file\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
    ids=["an error", "a command", "ctrl-c"],
)
def test_a_command_that_fails_ends_with_its_message_and_a_code(
    capsys: pytest.CaptureFixture[str], raised: BaseException, code: int, said: str
) -> None:
    @failing_with_a_message
    def command() -> None:
        raise raised

    with pytest.raises(typer.Exit) as ended:
        command()
    assert ended.value.exit_code == code
    assert capsys.readouterr() == ("", said)


def test_a_command_that_works_ends_with_what_it_returns() -> None:
    assert failing_with_a_message(lambda number: number + 1)(1) == 2
