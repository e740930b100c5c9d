from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from starlette.exceptions import HTTPException

from secateur.server import IdempotencyKeys, ServerLimits


def test_a_request_that_comes_again_gets_what_the_first_has_made() -> None:
    async def main() -> None:
        ids = map(str, range(100))
        keys = IdempotencyKeys(ServerLimits())

        async def asked(caller: bytes, path: str, key: str | None, body: bytes) -> str:
            async def make() -> str:
                await asyncio.sleep(0)
                return next(ids)

            return await keys.once(caller, path, key, body, make)

        assert await asyncio.gather(*(asked(b"me", "/jobs", "k", b"{}") for _ in range(3))) == ["0", "0", "0"]
        assert await asked(b"me", "/jobs", "k", b"{}") == "0"
        assert await asked(b"me", "/jobs", "other", b"{}") == "1"
        assert await asked(b"you", "/jobs", "k", b"{}") == "2"
        assert await asked(b"me", "/statements", "k", b"{}") == "3"
        assert [await asked(b"me", "/jobs", None, b"{}") for _ in range(2)] == ["4", "5"]
        with pytest.raises(HTTPException, match="has come with another body") as refused:
            await asked(b"me", "/jobs", "k", b"[]")
        assert refused.value.status_code == 422

    asyncio.run(main())


def test_a_failure_is_not_remembered() -> None:
    async def main() -> None:
        outcomes: Iterator[str | Exception] = iter([ValueError("full"), "made"])
        keys = IdempotencyKeys(ServerLimits())

        async def make() -> str:
            outcome = next(outcomes)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        with pytest.raises(ValueError, match="full"):
            await keys.once(b"me", "/jobs", "k", b"{}", make)
        assert await keys.once(b"me", "/jobs", "k", b"{}", make) == "made"

    asyncio.run(main())
