"""What a client is told that asks again for a load whose controller has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from secateur.cluster.controller import LoadAnswers
from secateur.errors import LoadFailedError, OperationalError, PartitionLostError
from secateur.protocol import GetLoadOutcome, LoadOutcomeAnswer


def told(*answers: LoadOutcomeAnswer) -> int:
    """The rows, once what was in doubt is settled."""
    settled = False

    async def ask(member: str, _: GetLoadOutcome) -> LoadOutcomeAnswer:
        assert settled, "the member may decide otherwise than the controller has learned"
        return answers[int(member)]

    async def settle() -> None:
        nonlocal settled
        settled = True

    def members() -> Sequence[str]:
        return [str(number) for number in range(len(answers))]

    return asyncio.run(LoadAnswers(ask, members, settle).rows_published("load"))


PUBLISHED = LoadOutcomeAnswer(is_published=True, is_in_doubt=False, rows=7)
ABORTED = LoadOutcomeAnswer(is_published=False, is_in_doubt=False, rows=0)


def test_one_member_that_has_published_is_enough() -> None:
    assert told(ABORTED, PUBLISHED) == 7


def test_what_no_member_has_published_was_aborted() -> None:
    with pytest.raises(LoadFailedError, match="load load was aborted, because its controller ended"):
        told(ABORTED, ABORTED)


def test_nobody_knows_when_no_member_is_left() -> None:
    """One that comes back may have published it, so it was not aborted for certain."""
    with pytest.raises(OperationalError, match="no member is left that could say whether load load was published") as e:
        told()
    assert not e.value.retry_safe
    assert not isinstance(e.value, PartitionLostError), "after which a client would make the change under another id"
