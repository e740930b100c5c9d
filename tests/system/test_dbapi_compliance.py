"""The public compliance suite of PEP 249 against a cluster."""

from __future__ import annotations

import dbapi20
import pytest

import secateur
from secateur.cluster import Cluster


class TestCompliance(dbapi20.DatabaseAPI20Test):
    """The suite, with what it leaves to drivers, and without what PEP 249 does not ask for."""

    driver = secateur
    # A table has a primary key.
    ddl1 = "CREATE TABLE dbapi20test_booze (name VARCHAR(20) PRIMARY KEY)"
    ddl2 = "CREATE TABLE dbapi20test_barflys (name VARCHAR(20) PRIMARY KEY, drink VARCHAR(30))"

    @pytest.fixture(autouse=True)
    def _to(self, cluster: Cluster) -> None:
        self.connect_args = (cluster.address, cluster.token)

    def test_non_idempotent_close(self) -> None:
        """A connection may be closed twice, as a file may: the suite wants an error, and PEP 249 does not."""
        connection = self._connect()
        connection.close()
        connection.close()

    def test_nextset(self) -> None:
        connection = self._connect()
        try:
            cursor = connection.cursor()
            cursor.executemany("SELECT ?", [["a"], ["b"]])
            assert cursor.fetchall() == [("a",)]
            assert cursor.nextset()
            assert cursor.fetchall() == [("b",)]
            assert cursor.nextset() is None
        finally:
            connection.close()

    def test_setoutputsize(self) -> None:
        """It does nothing."""
        connection = self._connect()
        try:
            cursor = connection.cursor()
            cursor.setoutputsize(3)
            assert cursor.execute("SELECT 'longer'").fetchone() == ("longer",)
        finally:
            connection.close()
