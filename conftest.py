"""What pytest itself costs: most of the fifteen thousand tests take less time than pytest spends on them."""

from __future__ import annotations

import faulthandler
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from _pytest.faulthandler import fault_handler_stderr_fd_key
from _pytest.runner import runtestprotocol

HANG_S = 240.0
"""A process that begins no test for so long writes where each of its threads is, even if it hangs outside Python."""
REARMED_S = 10.0
"""The watch for that is a thread. One for each test is a tenth of what pytest costs, and is waited for twice."""
SHOWN_S = 0.05
"""A setup or an end that took at least so long is told by a worker, so that it can be among the slowest."""

_armed = pytest.StashKey[float]()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """All that pytest finds in a file, but for docstrings of which none has an example.

    To search those took two fifths of what collecting takes.
    """
    found = yield
    if any(isinstance(one, DoctestModule) for one in found) and ">>>" not in file_path.read_text(encoding="utf-8"):
        return [one for one in found if not isinstance(one, DoctestModule)]
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs a test as pytest does, but a worker of xdist sends less about it to the process that prints.

    A setup or an end that passed soon is not sent, and no keywords: that would cost both processes together as much as
    pytest spends on the test.
    """
    _watch(item.config)
    if not hasattr(item.config, "workerinput"):
        return None
    hook = item.ihook
    if item.config.get_verbosity() > 0:
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.passed:
            report.keywords = {}
        if not report.passed or report.when == "call" or report.duration >= SHOWN_S:
            hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_unconfigure() -> None:
    """Ends the watch before pytest closes what it writes to."""
    faulthandler.cancel_dump_traceback_later()


def _watch(config: pytest.Config) -> None:
    now = time.monotonic()
    if now - config.stash.get(_armed, -REARMED_S) >= REARMED_S:
        config.stash[_armed] = now
        faulthandler.dump_traceback_later(HANG_S + REARMED_S, file=config.stash[fault_handler_stderr_fd_key])
