from __future__ import annotations

import gc
from typing import Any

import pytest

from secateur.client.channel_pool import ChannelPool
from secateur.errors import InterfaceError


class Line:
    """A channel that only remembers whether it was closed."""

    open_lines = 0

    def __init__(self) -> None:
        self.closed = False
        Line.open_lines += 1

    def close(self) -> None:
        if not self.closed:
            Line.open_lines -= 1
        self.closed = True

    def __del__(self) -> None:
        self.close()


@pytest.fixture
def pool() -> ChannelPool:
    Line.open_lines = 0
    make: Any = Line
    return ChannelPool(make, 8)


def test_who_borrows_alone_gets_the_same_channel_again(pool: ChannelPool) -> None:
    channel = pool.borrow()
    pool.give_back(channel)
    assert pool.borrow() is channel


def test_nobody_shares_a_channel_and_few_are_kept(pool: ChannelPool) -> None:
    channels = [pool.borrow() for _ in range(20)]
    assert len(set(map(id, channels))) == 20
    for channel in channels:
        pool.give_back(channel)
    del channel, channels
    assert Line.open_lines == 8


def test_a_channel_that_is_dropped_is_hung_up(pool: ChannelPool) -> None:
    pool.borrow().close()
    assert Line.open_lines == 0
    forgotten = pool.borrow()
    del forgotten
    gc.collect()
    assert Line.open_lines == 0


def test_a_closed_pool_hangs_up_and_lends_nothing(pool: ChannelPool) -> None:
    lent, idle = pool.borrow(), pool.borrow()
    pool.give_back(idle)
    pool.close()
    assert Line.open_lines == 0
    pool.give_back(lent)
    with pytest.raises(InterfaceError, match="is closed"):
        pool.borrow()
