"""What seeds are about, over many of them."""

from __future__ import annotations

from collections import Counter

import pytest

from mix import LEANINGS, Mix

_SEEDS = 2000
"""As many as in continuous integration."""


def test_a_seed_is_always_about_the_same() -> None:
    assert [Mix.of(seed) for seed in range(50)] == [Mix.of(seed) for seed in range(50)]


def test_two_of_three_seeds_are_about_everything() -> None:
    mixes = [Mix.of(seed) for seed in range(_SEEDS)]
    assert sum(mix.leaning is None for mix in mixes) / _SEEDS == pytest.approx(2 / 3, abs=0.05)


def test_every_kind_of_trouble_has_its_seeds() -> None:
    count = Counter(id(Mix.of(seed).leaning) for seed in range(200))
    assert min(count[id(leaning)] for leaning in LEANINGS.values()) >= 4


def test_the_seeds_that_are_about_everything_differ_in_what_there_is() -> None:
    mixes = [mix for mix in map(Mix.of, range(_SEEDS)) if mix.leaning is None]
    for is_so in (
        lambda mix: mix.is_durable,
        lambda mix: mix.is_careless,
        lambda mix: mix.scale_pause_s is not None,
        lambda mix: mix.backups == 2,
        lambda mix: mix.faults_s > 5,
    ):
        assert 0.1 < sum(map(is_so, mixes)) / len(mixes) < 0.5


def test_without_backups_no_process_dies_and_no_seed_leans() -> None:
    for seed in range(200):
        mix = Mix.of(seed, without_backups=True)
        assert (mix.leaning, mix.backups, mix.kills, mix.is_durable) == (None, 0, False, False)


@pytest.mark.parametrize("name", list(LEANINGS))
def test_a_leaning_that_is_asked_for_is_that_of_every_seed(name: str) -> None:
    assert {id(Mix.of(seed, leaning=name).leaning) for seed in range(20)} == {id(LEANINGS[name])}
