"""Runs SQLAlchemy's suite of tests for dialects against a cluster of its own; arguments are pytest's."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import secateur
from suite_requirements import EXCLUDED

HERE = Path(__file__).parent


class Exclusions:
    """Skips the tests of ``EXCLUDED``, some of them for one first argument alone.

    Classes have the name of the database behind their own.
    """

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            named, _, options = item.nodeid.partition("[")
            _, group, test = named.split("::")
            name = f"{group.partition('_')[0]}.{test}"
            reason = EXCLUDED.get(name, EXCLUDED.get(f"{name}[{re.split('[]-]', options)[0]}]"))
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


def main(*options: str) -> int:
    """The exit code of pytest."""
    with secateur.start(members=2, runtime="embedded") as cluster:
        url = f"{cluster.address}/?token={cluster.token}"
        here = ["-c", str(HERE / "test.cfg"), "--rootdir", str(HERE), "--noconftest", "--import-mode=importlib"]
        plugins = ["-p", "suite_plugin", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestUnknownMarkWarning"]
        return pytest.main([*here, *plugins, "--dburi", url, str(HERE / "suite.py"), *options], [Exclusions()])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
