"""Orders and their lines as objects of SQLAlchemy's ORM, over three members that are Ray actors.

Run it with ``python -m examples.orders_orm``. The lines of a customer are in the partition of its orders, so each
statement about one customer, joins included, asks one member.
"""

from __future__ import annotations

from decimal import Decimal

from sqlalchemy import Numeric, create_engine, func, select, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, foreign, mapped_column, relationship

import secateur
from secateur.sqlalchemy_dialect import insert

__all__ = ["Base", "Line", "Order", "main"]

CUSTOMERS = 100
PLACED = {"secateur_partition_by": "HASH (customer) PARTITIONS 48", "secateur_backups": 1}


class Base(DeclarativeBase):
    """The tables of this example."""


class Line(Base):
    """What an order has of a product."""

    __tablename__ = "lines"
    __table_args__ = (PLACED,)

    customer: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    product: Mapped[str] = mapped_column(primary_key=True)
    price: Mapped[Decimal] = mapped_column(Numeric(10, 2))


class Order(Base):
    """An order of a customer."""

    __tablename__ = "orders"
    __table_args__ = (PLACED,)

    customer: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    status: Mapped[str] = mapped_column(server_default=text("'new'"))
    lines: Mapped[list[Line]] = relationship(
        primaryjoin=(foreign(Line.customer) == customer) & (foreign(Line.number) == number), order_by=Line.product
    )


def order(customer: int, number: int) -> Order:
    """An order of two products."""
    lines = [Line(product=product, price=Decimal(price)) for product, price in (("pear", "0.40"), ("saw", "24.90"))]
    return Order(customer=f"C{customer}", number=number, lines=lines)


def main() -> None:
    """Create the tables, keep objects, change and find them, and show how many members heard of it."""
    with secateur.start(members=3, runtime="ray") as cluster:
        engine = create_engine(f"{cluster.address}/?token={cluster.token}")
        Base.metadata.create_all(engine)
        with Session(engine) as session:
            session.add_all(order(customer, number) for customer in range(CUSTOMERS) for number in range(3))
            session.commit()

            first = session.get_one(Order, ("C7", 0))
            print(f"{first.customer} ordered {', '.join(line.product for line in first.lines)}: {first.status}")
            first.status = "sent"
            session.delete(first.lines.pop())
            session.commit()

            spent = func.sum(Line.price).label("spent")
            query = (
                select(Order.status, func.count(Order.number.distinct()), spent)
                .join(Order.lines)
                .where(Order.customer == "C7")
                .group_by(Order.status)
                .order_by(Order.status)
            )
            for status, orders, total in session.execute(query):
                print(f"{orders} {status}: {total}")

            again = insert(Line).values(customer="C7", number=0, product="pear", price=Decimal("0.35"))
            key = ["customer", "number", "product"]
            session.execute(again.on_conflict_do_update(index_elements=key, set_={"price": again.excluded.price}))
            session.commit()
            session.refresh(first)
            print(f"the price of a {first.lines[0].product} is {first.lines[0].price}")
        engine.dispose()
        with cluster.connect() as conn:
            cost = conn.execute("SELECT * FROM orders JOIN lines USING (customer) WHERE customer = 'C7'").stats
            assert cost is not None
            print(
                f"a customer's orders and lines were joined by {cost.members_touched} of {cost.members_total} members"
            )


if __name__ == "__main__":
    main()
