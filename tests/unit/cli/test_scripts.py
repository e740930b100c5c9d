from __future__ import annotations

import pytest

from secateur.cli import CommandError, Script, run_scripts
from secateur.errors import DataError, UnknownColumnError

FAILING = "SELECT 1; /* ; */ SELECT\n nope; -- the last\n SELECT 3"


def executing(done: list[str], line: int | None, column: int) -> None:
    """Execute what does not have the word nope in it, which is an error at a place in its statement."""

    def execute(statement: str) -> None:
        if "nope" in statement:
            if line is None:
                raise DataError("out of range")
            raise UnknownColumnError(f"no (line {line}, column {column})\n  ^", line=line, column=column)
        done.append(statement)

    run_scripts([Script(" SELECT 0; "), Script(FAILING, "a.sql")], execute)


@pytest.mark.parametrize(
    ("line", "column", "said"),
    [
        pytest.param(1, 9, "a.sql:1:19: UnknownColumnError: no\n  ^", id="the line on which it begins"),
        pytest.param(2, 2, "a.sql:2:2: UnknownColumnError: no\n  ^", id="a line of its own"),
        pytest.param(None, 0, "a.sql:1:19: DataError: out of range", id="no place: its first word"),
    ],
)
def test_an_error_has_its_place_in_the_file(line: int | None, column: int, said: str) -> None:
    done: list[str] = []
    with pytest.raises(CommandError) as failed:
        executing(done, line, column)
    assert str(failed.value) == f"{said}\n2 of 4 statements were executed before it"
    assert done == ["SELECT 0", "SELECT 1"]


def test_what_was_typed_has_no_file() -> None:
    def execute(statement: str) -> None:
        raise UnknownColumnError("no (line 1, column 8)", line=1, column=8)

    for text, said in (
        ("SELECT nope", "UnknownColumnError: no (line 1, column 8)"),
        ("\n SELECT nope;", "UnknownColumnError: no (line 2, column 9)"),
        (
            ";; SELECT nope; SELECT 2",
            "UnknownColumnError: no (line 1, column 11)\n0 of 2 statements were executed before it",
        ),
    ):
        with pytest.raises(CommandError) as failed:
            run_scripts([Script(text)], execute)
        assert str(failed.value) == said


def test_nothing_is_executed_of_texts_that_cannot_be_split() -> None:
    done: list[str] = []
    with pytest.raises(CommandError, match=r"^b\.sql:2:3: SqlSyntaxError: .*\n(.*\n)*no statement was executed$"):
        run_scripts([Script("SELECT 1"), Script("SELECT 2;\n  'open", "b.sql")], done.append)
    assert done == []
