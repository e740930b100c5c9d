"""Errors as values of the protocol."""

from __future__ import annotations

from typing import Any

import msgspec

from secateur.errors import Error, rebuilt


class Failure(msgspec.Struct, frozen=True):
    """An error.

    Attributes:
        error: The name of its class.
        message: Its text.
        details: Its details, by name.
    """

    error: str
    message: str
    details: dict[str, Any] = {}

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Describe an error.

        An exception that is not ours becomes an :class:`~secateur.errors.InternalError` that names its type: the other
        side may not know the class, and must not unpickle it.
        """
        if isinstance(error, Error):
            return cls(type(error).__name__, error.message, error.details)
        return cls("InternalError", f"{type(error).__name__}: {error}")

    def to_error(self) -> Error:
        """The error; one of a class that is unknown here is an :class:`~secateur.errors.InternalError`."""
        return rebuilt(self.error, self.message, self.details)
