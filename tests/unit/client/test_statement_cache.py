from __future__ import annotations

from typing import Any

from secateur.client.statement_cache import StatementCache


def test_the_least_recently_used_goes_first() -> None:
    cache = StatementCache(2)
    plans: Any = {"a": object(), "b": object(), "c": object()}
    cache.put(("a", ()), plans["a"])
    cache.put(("b", ()), plans["b"])
    assert cache.get(("a", ())) is plans["a"]
    cache.put(("c", ()), plans["c"])
    assert cache.get(("b", ())) is None
    assert cache.get(("a", ())) is plans["a"]
    assert len(cache) == 2
    assert cache.get(("a", (int,))) is None
    cache.forget(("a", ()))
    cache.forget(("a", ()))
    assert cache.get(("a", ())) is None
    cache.clear()
    assert len(cache) == 0
