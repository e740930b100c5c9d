"""SQLAlchemy's suite of tests for dialects, as it is; ``run_suite.py`` runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlalchemy import Column, Connection, Integer, MetaData, Table, literal, select
from sqlalchemy.testing import config
from sqlalchemy.testing.suite import *  # noqa: F403
from sqlalchemy.testing.suite import test_reflection, test_types


@config.fixture()
def literal_round_trip(self: Any, metadata: MetaData, connection: Connection) -> Callable[..., None]:
    """The suite's own fixture, over a table with a key."""

    def run(
        type_: Any,
        input_: Any,
        output: Any,
        filter_: Callable[[Any], Any] | None = None,
        compare: Any = None,
        support_whereclause: bool = True,
    ) -> None:
        table = Table("t", metadata, Column("id", Integer, primary_key=True), Column("x", type_))
        table.create(connection)
        for value in [*input_, None]:
            connection.execute(table.insert().values(x=literal(value, type_, literal_execute=True)))
        given = literal(compare if compare else input_[0], type_, literal_execute=True)
        found = table.c.x == given if support_whereclause and self.supports_whereclause else table.c.x.is_not(None)
        rows = connection.execute(select(table.c.x).where(found)).all()
        assert rows
        assert all((value if filter_ is None else filter_(value)) in output for (value,) in rows)
        assert connection.execute(select(table.c.x).where(table.c.x.is_(None))).all() == [(None,)]

    return run


test_types._LiteralRoundTripFixture.literal_round_trip = literal_round_trip


class ComponentReflectionTest(test_reflection.ComponentReflectionTest):
    """The suite's own tests, with an index that is not unique, and keys of the tables that have none."""

    keyed: ClassVar = {(None, "no_constraints"): "data", (None, "noncol_idx_test_nopk"): "q"}

    @classmethod
    def define_reflected_tables(cls, metadata: MetaData, schema: str | None) -> None:
        super().define_reflected_tables(metadata, schema)
        for index in metadata.tables["users"].indexes:
            index.unique = False

    def exp_indexes(self, *args: Any, **kw: Any) -> dict[Any, list[dict[str, Any]]]:
        expected: dict[Any, list[dict[str, Any]]] = super().exp_indexes(*args, **kw)
        return {table: [{**index, "unique": False} for index in found] for table, found in expected.items()}

    def exp_columns(self, *args: Any, **kw: Any) -> dict[Any, list[dict[str, Any]]]:
        expected: dict[Any, list[dict[str, Any]]] = super().exp_columns(*args, **kw)
        for table in self.keyed.keys() & expected.keys():
            expected[table][0]["nullable"] = False
        return expected

    def exp_pks(self, *args: Any, **kw: Any) -> dict[Any, dict[str, Any]]:
        expected: dict[Any, dict[str, Any]] = super().exp_pks(*args, **kw)
        for table in self.keyed.keys() & expected.keys():
            expected[table] = {**expected[table], "constrained_columns": [self.keyed[table]]}
        return expected
