"""Something that happens between a step of a query and the parts behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from secateur.cluster.member.statements.query_steps import CoordinatedQuery

__all__ = ["once_after_a_step"]


def once_after_a_step(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Have something done once, as soon as the next step of a query in steps has its answer."""
    run, pending = CoordinatedQuery.run, [act]

    async def run_and_act(self: CoordinatedQuery, asked: Any, *, has_rows: bool) -> Any:
        found = await run(self, asked, has_rows=has_rows)
        if asked.steps is None and pending:
            await asyncio.to_thread(pending.pop())
        return found

    monkeypatch.setattr(CoordinatedQuery, "run", run_and_act)
