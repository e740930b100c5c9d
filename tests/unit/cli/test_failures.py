from __future__ import annotations

import pytest
import typer

from secateur.cli import CommandError, failing_with_a_message
from secateur.errors import UnreachableError


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
