from __future__ import annotations

import pytest

from secateur.errors import TopologyChangedError
from secateur.storage import ReadLease


def test_nothing_is_answered_from_the_end_of_the_lease_on() -> None:
    now_s = 100.0
    lease = ReadLease(lambda: now_s)
    lease.check()
    lease.until_s = 103.0
    now_s = 102.9
    lease.check()
    assert lease.is_valid
    now_s = 103.0
    assert not lease.is_valid
    with pytest.raises(TopologyChangedError, match="nothing was done") as caught:
        lease.check()
    assert caught.value.details == {"lease_ended": True}
    lease.until_s = 106.0
    lease.check()
