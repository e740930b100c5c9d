"""A failed command writes one message on standard error, and ends with exit code 1."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import typer

from secateur.errors import Error

P = ParamSpec("P")
R = TypeVar("R")

_INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ends, as shells have it."""


class CommandError(Exception):
    """The command cannot do what it was asked; the text says why, and what to do."""


def message_of(error: Exception) -> str:
    """Returns the text that tells of an error."""
    return f"{type(error).__name__}: {error.message}" if isinstance(error, Error) else str(error)


def failing_with_a_message(command: Callable[P, R]) -> Callable[P, R]:
    """Let a command end with the message of its error instead of a traceback."""

    @functools.wraps(command)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (Error, CommandError) as error:
            typer.echo(message_of(error), err=True)
        except KeyboardInterrupt:
            raise typer.Exit(_INTERRUPTED) from None
        raise typer.Exit(1)

    return checked
