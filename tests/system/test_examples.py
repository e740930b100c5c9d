"""The examples run as their docstrings say, and print what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from examples.tenants.__main__ import run

WORD_COUNT = """\
stages: read files -> split -> accumulate -> combine -> top n here -> top n -> collect
a        5
is       5
rose     5
the      5
garden   2
members that took part: m1, m2, m3
"""
FEATURE_LOOKUP = """\
30,000 rows on 3 members
{'customer': 'C7', 'days': 30, 'score': -0.027}
members that heard of it: 1 of 3, the owner: True
{'customer': 'C8', 'days': 30, 'score': -0.002}
members that heard of it: 1 of 3, the owner: True
"""
HASH_JOIN = """\
orders -> join: Unicast Local
customers -> join: Broadcast Distributed, read first
join -> partial: Unicast Local
partial -> total: Partitioned Distributed
total -> result: Unicast Distributed
gold    400 orders  79353.0
silver  600 orders  119467.0
members that joined: m1, m2, m3
"""
SINGLE_COMBINER = """\
{'tenant': 'acme', 'readings': 1000, 'mean': 23.9, 'hottest': 48.0}
combined on 1 member, the tenant's owner: True
{'tenant': 'blue', 'readings': 1000, 'mean': 24.067, 'hottest': 48.0}
combined on 1 member, the tenant's owner: True
{'tenant': 'corp', 'readings': 1000, 'mean': 24.04, 'hottest': 48.0}
combined on 1 member, the tenant's owner: True
"""
FASTAPI_SERVICE = """\
300 answers to 20 callers: 22425.0 was spent
40 callers have hung up
no member computes a report any more
"""
ORDERS_ORM = """\
C7 ordered pear, saw: new
2 new: 50.60
1 sent: 0.40
the price of a pear is 0.35
a customer's orders and lines were joined by 1 of 3 members
"""


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        pytest.param("word_count", WORD_COUNT, id="word_count"),
        pytest.param("feature_lookup", FEATURE_LOOKUP, id="feature_lookup"),
        pytest.param("hash_join", HASH_JOIN, id="hash_join"),
        pytest.param("single_combiner", SINGLE_COMBINER, id="single_combiner"),
        pytest.param("fastapi_service", FASTAPI_SERVICE, id="fastapi_service"),
        pytest.param("orders_orm", ORDERS_ORM, id="orders_orm", marks=[pytest.mark.slow, pytest.mark.ray]),
    ],
)
def test_an_example_prints_its_result(capsys: pytest.CaptureFixture[str], name: str, printed: str) -> None:
    runpy.run_module(f"examples.{name}", run_name="__main__", alter_sys=True)  # which SQLAlchemy looks at
    assert capsys.readouterr().out == printed


@pytest.mark.slow
def test_tenants_see_their_rows_beside_a_mad_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    play = run(6, "embedded", tmp_path / "tenants.svg")
    assert play.answers > 20
    assert not play.errors
    assert list(play.events.values()) == ["a tenant goes mad", "a member is killed"]
    assert (tmp_path / "tenants.svg").read_text().count("<polyline") == 2
    assert "at other members: p99" in capsys.readouterr().out
