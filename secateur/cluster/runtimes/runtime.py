"""The interface of a runtime, which hosts the controller and the members."""

from __future__ import annotations

from typing import Protocol


class Runtime(Protocol):
    """Starts, stops and kills the processes of one cluster. Called from the thread that owns the cluster."""

    name: str

    def start_controller(self, *, is_cold_start: bool = False) -> str:
        """Start the controller; returns its ``host:port``.

        Args:
            is_cold_start: Whether it goes on from what the members that are about to be started have on disk.
        """

    def start_members(self, member_ids: list[str]) -> None:
        """Start members; returns when all have joined the controller.

        Raises:
            OperationalError: One of them did not come up.
        """

    def kill_controller(self) -> None:
        """End the controller at once, as a crash would, and start it anew at the same address."""

    def kill_member(self, member_id: str) -> None:
        """End a member at once, without a notice to any process, as a crash would. Another takes its place."""

    def stop_member(self, member_id: str) -> None:
        """End a member that owns nothing, for good.

        Another one that has come in its place stays.

        Raises:
            OperationalError: Its process does not end.
        """

    def leave(self) -> None:
        """Let go of what runs, without ending it, as far as it can outlive this process."""

    def stop(self) -> None:
        """End everything this runtime started. May be called twice, and after a failed start."""
