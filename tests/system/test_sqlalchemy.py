"""The dialect of SQLAlchemy against a cluster: core, ORM, reflection, pandas and Alembic."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Column, Engine, ForeignKey, Index, Integer, MetaData, String, Table, select
from sqlalchemy.dialects import registry
from sqlalchemy.exc import CompileError, IntegrityError, NoSuchTableError, NotSupportedError, ProgrammingError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

from secateur.cluster import Cluster
from secateur.sqlalchemy_dialect import HUGEINT, NestedType, insert

registry.register("secateur", "secateur.sqlalchemy_dialect.dialect", "SecateurDialect")  # of this checkout


@pytest.fixture
def engine(cluster: Cluster) -> Iterator[Engine]:
    made = sa.create_engine(f"{cluster.address}/?token={cluster.token}")
    yield made
    made.dispose()


@pytest.fixture
def metadata(engine: Engine) -> Iterator[MetaData]:
    """Tables that are dropped again."""
    held = MetaData()
    yield held
    held.drop_all(engine)


@pytest.fixture
def items(engine: Engine, metadata: MetaData, table_name: str) -> Table:
    """Three rows in 16 partitions."""
    table = Table(
        table_name,
        metadata,
        Column("id", Integer, primary_key=True, autoincrement=False),
        Column("name", String(20), nullable=False),
        Column("amount", sa.Numeric(10, 2)),
        Index(f"{table_name}_by_name", "name", "amount"),
        secateur_partition_by="HASH (id) PARTITIONS 16",
        secateur_backups=2,
    )
    metadata.create_all(engine)
    rows = [{"id": 1, "name": "a", "amount": Decimal("1.50")}, {"id": 2, "name": "b"}, {"id": 3, "name": "b"}]
    with engine.begin() as conn:
        assert conn.execute(table.insert(), [{"amount": None, **row} for row in rows]).rowcount == 3
    return table


def test_changes_return_rows(engine: Engine, items: Table) -> None:
    with engine.begin() as conn:
        written = insert(items).values([{"id": 3, "name": "c", "amount": 4}, {"id": 4, "name": "d", "amount": 5}])
        returned = conn.execute(
            written.on_conflict_do_update(
                index_elements=[items.c.id], set_={"name": items.c.name + written.excluded.name}
            ).returning(items.c.id, items.c.name)
        )
        assert sorted(returned) == [(3, "bc"), (4, "d")]
        assert conn.execute(insert(items).values(id=4, name="x").on_conflict_do_nothing()).rowcount == 0
        changed = conn.execute(items.update().where(items.c.id >= 3).values(amount=items.c.id * 2).returning(items))
        assert sorted(changed) == [(3, "bc", Decimal(6)), (4, "d", Decimal(8))]
        assert conn.execute(items.delete().where(items.c.name == "d").returning(items.c.id)).scalars().all() == [4]
        many = conn.execute(items.insert().returning(items.c.id), [{"id": key, "name": "m"} for key in range(10, 20)])
        assert sorted(many.scalars()) == list(range(10, 20))


def test_a_key_that_is_there_is_an_integrity_error_that_can_be_rolled_back(engine: Engine, items: Table) -> None:
    with pytest.raises(IntegrityError, match="DuplicateKeyError"), engine.begin() as conn:
        conn.execute(items.insert(), [{"id": 9, "name": "x"}, {"id": 1, "name": "x"}])
    with engine.connect() as conn:
        assert conn.scalar(select(sa.func.count()).select_from(items)) == 3


def test_a_rollback_behind_a_change_is_an_error(engine: Engine, items: Table) -> None:
    with engine.connect() as conn:
        conn.execute(items.delete().where(items.c.id == 1))
        with pytest.raises(NotSupportedError, match="each statement is committed by itself"):
            conn.rollback()
    skipping = sa.create_engine(engine.url, skip_autocommit_rollback=True)
    with skipping.connect() as conn:
        conn.execute(items.delete().where(items.c.id == 2))
        conn.rollback()
        assert conn.scalars(select(items.c.id)).all() == [3]
    skipping.dispose()


def test_a_large_result_is_read_in_parts(engine: Engine) -> None:
    rows, fewer = (sa.func.range(count).table_valued("range") for count in (2_000_000, 300_000))
    with engine.connect() as conn:
        result = conn.execution_options(stream_results=True).execute(select(rows.c.range))
        assert result.rowcount == -1  # the last row has not come
        partition = next(result.yield_per(1000).partitions())
        assert len(partition) == 1000
        result.close()
        assert sum(len(part) for part in conn.execute(select(fewer.c.range)).partitions(100_000)) == 300_000


def test_values_of_all_types_come_back(engine: Engine, metadata: MetaData, table_name: str) -> None:
    values: dict[str, tuple[Any, Any]] = {
        "flag": (sa.Boolean(), True),
        "small": (sa.SmallInteger(), -3),
        "huge": (HUGEINT(), 10**30),
        "real": (sa.Float(), 0.1),
        "money": (sa.Numeric(12, 4), Decimal("12.3456")),
        "text": (sa.Unicode(), "ä 'q' \\ %s"),
        "data": (sa.LargeBinary(), b"\x00\xff"),
        "day": (sa.Date(), date(2024, 2, 29)),
        "moment": (sa.DateTime(), datetime(2024, 2, 29, 12, 30, 0, 5)),
        "instant": (sa.DateTime(timezone=True), datetime(2024, 2, 29, 12, tzinfo=UTC)),
        "span": (sa.Interval(), timedelta(days=2, microseconds=7)),
        "label": (sa.Uuid(), uuid.UUID(int=9)),
        "hex": (sa.Uuid(as_uuid=False), str(uuid.UUID(int=9))),
        "kind": (sa.Enum("red", "blue", name="kind"), "blue"),
        "doc": (sa.JSON(), {"a": [1, None]}),
        "list": (sa.ARRAY(sa.Integer, dimensions=2), [[1, 2], []]),
        "struct": (NestedType("STRUCT(a INTEGER, b VARCHAR)"), {"a": 1, "b": "x"}),
    }
    columns = [Column(name, kind) for name, (kind, _) in values.items()]
    table = Table(table_name, metadata, Column("id", Integer, primary_key=True), *columns)
    metadata.create_all(engine)
    row = {name: value for name, (_, value) in values.items()}
    with engine.begin() as conn:
        conn.execute(table.insert(), [{"id": 1, **row}, {"id": 2, **dict.fromkeys(row)}])
        found = conn.execute(select(*table.c[*row]).where(table.c.id == 1)).one()
        assert dict(found._mapping) == row
        assert set(conn.execute(select(*table.c[*row]).where(table.c.id == 2)).one()) == {None}
        equal = [table.c[name] == sa.literal(value, kind) for name, (kind, value) in values.items() if name != "struct"]
        assert conn.scalars(select(table.c.id).where(*equal)).all() == [1]
    reflected = Table(table_name, MetaData(), autoload_with=engine)
    with engine.connect() as conn:
        again = conn.execute(select(*reflected.c[*row]).where(reflected.c.id == 1)).one()
    assert {**dict(again._mapping), "doc": row["doc"], "hex": row["hex"]} == row


def test_tables_and_views_are_reflected(engine: Engine, metadata: MetaData, items: Table) -> None:
    view = f"{items.name}_view"
    with engine.begin() as conn:
        conn.exec_driver_sql(f"CREATE VIEW {view} AS SELECT name, sum(amount) AS total FROM {items.name} GROUP BY name")
    try:
        inspector = sa.inspect(engine)
        assert items.name in inspector.get_table_names()
        assert view in inspector.get_view_names()
        assert view not in inspector.get_table_names()
        assert inspector.has_table(view)
        assert inspector.has_table(items.name.upper(), schema="main")
        assert not inspector.has_table("nowhere")
        assert not inspector.has_table(items.name, schema="other")
        assert inspector.get_view_definition(view).startswith("CREATE VIEW")
        assert [str(column["type"]) for column in inspector.get_columns(view)] == ["VARCHAR", "DECIMAL(38, 2)"]
        for reflect in (inspector.get_columns, inspector.get_indexes, inspector.get_table_options):
            with pytest.raises(NoSuchTableError):
                reflect("nowhere")
    finally:
        with engine.begin() as conn:
            conn.exec_driver_sql(f"DROP VIEW {view}")
    found = Table(items.name, MetaData(), autoload_with=engine)
    assert [(column.name, str(column.type), column.nullable) for column in found.columns] == [
        ("id", "INTEGER", False),
        ("name", "VARCHAR", False),
        ("amount", "DECIMAL(10, 2)", True),
    ]
    assert found.primary_key.columns.keys() == ["id"]
    assert [(index.name, index.columns.keys()) for index in found.indexes] == [
        (f"{items.name}_by_name", ["name", "amount"])
    ]
    assert found.dialect_options["secateur"]["partition_by"] == 'HASH ("id") PARTITIONS 16'
    assert found.dialect_options["secateur"]["backups"] == 2
    copied = found.to_metadata(metadata, name=f"{items.name}_copy")
    copied.indexes.clear()
    metadata.create_all(engine)
    assert sa.inspect(engine).get_table_options(copied.name) == sa.inspect(engine).get_table_options(items.name)


def test_defaults_checks_and_comments_are_kept_and_reflected(engine: Engine, table_name: str) -> None:
    made = sa.Table(
        table_name,
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("v", sa.Integer, sa.CheckConstraint("v > 0", name="positive"), server_default="5", comment="it's v"),
        sa.Column("made", sa.DateTime, server_default=sa.func.now()),
        sa.CheckConstraint("v < id", name="small"),
        comment="a table",
    )
    made.create(engine)
    try:
        with engine.begin() as conn:
            inserted = conn.execute(made.insert().returning(made.c.v, made.c.made.is_(None)), {"id": 6})
            assert inserted.all() == [(5, False)]
            with pytest.raises(sa.exc.IntegrityError, match="small"):
                conn.execute(made.insert(), {"id": 5})
            conn.execute(made.update().values(v=sa.text("DEFAULT")))
        inspector = sa.inspect(engine)
        columns = inspector.get_columns(table_name)
        assert [column["default"] for column in columns] == [None, "5", "now()"]
        assert [column["comment"] for column in columns] == [None, "it's v", None]
        assert inspector.get_table_comment(table_name) == {"text": "a table"}
        checks = [(check["name"], check["sqltext"]) for check in inspector.get_check_constraints(table_name)]
        assert checks == [("positive", "v > 0"), ("small", "v < id")]
        found = sa.Table(table_name, sa.MetaData(), autoload_with=engine)
        copied = found.to_metadata(sa.MetaData(), name=f"{table_name}_copy")
        copied.create(engine)
        try:
            again = sa.inspect(engine)
            assert again.get_check_constraints(copied.name) == inspector.get_check_constraints(table_name)
            assert [column["default"] for column in again.get_columns(copied.name)] == [None, "5", "now()"]
            assert again.get_table_comment(copied.name) == {"text": "a table"}
        finally:
            copied.drop(engine)
        own = {"include_name": lambda name, kind, _: kind != "table" or name == table_name}
        with engine.begin() as conn:
            context = MigrationContext.configure(conn, opts=own)
            operations = Operations(context)
            assert compare_metadata(context, made.metadata) == []
            made.c.id.comment, made.comment = "the key", None
            changes = compare_metadata(context, made.metadata)
            assert sorted(change[0] if isinstance(change, tuple) else change[0][0] for change in changes) == [
                "modify_comment",
                "remove_table_comment",
            ]
            operations.alter_column(table_name, "id", comment="the key")
            operations.drop_table_comment(table_name)
            assert compare_metadata(context, made.metadata) == []
            operations.alter_column(table_name, "v", nullable=True, comment="the value")
    finally:
        made.drop(engine)


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "alchemy_customer"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str]
    orders: Mapped[list[Order]] = relationship(back_populates="customer", order_by="Order.id")


class Order(Base):
    __tablename__ = "alchemy_order"
    __table_args__ = ({"secateur_replicated": True},)
    id: Mapped[uuid.UUID] = mapped_column(primary_key=True, default=uuid.uuid4)
    customer_id: Mapped[int] = mapped_column(ForeignKey(Customer.id))
    customer: Mapped[Customer] = relationship(back_populates="orders")


def test_objects_are_kept_and_found(cluster: Cluster) -> None:
    engine = sa.create_engine(f"{cluster.address}/?token={cluster.token}", leave_out_constraints=True)
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Customer(id=1, name="Ann", orders=[Order(), Order()]), Customer(id=2, name="Bo")])
        session.commit()
        ann = session.get_one(Customer, 1)
        assert len(ann.orders) == 2
        ann.name = "Anna"
        session.delete(ann.orders.pop())
        session.commit()
        assert session.scalars(select(Customer.name).join(Customer.orders)).all() == ["Anna"]
        session.add(Customer(id=2, name="twice"))
        with pytest.raises(IntegrityError):
            session.flush()
        session.rollback()
        assert session.scalars(select(Customer.name).order_by(Customer.id)).all() == ["Anna", "Bo"]
    Base.metadata.drop_all(engine)
    assert not sa.inspect(engine).has_table("alchemy_order")
    engine.dispose()


def test_data_frames_are_written_and_read(engine: Engine, table_name: str) -> None:
    frame = pd.DataFrame(
        {
            "key": ["x", "y"],
            "real": [1.5, None],
            "day": pd.to_datetime(["2024-01-01", "2024-02-29"]),
            "text": ["a", None],
        }
    ).set_index("key")
    for _ in range(2):  # without an index, the table has no primary key, and takes rows that are there already
        assert frame.to_sql(table_name, engine, index=False, if_exists="append") == 2
    twice = pd.read_sql_table(table_name, engine).sort_values("day", ignore_index=True)
    pd.testing.assert_frame_equal(twice, frame.loc[["x", "x", "y", "y"]].reset_index(drop=True))
    assert sa.inspect(engine).get_pk_constraint(table_name)["constrained_columns"] == []
    for _ in range(2):
        assert frame.to_sql(table_name, engine, if_exists="replace") == 2
        read = pd.read_sql(f"SELECT * FROM {table_name} ORDER BY key", engine, index_col="key")
        pd.testing.assert_frame_equal(read, frame)
    with pytest.raises(IntegrityError, match="key='x'"):
        frame.to_sql(table_name, engine, if_exists="append")
    frame.rename(index={"x": "z", "y": "w"}).to_sql(table_name, engine, if_exists="append", method="multi")
    assert sorted(pd.read_sql_table(table_name, engine)["key"]) == ["w", "x", "y", "z"]
    parts = pd.read_sql(f"SELECT key FROM {table_name}", engine, chunksize=3)
    assert [len(part) for part in parts] == [3, 1]
    with engine.begin() as conn:
        conn.exec_driver_sql(f"DROP TABLE {table_name}")


ENVIRONMENT = """
from alembic import context

with context.config.attributes["engine"].connect() as connection:
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()
"""
REVISION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = {name!r}, {before!r}


def upgrade():
    op.{up}


def downgrade():
    op.{down}
"""


def test_migrations_go_up_and_down(engine: Engine, table_name: str, tmp_path: Path) -> None:
    columns = "sa.Column('id', sa.Integer, primary_key=True), sa.Column('n', sa.Integer)"
    create = f"create_table('{table_name}', {columns}, secateur_partition_by='HASH (id) PARTITIONS 4')"
    index = f"{table_name}_by_n"
    create_index, drop_index = (
        f"create_index('{index}', '{table_name}', ['n'])",
        f"drop_index('{index}', '{table_name}')",
    )
    (tmp_path / "versions").mkdir()
    (tmp_path / "env.py").write_text(ENVIRONMENT)
    for name, before, up, down in [
        ("one", None, create, f"drop_table('{table_name}')"),
        ("two", "one", create_index, drop_index),
    ]:
        text = REVISION.format(name=name, before=before, up=up, down=down)
        (tmp_path / "versions" / f"{name}.py").write_text(text)
    config = Config()
    config.set_main_option("script_location", str(tmp_path))
    config.set_main_option("path_separator", "os")
    config.attributes["engine"] = engine
    for revision in ("one", "two"):
        command.upgrade(config, revision)
        assert pd.read_sql("FROM alembic_version", engine).values.tolist() == [[revision]]
    indexes = sa.inspect(engine).get_indexes(table_name)
    assert indexes == [{"name": index, "column_names": ["n"], "unique": False}]
    command.downgrade(config, "one")
    assert sa.inspect(engine).get_indexes(table_name) == []
    command.downgrade(config, "base")
    assert not sa.inspect(engine).has_table(table_name)
    assert pd.read_sql("FROM alembic_version", engine).empty
    with engine.begin() as conn:
        conn.exec_driver_sql("DROP TABLE alembic_version")


def test_migrations_change_columns_and_find_what_has_changed(engine: Engine, table_name: str) -> None:
    def is_ours(name: str | None, kind: str, _: object) -> bool:
        return kind != "table" or name == table_name

    with engine.connect() as conn:
        context = MigrationContext.configure(conn, opts={"include_name": is_ours})
        op = Operations(context)
        key = Column("id", Integer, primary_key=True)
        op.create_table(table_name, key, Column("n", Integer))
        conn.exec_driver_sql(f"INSERT INTO {table_name} VALUES (1, 10)")
        op.add_column(table_name, Column("name", sa.String, server_default="nobody"))
        op.add_column(table_name, Column("extra", sa.Date))
        op.alter_column(table_name, "n", type_=sa.BigInteger)
        op.alter_column(table_name, "n", nullable=False)
        op.alter_column(table_name, "n", new_column_name="amount")
        op.alter_column(table_name, "name", server_default=None)
        op.drop_column(table_name, "extra")
        rows = conn.exec_driver_sql(f"SELECT * FROM {table_name}").mappings().all()
        assert rows == [{"id": 1, "amount": 10, "name": "nobody"}]
        columns = [Column("amount", sa.BigInteger, nullable=False), Column("name", sa.String)]
        wanted = sa.MetaData()
        table = sa.Table(table_name, wanted, Column("id", Integer, primary_key=True), *columns)
        assert compare_metadata(context, wanted) == []
        table.append_column(Column("more", sa.Float))
        ((change, _, changed, column),) = compare_metadata(context, wanted)
        assert (change, changed, column.name) == ("add_column", table_name, "more")
        op.rename_table(table_name, f"{table_name}_renamed")
        assert sa.inspect(conn).has_table(f"{table_name}_renamed")
        op.drop_table(f"{table_name}_renamed")
        conn.commit()


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda op: op.create_unique_constraint("u", "t", ["n"]), "ADD CONSTRAINT is not supported"),
        (lambda op: op.drop_constraint("u", "t"), "DROP CONSTRAINT is not supported"),
    ],
)
def test_what_migrations_cannot_do_is_said(
    engine: Engine, operation: Callable[[Operations], object], message: str
) -> None:
    with engine.connect() as conn, pytest.raises(CompileError, match=message):
        operation(Operations(MigrationContext.configure(conn)))


def test_an_error_has_the_place_in_the_statement(engine: Engine) -> None:
    with engine.connect() as conn, pytest.raises(ProgrammingError, match="column 'nothing' cannot be used here"):
        conn.execute(select(sa.column("nothing")))
