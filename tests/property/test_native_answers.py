"""The native executor answers in the bytes in which Python answers, or leaves the statement to it.

Random tables of all types, with NULLs, loaded and written since; random statements over few rows found by key. Each
frame that a member gets is answered both ways. ``SECATEUR_SEED`` sets the seed.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

import secateur
from secateur.cluster.member.member_statements import StatementHandlers
from secateur.native import native_module
from secateur.protocol import Operation
from secateur.wire import FRAME_PREFIX, FrameDecoder, FrameKind, Limits, PeerInfo, Reply, Request, encode_frame
from test_few_rows import AGGREGATES, COLUMNS, CUSTOMERS, PARTITIONS, row_of, statement, table_of

SEED = int(os.environ.get("SECATEUR_SEED", "20261128"))
STATEMENTS = int(50 * float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))
BROKEN = int(5_000 * float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))
PEER = PeerInfo(0, "nowhere", "the test", authenticated=True)
KEYS: dict[str, Callable[[int], Any]] = {
    "BIGINT": int,
    "INTEGER": int,
    "UBIGINT": int,
    "VARCHAR": lambda customer: f"é{customer}",
    "DATE": lambda customer: date(1969, 12, 25) + timedelta(customer),
    "TIMESTAMP": lambda customer: (
        datetime(1969, 12, 31, 23, 59) + timedelta(seconds=7 * customer, microseconds=customer)
    ),
    "UUID": lambda customer: UUID(int=customer << 120 | customer),
}
"""The types of the leading key column, and the value of each customer."""
STANDARD = {
    "SELECT * FROM {t} WHERE customer = ? AND line = ?": 2,
    "SELECT text, line, tiny, ratio FROM {t} WHERE customer = ?": 1,
    "SELECT count(*), sum(ratio) FROM {t} WHERE customer = ?": 1,
    "SELECT text, count(*), sum(unsigned), avg(tiny) FROM {t} WHERE customer = ? GROUP BY text ORDER BY text": 1,
    "SELECT line, day FROM {t} WHERE customer = ? AND tiny > -100 AND text <> 'a' AND day < DATE '2100-01-01'": 1,
    "SELECT moment FROM {t} WHERE customer = ? AND moment > TIMESTAMP '2024-02-01 00:00:00'": 1,
    "SELECT count(*), count(day), min(tiny), max(text), sum(price) FROM {t} WHERE customer IN (?, ?, ?)": 3,
    "SELECT line, moment FROM {t} WHERE customer = ? ORDER BY moment DESC NULLS LAST, line LIMIT 3": 1,
    "SELECT line, text FROM {t} WHERE customer = ? AND line >= 2 AND line < 7": 1,
    "SELECT t.line, n.name FROM {t} t JOIN names n ON n.id = t.line WHERE t.customer = ?": 1,
    "SELECT n.name, count(*) FROM {t} t LEFT JOIN names n ON n.id = t.line WHERE t.customer = ? GROUP BY n.name": 1,
}
"""Statements that are never left to Python, with how many parameters they have."""

pytestmark = pytest.mark.skipif(native_module() is None, reason="secateur-native is not installed: `make native` does")


def plain_statement(r: random.Random) -> tuple[str, list[Any]]:
    """A statement without conditions beside those on the key, over types that the native executor writes."""
    columns = [column for column in COLUMNS if column not in ("huge", "wide")]
    params = [r.randrange(CUSTOMERS + 1) for _ in range(r.choice([1, 1, 3]))]
    where = "customer = ?" if len(params) == 1 else "customer IN (?, ?, ?)"
    if len(params) == 1 and r.random() < 0.4:  # in the text, or twice as where a policy says it as well
        where, params = r.choice(
            [
                (f"customer = {params[0]}", []),
                ("customer = ? AND customer = ?", params * 2),
                ("customer = ? AND customer = ?", [*params, r.randrange(CUSTOMERS)]),
                (f"customer = {params[0]} AND customer = ?", params),
            ]
        )
    if "IN" not in where and r.random() < 0.4:
        lines = [r.randrange(9) for _ in range(r.choice([1, 2]))]
        where += " AND line = ?" if len(lines) == 1 else " AND line IN (?, ?)"
        params += lines
    aggregates = [r.choice(AGGREGATES).format(c=r.choice(["tiny", "text", "line", "unsigned"])) for _ in range(2)]
    aggregates.append(f"count({r.choice(columns)})")
    some = ", ".join(one for one in aggregates if "wide" not in one and one != "min(price)")
    match r.randrange(3):
        case 0:
            return f"SELECT {', '.join(r.sample(columns, r.randrange(1, 5)))} FROM t WHERE {where}", params
        case 1:
            return f"SELECT {some} FROM t WHERE {where}", params
        case _:
            keys = ", ".join(r.sample(["tiny", "text", "flag", "line", "customer"], r.choice([1, 1, 2])))
            order = r.choice(["", f" ORDER BY {keys.split(',')[0]} {r.choice(['', 'DESC', 'NULLS FIRST'])}"])
            return f"SELECT {keys}, {some} FROM t WHERE {where} GROUP BY {keys}{order}", params


def ordered_statement(r: random.Random) -> tuple[str, list[Any]]:
    """Rows of one customer in an order, some of them, or of a span of keys."""
    where, params = "customer = ?", [r.randrange(CUSTOMERS + 1)]
    for end in r.sample([" AND line >= ?", " AND line > ?", " AND line < ?", " AND line <= ?"], r.randrange(3)):
        where += end
        params.append(r.randrange(9))
    if r.random() < 0.3:
        where += " AND tiny > ?"
        params.append(r.randrange(-100, 100))
    columns = r.sample([column for column in COLUMNS if column not in ("huge", "wide")], r.randrange(1, 4))
    terms = r.sample(["tiny", "text", "line", "day", "moment", "ratio", "price", "unsigned"], r.randrange(3))
    order = ", ".join(f"{term} {r.choice(['', 'DESC'])} {r.choice(['', 'NULLS FIRST'])}" for term in terms)
    sql = f"SELECT {', '.join(columns)} FROM t WHERE {where}{' ORDER BY ' * bool(order)}{order}"
    if r.random() < 0.6:
        sql += " LIMIT " + r.choice(["2", "5", "?", "100"])
        params += [r.randrange(6)] * ("LIMIT ?" in sql)
        sql += r.choice(["", "", " OFFSET 1"])
    return sql, params


def joined_statement(r: random.Random) -> tuple[str, list[Any]]:
    """Rows of one customer with those of a replicated table, or of a table that is partitioned as theirs is."""
    keys = {"names n": "n.id = t.line", "others n": "n.customer = t.customer AND n.line = t.line"}
    other = r.choice(list(keys))
    kind = r.choice(["JOIN", "JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN"])
    columns = ["t.line", "t.text", "t.tiny", "t.day"]
    if kind in ("JOIN", "LEFT JOIN"):
        columns += ["n.name", "n.weight"]
    params = [r.randrange(CUSTOMERS + 1) for _ in range(r.choice([1, 1, 3]))]
    where = "t.customer = ?" if len(params) == 1 else "t.customer IN (?, ?, ?)"
    if len(params) == 1 and r.random() < 0.2:  # the whole list is of the second column
        where += " AND t.line IN (?, ?)"
        params += [r.randrange(9), r.randrange(9)]
    if kind == "JOIN" and r.random() < 0.3:
        where += " AND n.weight > ?"
        params.append(r.randrange(9))
    if r.random() < 0.3:
        where += " AND t.tiny > ?"
        params.append(r.randrange(-100, 100))
    table = f"t {kind} {other} ON {keys[other]} WHERE {where}"
    if r.random() < 0.3:
        key = r.choice(columns)
        return f"SELECT {key}, count(*), max(t.line) FROM {table} GROUP BY {key}", params
    return f"SELECT {', '.join(r.sample(columns, r.randrange(1, 4)))} FROM {table}", params


class Compared:
    """Answers each short request in both ways, and counts how often the native executor answered."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin anew."""
        self.counts: Counter[tuple[str, bool]] = Counter()
        self.differences: list[str] = []
        self.frames: list[tuple[StatementHandlers, bytes]] = []
        """Those that were answered natively."""

    def answered(self, handlers: StatementHandlers, frame: bytes, peer: PeerInfo) -> bytes | None:
        assert handlers._statements.native is not None
        answer: bytes | None = handlers._statements.native.executor.answer(frame, peer)
        only = FrameDecoder(Limits()).only(frame)
        general = {
            Operation.EXECUTE.code: (Operation.EXECUTE, handlers._statements.execute),
            Operation.EXECUTE_FIRST_STAGE.code: (Operation.EXECUTE_FIRST_STAGE, handlers._statements.first_stages.run),
            Operation.GET_ROWS.code: (Operation.GET_ROWS, handlers._key_reads.get),
        }
        if only is None or only.operation not in general:
            assert answer is None
            return None
        operation, run = general[only.operation]
        self.counts[operation.title, answer is not None] += 1
        if answer is None:
            return None
        self.frames.append((handlers, frame))
        reply = run(Request(operation, operation.requests.decode(only.header), only.payload, PEER))
        assert isinstance(reply, Reply), "the native executor has answered what waits in Python"
        header, native = operation.replies.encode(reply.message), FrameDecoder(Limits()).only(answer)
        assert native is not None
        if operation is Operation.EXECUTE_FIRST_STAGE:  # the one figure of time
            header, native_header = (
                operation.replies.encode(replace(operation.replies.decode(one), busy_ms=0.0))
                for one in (header, native.header)
            )
        else:
            native_header = native.header
        assert encode_frame(FrameKind.RESPONSE, native.header, request_id=only.request_id) == [answer]
        if header != native_header or reply.payload:
            self.differences.append(f"{reply.message} is not {operation.replies.decode(native.header)}")
        return answer


COMPARED = Compared()


@pytest.fixture
def compared() -> Compared:
    COMPARED.begin()
    return COMPARED


@pytest.fixture(scope="module", params=[1, 3], ids=["one member", "three members"])
def connection(request: pytest.FixtureRequest) -> Iterator[secateur.Connection]:
    with (
        pytest.MonkeyPatch.context() as patch,
        secateur.start(members=request.param, runtime="embedded", hot_key_sampling=0) as running,
    ):
        patch.setattr(StatementHandlers, "answered", property(lambda handlers: partial(COMPARED.answered, handlers)))
        with running.connect() as connected:
            yield connected


def create(connection: secateur.Connection, r: random.Random, name: str, key_type: str, partitions: str) -> list[Any]:
    """A table with rows that were loaded and rows that were written since, and the customers that it has."""
    columns = {column: kind for column, kind in COLUMNS.items() if name == "t" or column not in ("huge", "wide")}
    connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.execute(
        f"CREATE TABLE {name} (customer {key_type}, line INTEGER,"
        f" {', '.join(f'{column} {kind}' for column, (kind, _) in columns.items())}, PRIMARY KEY (customer, line))"
        f" PARTITION BY {partitions}"
    )
    table = connection.table(name)

    def row(customer: int, line: int) -> tuple[Any, ...]:
        values = dict(zip(["customer", "line", *COLUMNS], row_of(r, customer, line), strict=True))
        values["customer"] = KEYS[key_type](customer)
        return tuple(values[column] for column in table.schema.names)

    table.load(
        table_of([row(customer, line) for customer in range(CUSTOMERS) for line in range(r.randrange(9))], table.schema)
    )
    for _ in range(5):
        table.put(row(r.randrange(CUSTOMERS), r.randrange(9)))
    return [KEYS[key_type](customer) for customer in range(CUSTOMERS + 1)]


def create_joined(connection: secateur.Connection, r: random.Random, partitions: str) -> None:
    """Tables to join with ``t``: one that is replicated, and one that is partitioned as it is."""
    for name in ("names", "others"):
        connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.execute("CREATE TABLE names (id INTEGER PRIMARY KEY, name VARCHAR, weight INTEGER) REPLICATED")
    connection.execute(
        "CREATE TABLE others (customer BIGINT, line INTEGER, name VARCHAR, weight INTEGER,"
        f" PRIMARY KEY (customer, line)) PARTITION BY {partitions}"
    )
    connection.table("names").put_many([(line, r.choice(["é", "b", None]), r.randrange(9)) for line in range(7)])
    lines = [(customer, line) for customer in range(CUSTOMERS) for line in range(r.randrange(9))]
    rows = [
        {"customer": customer, "line": line, "name": r.choice(["x", None]), "weight": r.randrange(9)}
        for customer, line in lines
    ]
    connection.table("others").load(rows)


@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize("partitions", PARTITIONS)
def test_both_ways_have_the_same_bytes(connection: secateur.Connection, compared: Compared, partitions: str) -> None:
    r = random.Random(f"{SEED} {partitions}")
    create(connection, r, "t", "BIGINT", partitions)
    create_joined(connection, r, partitions)
    table = connection.table("t")
    for _ in range(STATEMENTS):
        sql, params = r.choice([statement, plain_statement, ordered_statement, joined_statement])(r)
        for _ in range(2):  # the first execution of a plan makes its program
            try:
                connection.execute(sql, params).fetchall()
            except secateur.Error:
                break
        keys = [(r.randrange(CUSTOMERS), r.randrange(9)) for _ in range(r.choice([1, 1, 5, 40]))]
        table.get_many(keys)
    assert not compared.differences, f"SECATEUR_SEED={SEED}: {compared.differences[0]}"
    if partitions == PARTITIONS[0]:
        executed, first_stages = compared.counts["execute", True], compared.counts["execute_first_stage", True]
        assert executed + first_stages > STATEMENTS // 3, f"few were answered: {compared.counts}"


@pytest.mark.parametrize("key_type", KEYS)
def test_standard_requests_are_never_left_to_python(
    connection: secateur.Connection, compared: Compared, key_type: str
) -> None:
    r, name = random.Random(f"{SEED} {key_type}"), "standard"
    customers = create(connection, r, name, key_type, PARTITIONS[0])
    table = connection.table(name)
    table.load(connection.execute(f"SELECT * FROM {name}").fetch_arrow_table(), mode="overwrite")  # no recent change
    create_joined(connection, r, PARTITIONS[0])
    names = connection.table("names")
    names.load(connection.execute("SELECT * FROM names").fetch_arrow_table(), mode="overwrite")

    def ask(customer: Any) -> None:
        for sql, count in STANDARD.items():
            if key_type == "UUID" and ("JOIN" in sql or "AND t" in sql.replace("moment", "tiny")):
                continue  # with conditions, plain values are compared with the key as well, and UUIDs are not
            params = [customer, *r.sample(customers, count - 1)]
            if "line = ?" in sql:
                params[1] = r.randrange(9)
            connection.execute(sql.format(t=name), params).fetchall()
        table.get((customer, r.randrange(9)))
        table.get_many([(other, r.randrange(9)) for other in r.sample(customers, 5)])

    some = r.sample(customers, 9)
    for _ in range(3):  # each member makes the programs of what it is asked
        for customer in some:
            ask(customer)
    compared.counts.clear()
    for customer in some:
        ask(customer)
    assert not compared.differences, f"SECATEUR_SEED={SEED}: {compared.differences[0]}"
    assert not [what for what, is_native in compared.counts if not is_native], compared.counts


def test_broken_frames_are_answered_or_left_to_python(connection: secateur.Connection, compared: Compared) -> None:
    r = random.Random(SEED)
    customers = create(connection, r, "broken", "VARCHAR", PARTITIONS[0])
    create_joined(connection, r, PARTITIONS[0])
    for customer in customers * 2:
        for sql, count in STANDARD.items():
            params = [customer, *r.sample(customers, count - 1)]
            connection.execute(sql.format(t="broken"), [*params[:1], 3] if "line = ?" in sql else params).fetchall()
        connection.table("broken").get((customer, 3))
    for _ in range(BROKEN):
        handlers, frame = r.choice(compared.frames)
        native = handlers._statements.native
        assert native is not None
        broken = bytearray(frame)
        match r.randrange(4):
            case 0:  # the lengths in its head are right
                del broken[r.randrange(24, len(broken)) :]
                broken[12:16] = (len(broken) - 24).to_bytes(4, "little")
            case 1:
                at = r.randrange(24, len(broken))
                broken[at:at] = r.randbytes(r.randrange(1, 9))
                broken[12:16] = (len(broken) - 24).to_bytes(4, "little")
            case _:
                for _ in range(r.randrange(1, 4)):
                    broken[r.randrange(len(broken))] = r.randrange(256)
        answer = native.executor.answer(bytes(broken), PEER)
        assert answer is None or answer.startswith(FRAME_PREFIX)
