from __future__ import annotations

from typing import Any

from secateur.client.execution import StatementCache
from secateur.protocol import Pruning, SelectStatement


def test_the_least_recently_used_goes_first() -> None:
    cache = StatementCache(2)
    plans: Any = {"a": object(), "b": object(), "c": object()}
    cache.put(("a", Pruning.ON, (), ()), plans["a"])
    cache.put(("b", Pruning.ON, (), ()), plans["b"])
    assert cache.get(("a", Pruning.ON, (), ())) is plans["a"]
    cache.put(("c", Pruning.ON, (), ()), plans["c"])
    assert cache.get(("b", Pruning.ON, (), ())) is None
    assert cache.get(("a", Pruning.ON, (), ())) is plans["a"]
    assert len(cache) == 2
    assert cache.get(("a", Pruning.ON, (), (int,))) is None
    assert cache.get(("a", Pruning.ON, (("disabled_rules", "in_pull_out"),), ())) is None
    assert cache.get(("a", Pruning.OFF, ())) is None
    cache.forget(("a", Pruning.ON, (), ()))
    cache.forget(("a", Pruning.ON, (), ()))
    assert cache.get(("a", Pruning.ON, (), ())) is None
    cache.clear()
    assert len(cache) == 0


def test_plans_with_estimates_go_when_tables_have_other_sizes() -> None:
    cache = StatementCache(2)
    kept, estimated = (
        SelectStatement("p", (), (), 0, (), None, True, 1, is_estimated=is_estimated) for is_estimated in (False, True)
    )
    cache.put(("a", Pruning.ON, (), ()), kept)
    cache.put(("b", Pruning.ON, (), ()), estimated)
    cache.forget_estimated()
    assert cache.get(("a", Pruning.ON, (), ())) is kept
    assert cache.get(("b", Pruning.ON, (), ())) is None
