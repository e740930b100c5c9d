"""What a connection that was opened with ``autocommit_only`` says about transactions."""

from __future__ import annotations

from secateur.errors import NotSupportedError


class Commits:
    """Knows whether anything was changed since the last BEGIN, COMMIT or ROLLBACK.

    Every statement has committed by itself, so BEGIN and COMMIT have nothing to do, and ROLLBACK can do nothing. It is
    accepted only where it would have nothing to do either.
    """

    def __init__(self) -> None:
        self._statements = 0

    def begin(self) -> None:
        """BEGIN or COMMIT: what was changed before it is not to be taken back."""
        self._statements = 0

    def note(self) -> None:
        """A statement has changed something, or may have."""
        self._statements += 1

    def roll_back(self) -> None:
        """ROLLBACK: what was changed is said once.

        Raises:
            NotSupportedError: A statement has changed something, and has committed it by itself.
        """
        count, self._statements = self._statements, 0
        if count:
            raise NotSupportedError(
                "ROLLBACK: each statement is committed by itself, so the"
                f" {'statement that has' if count == 1 else f'{count:,} statements that have'} changed something since"
                " BEGIN cannot be taken back: change the rows back by statements of your own"
            )
