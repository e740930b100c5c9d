"""What seeds are about, over many of them."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from clients import GROUPS, Workload
from mix import LEANINGS, Leaning, Mix
from world import World

_SEEDS = 2000
"""As many as in continuous integration."""


def test_a_seed_is_always_about_the_same() -> None:
    assert [Mix.of(seed) for seed in range(50)] == [Mix.of(seed) for seed in range(50)]


def test_half_of_the_seeds_have_few_groups_and_some_have_all() -> None:
    count = Counter(
        "leaning" if mix.leaning else "everything" if mix.groups == GROUPS else "swarm"
        for mix in map(Mix.of, range(_SEEDS))
    )
    assert count["leaning"] / _SEEDS == pytest.approx(0.35, abs=0.05)
    assert count["everything"] / _SEEDS == pytest.approx(0.15, abs=0.03)


def test_every_two_groups_meet_in_a_swarm() -> None:
    swarms = [mix.groups for mix in map(Mix.of, range(_SEEDS)) if mix.leaning is None and mix.groups != GROUPS]
    assert max(map(len, swarms)) == 3
    met = Counter(pair for groups in swarms for pair in combinations(groups, 2))
    assert len(met) == len(list(combinations(GROUPS, 2)))
    assert min(met.values()) >= 15


@pytest.mark.parametrize("leaning", LEANINGS.values(), ids=LEANINGS)
def test_the_calls_of_a_leaning_are_those_of_its_groups(leaning: Leaning) -> None:
    Workload(World("names"), 1, groups=leaning.groups, calls=leaning.calls)
    with pytest.raises(ValueError, match="no group has the call 'reed'"):
        Workload(World("names"), 1, groups=leaning.groups, calls=(*leaning.calls, "reed"))


def test_every_kind_of_trouble_has_its_seeds() -> None:
    count = Counter(id(Mix.of(seed).leaning) for seed in range(200))
    assert min(count[id(leaning)] for leaning in LEANINGS.values()) >= 4


def test_the_seeds_that_do_not_lean_differ_in_what_there_is() -> None:
    mixes = [mix for mix in map(Mix.of, range(_SEEDS)) if mix.leaning is None]
    for is_so in (
        lambda mix: mix.is_durable,
        lambda mix: mix.is_careless,
        lambda mix: mix.scale_pause_s is not None,
        lambda mix: mix.backups == 2,
        lambda mix: mix.faults_s > 5,
        lambda mix: mix.cancelled_share > 0,
    ):
        assert 0.1 < sum(map(is_so, mixes)) / len(mixes) < 0.5


def test_without_backups_no_process_dies_and_no_seed_leans() -> None:
    for seed in range(200):
        mix = Mix.of(seed, without_backups=True)
        assert (mix.leaning, mix.backups, mix.kills, mix.is_durable) == (None, 0, False, False)


@pytest.mark.parametrize("name", list(LEANINGS))
def test_a_leaning_that_is_asked_for_is_that_of_every_seed(name: str) -> None:
    assert {id(Mix.of(seed, leaning=name).leaning) for seed in range(20)} == {id(LEANINGS[name])}
