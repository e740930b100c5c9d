"""Runs of the stages of a plan that are repeated: while loads are published, and in another form after an error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from msgspec import structs

from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import DataChangedError, DataError

T = TypeVar("T")

_LOAD_WAIT_S: Final = 10.0
_LOAD_PAUSE_S: Final = 0.002


async def in_some_form(plan: SelectPlan, run: Callable[[SelectPlan], Awaitable[T]]) -> T:
    """Run the stages of a plan.

    If an error in the data need not be one of the statement, run other stages, in which it would be.
    """
    try:
        return await while_loads_end(lambda: run(plan))
    except DataError:
        if not plan.gathered:
            raise
        return await while_loads_end(lambda: run(structs.replace(plan, stages=plan.gathered, gathered=())))


async def while_loads_end(run: Callable[[], Awaitable[T]]) -> T:
    """Run, and run again while a load is published on some of the members, for about a round trip."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + _LOAD_WAIT_S
    while True:
        try:
            return await run()
        except DataChangedError:
            if loop.time() > deadline_s:
                raise
            await asyncio.sleep(_LOAD_PAUSE_S)
