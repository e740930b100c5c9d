"""The text of statements and DDL, without a cluster."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Computed,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Numeric,
    Sequence,
    String,
    Table,
    UniqueConstraint,
    delete,
    func,
    literal,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import CompileError
from sqlalchemy.schema import CreateIndex, CreateTable, DropIndex

from secateur.sqlalchemy_dialect import SecateurDialect, insert

ORDERS = Table(
    "orders",
    MetaData(),
    Column("customer", String(20), primary_key=True),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("amount", Numeric(10, 2), nullable=False),
    Column("Select", Integer),
    secateur_partition_by="HASH (customer) PARTITIONS 16",
    secateur_backups=2,
    secateur_change_feed=True,
)


def compiled(statement: Any, **options: Any) -> str:
    return " ".join(str(statement.compile(dialect=SecateurDialect(**options))).split())


def table(*columns: Any, **options: Any) -> Table:
    return Table("t", MetaData(), Column("id", Integer, primary_key=True), *columns, **options)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(
            ORDERS,
            "CREATE TABLE orders ( customer VARCHAR(20) NOT NULL, id BIGINT NOT NULL, amount NUMERIC(10, 2) NOT NULL,"
            ' "Select" INTEGER, PRIMARY KEY (customer, id) ) PARTITION BY HASH (customer) PARTITIONS 16 BACKUPS 2 WITH'
            " (change_feed = true)",
            id="partitioned",
        ),
        pytest.param(
            table(secateur_replicated=True),
            "CREATE TABLE t ( id INTEGER NOT NULL, PRIMARY KEY (id) ) REPLICATED",
            id="replicated",
        ),
        pytest.param(
            Table("t", MetaData(), Column("k", Integer, index=True), Column("v", Integer)),
            "CREATE TABLE t ( k INTEGER, v INTEGER, PRIMARY KEY (k) )",
            id="the index of a data frame is the key",
        ),
        pytest.param(
            table(
                Column("u", Integer, CheckConstraint("u > 0"), server_default="1"),
                Column("v", DateTime, server_default=func.now(), nullable=False),
                CheckConstraint("u < id", name="small"),
            ),
            "CREATE TABLE t ( id INTEGER NOT NULL, u INTEGER DEFAULT '1' CHECK (u > 0), v TIMESTAMP DEFAULT now() NOT"
            " NULL, PRIMARY KEY (id), CONSTRAINT small CHECK (u < id) )",
            id="default and check",
        ),
        pytest.param(Table("t", MetaData(), Column("v", Integer)), "CREATE TABLE t ( v INTEGER )", id="no key"),
    ],
)
def test_create_table(made: Table, expected: str) -> None:
    assert compiled(CreateTable(made)) == expected


@pytest.mark.parametrize(
    ("made", "message"),
    [
        pytest.param(table(Column("u", ForeignKey(ORDERS.c.id))), "FOREIGN KEY is not supported", id="foreign key"),
        pytest.param(table(Column("u", Integer), UniqueConstraint("u")), "UNIQUE is not supported", id="unique"),
        pytest.param(table(Column("u", Integer, Identity())), "an identity", id="identity"),
        pytest.param(table(Column("u", Integer, Computed("id + 1"))), "a computed column", id="computed"),
        pytest.param(table(prefixes=["TEMPORARY"]), "a TEMPORARY table is not supported", id="temporary"),
    ],
)
def test_what_would_not_be_kept_is_refused(made: Table, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compiled(CreateTable(made))


def test_constraints_are_left_out_where_the_engine_is_told_to() -> None:
    made = table(
        Column("u", Integer, ForeignKey("other.id")),
        UniqueConstraint("u"),
    )
    Table("other", made.metadata, Column("id", Integer, primary_key=True))
    expected = "CREATE TABLE t ( id INTEGER NOT NULL, u INTEGER, PRIMARY KEY (id) )"
    assert compiled(CreateTable(made), leave_out_constraints=True) == expected


def test_indexes() -> None:
    made = table(Column("a", Integer), Column("b", Integer), schema="main")
    index = Index("t_by_a", made.c.a, made.c.b.desc())
    assert compiled(CreateIndex(index, if_not_exists=True)) == "CREATE INDEX IF NOT EXISTS t_by_a ON main.t (a, b DESC)"
    assert compiled(DropIndex(index)) == "DROP INDEX t_by_a"
    with pytest.raises(CompileError, match="'u': a unique index is not supported"):
        compiled(CreateIndex(Index("u", made.c.a, unique=True)))


WRITTEN = insert(ORDERS).values(customer="C1", id=1, amount=2)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        pytest.param(
            WRITTEN.on_conflict_do_update(
                index_elements=["customer", "id"],
                set_={"amount": ORDERS.c.amount + WRITTEN.excluded.amount},
                where=ORDERS.c.amount > 3,
            ).returning(ORDERS.c.id),
            "INSERT INTO orders (customer, id, amount) VALUES (?, ?, ?) ON CONFLICT (customer, id) DO UPDATE SET"
            " amount = (orders.amount + excluded.amount) WHERE orders.amount > ? RETURNING orders.id",
            id="do update",
        ),
        pytest.param(
            WRITTEN.on_conflict_do_nothing(),
            "INSERT INTO orders (customer, id, amount) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            id="do nothing",
        ),
        pytest.param(
            postgresql.insert(ORDERS).values(customer="C1", id=1).on_conflict_do_nothing(constraint=ORDERS.primary_key),
            "INSERT INTO orders (customer, id) VALUES (?, ?) ON CONFLICT (customer, id) DO NOTHING",
            id="an insert of the other dialect",
        ),
        pytest.param(
            update(ORDERS).values(amount=1).where(ORDERS.c.id == 2).returning(ORDERS.c.amount),
            "UPDATE orders SET amount=? WHERE orders.id = ? RETURNING orders.amount",
            id="update",
        ),
        pytest.param(
            delete(ORDERS).where(ORDERS.c.customer.regexp_match("^C", flags="i")),
            "DELETE FROM orders WHERE regexp_matches(orders.customer, ?, 'i')",
            id="delete by regular expression",
        ),
        pytest.param(
            select(ORDERS.c.Select.bitwise_xor(1), ORDERS.c.customer.regexp_replace("a", "b"))
            .where(tuple_(ORDERS.c.customer, ORDERS.c.id).in_([("C1", 1)]), ~ORDERS.c.customer.regexp_match("x"))
            .distinct()
            .limit(3)
            .offset(2),
            'SELECT DISTINCT xor(orders."Select", ?) AS anon_1, regexp_replace(orders.customer, ?, ?) AS anon_2 FROM'
            " orders WHERE (orders.customer, orders.id) IN (__[POSTCOMPILE_param_1]) AND NOT"
            " regexp_matches(orders.customer, ?) LIMIT ? OFFSET ?",
            id="select",
        ),
        pytest.param(select(postgresql.array([1, 2])), "SELECT [?, ?] AS anon_1", id="a list"),
    ],
)
def test_statements(statement: Any, expected: str) -> None:
    assert compiled(statement) == expected


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        pytest.param(select(ORDERS).with_for_update(), "locks rows for a transaction", id="for update"),
        pytest.param(WRITTEN.on_conflict_do_nothing(constraint="k"), "constraints have no names", id="constraint"),
        pytest.param(
            WRITTEN.on_conflict_do_nothing(index_elements=["id"], index_where=ORDERS.c.id > 1),
            "with index_where: only the primary key",
            id="a condition",
        ),
        pytest.param(select(ORDERS.c.customer.match("x")), "use like", id="search"),
        pytest.param(select(func.next_value(Sequence("s"))), "'s': there are none", id="sequence"),
    ],
)
def test_what_has_no_text_is_refused(statement: Any, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compiled(statement)


@pytest.mark.parametrize("word", ["order", "qualify", "pivot", "map", "semi"])
def test_reserved_words_are_quoted(word: str) -> None:
    assert compiled(select(literal(1).label(word))) == f'SELECT ? AS "{word}"'
