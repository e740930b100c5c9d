"""Row policies: a tenant sees and changes its own rows, by every door, and whatever it sends."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from eventually import eventually
from raw_frames import RawConnection

import secateur
from secateur.cluster import Cluster
from secateur.errors import (
    AuthenticationError,
    DataError,
    DuplicateKeyError,
    Error,
    IntegrityError,
    NotSupportedError,
    PolicyError,
    ProgrammingError,
    ProtocolError,
    SqlSyntaxError,
    TopologyChangedError,
    UnknownColumnError,
    UnknownTableError,
)
from secateur.protocol import (
    ChangeMany,
    ChangeOnePartition,
    ChangeSeveralPartitions,
    ChangeTable,
    DuplicateMatchPolicy,
    Execute,
    ExecuteFirstStage,
    ExecuteMany,
    GetRows,
    Message,
    OpenSnapshot,
    Prepare,
    PreparedAnswer,
    Profile,
    PublishLoad,
    ReadChanges,
    StageRows,
    WriteMany,
    WriteRows,
    decode,
    encode,
    operation_of,
)
from secateur.wire import ShortTable, encode_rows

TENANTS, ROWS = 10, 200
SEED = int(os.environ.get("SECATEUR_SEED", "20261130"))
MUTATED_REQUESTS = int(os.environ.get("SECATEUR_MUTATED_REQUESTS", "900"))
DDL = (
    "CREATE TABLE {} (tenant VARCHAR, id BIGINT, amount DOUBLE, note VARCHAR, PRIMARY KEY (tenant, id))"
    " PARTITION BY HASH (tenant) PARTITIONS 31"
)


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=10.0) as running, running.connect() as conn:
        conn.execute("CREATE ROLE reader")
        conn.execute("CREATE ROLE clerk")
        for name in ("orders", "items"):
            conn.execute(DDL.format(name))
        conn.execute("CREATE TABLE loose (id BIGINT PRIMARY KEY, tenant VARCHAR, v BIGINT)")
        conn.execute("CREATE TABLE fed (tenant VARCHAR, id BIGINT, PRIMARY KEY (tenant, id)) WITH (change_feed = true)")
        for name in ("orders", "items", "loose", "fed"):
            conn.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name} TO reader")
            conn.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
            conn.execute(f"CREATE POLICY own ON {name} USING (tenant = session('tenant'))")
        conn.execute("CREATE VIEW large AS SELECT tenant, id FROM orders WHERE amount > 100")
        conn.execute("GRANT SELECT ON large TO reader")
        yield running


@pytest.fixture
def admin(own: Cluster) -> Iterator[secateur.Connection]:
    """With the rows of all tenants, as they are before each test."""
    with own.connect() as conn:
        rows = [(f"C{key % TENANTS}", key, key * 1.5, "7" if key % TENANTS else "x") for key in range(ROWS)]
        for name in ("orders", "items"):
            conn.execute(f"DELETE FROM {name}")
            conn.cursor().executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", rows)
        conn.execute("DELETE FROM loose")
        conn.cursor().executemany(
            "INSERT INTO loose VALUES (?, ?, ?)", [(key, f"C{key % 3}", key) for key in range(30)]
        )
        yield conn


@pytest.fixture
def bearer(own: Cluster) -> Iterator[Callable[..., secateur.Connection]]:
    """Connects as a tenant."""
    made: list[secateur.Connection] = []

    def connect(tenant: str | None = "C2", *roles: str) -> secateur.Connection:
        claims = {} if tenant is None else {"tenant": tenant}
        made.append(secateur.connect(own.address, own.tokens.create(roles or ["reader"], claims=claims).token))
        return made[-1]

    yield connect
    for conn in made:
        conn.close()


def others(admin: secateur.Connection) -> list[tuple[Any, ...]]:
    """What a tenant must neither see nor change."""
    found = []
    for name in ("orders", "items", "loose"):
        found += admin.execute(f"SELECT * FROM {name} WHERE tenant <> 'C2' ORDER BY ALL").fetchall()
    return found


QUERIES = (
    "SELECT tenant, id FROM orders",
    "SELECT tenant, id FROM orders WHERE tenant = 'C3' OR tenant <> 'C2' OR TRUE",
    "SELECT o.tenant, i.id FROM orders o FULL JOIN items i ON o.id = i.id",
    "SELECT tenant, count(*) FROM orders GROUP BY ROLLUP (tenant) HAVING tenant IS NOT NULL",
    "SELECT tenant, id FROM (SELECT * FROM orders UNION ALL SELECT * FROM items) ORDER BY 2",
    (
        "WITH RECURSIVE r AS (SELECT tenant, id FROM orders UNION SELECT i.tenant, i.id FROM items i JOIN r USING (id))"
        " FROM r"
    ),
    "SELECT tenant, id FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.id = o.id + 1 OR TRUE)",
    "SELECT unnest(list(tenant)), max(id) FROM orders GROUP BY id % 2",
    "SELECT tenant, id FROM large",
    "SELECT x.tenant, 1 FROM orders AS x (tenant, id, amount, note)",
    "SELECT (o).tenant, 1 FROM (SELECT o FROM orders o)",
    "SELECT arg_max(tenant, amount), 1 FROM orders",
    "SELECT tenant, id FROM main.orders TABLESAMPLE 100 PERCENT",
    "TABLE orders",
    "FROM orders SELECT COLUMNS('tenant|id')",
    "SELECT tenant, v FROM loose",
    "SELECT tenant, v FROM loose WHERE id IN (SELECT id FROM orders)",
    "SELECT tenant, v FROM loose WHERE id = (SELECT min(id) FROM orders)",
    "SELECT (SELECT max(tenant) FROM orders), 1",
    "SELECT tenant, row_number() OVER (ORDER BY id) FROM orders QUALIFY tenant >= 'C0'",
)


@pytest.mark.smoke
@pytest.mark.parametrize("sql", QUERIES)
def test_a_query_has_the_rows_of_its_tenant_alone(
    admin: secateur.Connection, bearer: Callable[..., secateur.Connection], sql: str
) -> None:
    conn = bearer()
    for setting in ("on", "off", "verify"):
        conn.execute(f"SET pruning = {setting}")
        for _ in range(3):
            rows = conn.execute(sql).fetchall()
            assert {row[0] for row in rows} <= {"C2", None}, sql
            assert rows
    nobody = bearer(None)
    assert all(row[0] is None for row in nobody.execute(sql).fetchall())


def test_a_policy_removes_members_from_a_statement(
    admin: secateur.Connection, bearer: Callable[..., secateur.Connection]
) -> None:
    conn = bearer()
    cur = conn.execute("SELECT count(*), sum(amount) FROM orders")
    assert cur.fetchall() == admin.execute("SELECT count(*), sum(amount) FROM orders WHERE tenant = 'C2'").fetchall()
    assert cur.stats is not None
    assert (cur.stats.members_touched, cur.stats.partitions_read) == (1, 1)
    joined = conn.execute("SELECT count(*) FROM orders JOIN items USING (tenant, id)")
    assert joined.fetchall() == [(ROWS // TENANTS,)]
    assert joined.stats is not None
    assert (joined.stats.members_touched, joined.stats.partitions_read) == (1, 2)
    stepped = conn.execute("SELECT v FROM loose WHERE id IN (SELECT id FROM orders)")
    assert stepped.fetchall() == [(2,)]
    assert stepped.stats is not None
    assert [step.values for step in stepped.stats.steps] == [ROWS // TENANTS], "the query that runs first has claims"
    text = str(conn.explain("SELECT id FROM orders WHERE id = 5"))
    assert "policy own: tenant = session('tenant')" in text
    assert "session('tenant')" in text.split("tree: ")[1].split("\n")[0]
    (scan,) = conn.explain("SELECT id FROM orders").to_dict()["pruning"]["scans"]
    assert scan["policies"] == ["own"]
    assert conn.execute("SELECT session('tenant'), session('no claim')").fetchall() == [("C2", None)]


def test_statements_that_may_fail_see_no_value_of_others(
    admin: secateur.Connection, bearer: Callable[..., secateur.Connection]
) -> None:
    """The notes of C0 are no numbers; those of C2 are. Both are in one partition of ``one``."""
    admin.execute("CREATE TABLE IF NOT EXISTS one (id BIGINT PRIMARY KEY, tenant VARCHAR, note VARCHAR)")
    admin.execute("DELETE FROM one")
    admin.execute("INSERT INTO one VALUES (1, 'C0', 'secret'), (2, 'C2', '7'), (3, 'C0', 'hidden'), (4, 'C2', '8')")
    admin.execute("GRANT SELECT, UPDATE ON one TO reader")
    admin.execute("ALTER TABLE one ENABLE ROW LEVEL SECURITY")
    admin.execute("DROP POLICY IF EXISTS own ON one")
    admin.execute("CREATE POLICY own ON one USING (tenant = session('tenant'))")
    conn = bearer()
    for sql in (
        "SELECT count(*) FROM one WHERE CAST(note AS INTEGER) > 0",
        "SELECT count(*) FROM one WHERE note::INTEGER > 0 AND id > 0",
        "SELECT count(*) FROM (SELECT note::INTEGER AS n FROM one) WHERE n > 0",
        "SELECT count(*) FROM one a JOIN one b ON a.note::INTEGER = b.note::INTEGER",
        "SELECT count(DISTINCT n) FROM (SELECT note::INTEGER AS n FROM one GROUP BY ALL HAVING n > 0)",
        "SELECT count(*) FROM one WHERE CASE WHEN note = 'secret' THEN error(note) ELSE TRUE END",
    ):
        assert conn.execute(sql).fetchall() == [(2,)], sql
    assert conn.execute("UPDATE one SET note = (note::INTEGER + 1)::VARCHAR").rowcount == 2
    with pytest.raises(DataError, match=r"secret|hidden"):
        admin.execute("SELECT count(*) FROM one WHERE CAST(note AS INTEGER) > 0").fetchall()
    admin.execute("DROP TABLE one")


WRITES: tuple[tuple[str, list[Any]], ...] = (
    ("INSERT INTO orders VALUES ('C3', 1000, 1, 'a')", []),
    ("INSERT INTO orders VALUES (?, 1001, 1, 'a'), ('C2', 1002, 1, 'a')", ["C3"]),
    ("INSERT INTO orders VALUES ('C3', 13, 5, 'b') ON CONFLICT DO UPDATE SET amount = excluded.amount", []),
    ("INSERT INTO orders VALUES (?, ?, 5, 'b') ON CONFLICT DO UPDATE SET amount = 0", ["C3", 13]),
    ("INSERT OR REPLACE INTO orders VALUES ('C3', 13, 5, 'b')", []),
    ("INSERT OR IGNORE INTO orders VALUES ('C3', 13, 5, 'b')", []),
    ("INSERT INTO orders SELECT 'C4', id + 5000, amount, note FROM orders", []),
    ("INSERT INTO orders SELECT 'C4', id, amount, note FROM orders ON CONFLICT DO NOTHING", []),
    ("UPDATE orders SET tenant = 'C9' WHERE id = 12", []),
    (
        (
            "MERGE INTO orders t USING (SELECT 'C3' AS tenant, 13 AS id) s ON t.tenant = s.tenant AND t.id = s.id"
            " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.tenant, s.id, 0, 'm')"
        ),
        [],
    ),
    ("INSERT INTO loose VALUES (100, 'C1', 5)", []),
    ("INSERT OR REPLACE INTO loose VALUES (1, 'C2', 5)", []),
    ("INSERT INTO loose VALUES (1, 'C2', 5) ON CONFLICT DO UPDATE SET v = 0, tenant = 'C2'", []),
    ("INSERT INTO loose VALUES (?, ?, 5) ON CONFLICT DO UPDATE SET v = excluded.v", [1, "C2"]),
    ("UPDATE loose SET tenant = 'C1' WHERE id = 2", []),
    ("UPDATE loose SET tenant = 'C1'", []),
)


@pytest.mark.parametrize(("sql", "params"), WRITES)
def test_a_row_of_another_tenant_is_not_written(
    admin: secateur.Connection, bearer: Callable[..., secateur.Connection], sql: str, params: list[Any]
) -> None:
    before, conn = others(admin), bearer()
    mine = admin.execute("SELECT count(*) FROM orders WHERE tenant = 'C2'").fetchall()
    for _ in range(2):
        with pytest.raises((PolicyError, IntegrityError)):
            conn.execute(sql, params)
    with pytest.raises((PolicyError, IntegrityError)):
        conn.cursor().executemany(sql, [params] * 2)
    assert others(admin) == before
    assert admin.execute("SELECT count(*) FROM orders WHERE tenant = 'C2'").fetchall() == mine


@pytest.mark.smoke
def test_changes_are_those_of_rows_that_are_seen(
    admin: secateur.Connection, bearer: Callable[..., secateur.Connection]
) -> None:
    before, conn = others(admin), bearer()
    count = ROWS // TENANTS
    for sql, rows in (
        ("UPDATE orders SET amount = 0 WHERE id = 12", 1),
        ("UPDATE orders SET amount = 0 WHERE id = 13", 0),
        ("UPDATE orders SET amount = amount + 1", count),
        ("UPDATE orders SET amount = 3 FROM items WHERE items.id = orders.id", count),
        ("DELETE FROM orders WHERE id = 13", 0),
        ("DELETE FROM orders WHERE tenant = 'C3'", 0),
        ("INSERT INTO orders VALUES ('C2', 1000, 1, 'a')", 1),
        ("INSERT INTO orders VALUES ('C2', 12, 5, 'b') ON CONFLICT DO UPDATE SET amount = excluded.amount", 1),
        ("INSERT INTO orders SELECT tenant, id + 5000, amount, note FROM orders", count + 1),
        ("MERGE INTO items t USING orders s USING (tenant, id) WHEN MATCHED THEN UPDATE SET note = 'm'", count),
        ("MERGE INTO items t USING (SELECT 1 AS a) s ON FALSE WHEN NOT MATCHED BY SOURCE THEN DELETE", count),
        ("UPDATE loose SET v = -1", 10),
        ("DELETE FROM loose WHERE id = 1", 0),
        ("DELETE FROM loose", 10),
        ("TRUNCATE orders", 2 * (count + 1)),
    ):
        assert conn.execute(sql).rowcount == rows, sql
        assert others(admin) == before, sql
    returned = bearer("C3").execute("DELETE FROM orders RETURNING tenant").fetchall()
    assert returned == [("C3",)] * count


OWN_AND_READ = [(1, "C2", "C2", 0), (2, "C2", "C3", 1), (3, "C3", "C2", 0), (4, "C3", "C3", 1), (5, "C2", "C2", 2)]
"""Rows of the table of the next test: C2 sees 1, 2, 3 and 5, may update 1, 2 and 5, and may delete 1 and 3."""
SELF = "USING (SELECT id FROM shared) x ON x.id = t.id"
OF_EACH_COMMAND = {
    "UPDATE shared SET v = 9": {1: 9, 2: 9, 5: 9},
    "UPDATE shared SET v = 9 FROM shared x WHERE x.id = shared.id": {1: 9, 2: 9, 5: 9},
    "UPDATE shared SET owner = 'C2', v = 9 WHERE id IN (3, 4)": {},
    "DELETE FROM shared": {1: None, 3: None},
    "DELETE FROM shared USING shared x WHERE x.id = shared.id": {1: None, 3: None},
    f"MERGE INTO shared t {SELF} WHEN MATCHED THEN UPDATE SET owner = 'C2', v = 9": {1: 9, 2: 9, 5: 9},
    f"MERGE INTO shared t {SELF} WHEN MATCHED THEN DELETE": {1: None, 3: None},
    f"MERGE INTO shared t {SELF} WHEN MATCHED AND v > 0 THEN DELETE WHEN MATCHED THEN UPDATE SET owner = 'C2', v = 9": {
        1: 9
    },
    "MERGE INTO shared t USING (SELECT 3 AS id) x USING (id) WHEN NOT MATCHED THEN INSERT VALUES (3, 'C2', '', 9)": {},
    "INSERT INTO shared SELECT id, 'C2', reader, 9 FROM shared ON CONFLICT DO NOTHING": {},
    "INSERT INTO shared VALUES (3, 'C2', 'C2', 9) ON CONFLICT DO NOTHING RETURNING id": {},
    "INSERT INTO shared VALUES (3, 'C2', 'C2', 9), (6, 'C2', 'C2', 9) ON CONFLICT DO NOTHING": {6: 9},
    "INSERT INTO shared SELECT id, owner, '', 9 FROM shared WHERE id < 3 ON CONFLICT DO UPDATE SET v = 9": {1: 9, 2: 9},
    "INSERT OR REPLACE INTO shared SELECT id, owner, reader, 9 FROM shared WHERE id < 3": {1: 9, 2: 9},
}
"""The values of ``v`` that change, by id; None for a row that is deleted."""


@pytest.mark.parametrize("pruning", ["on", "verify"])
def test_each_command_has_its_own_policies(
    own: Cluster, bearer: Callable[..., secateur.Connection], pruning: str
) -> None:
    with own.connect() as admin:
        admin.execute("CREATE TABLE shared (id BIGINT PRIMARY KEY, owner VARCHAR, reader VARCHAR, v BIGINT)")
        admin.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON shared TO reader")
        admin.execute("ALTER TABLE shared ENABLE ROW LEVEL SECURITY")
        mine = "owner = session('tenant')"
        admin.execute(f"CREATE POLICY s ON shared FOR SELECT USING ({mine} OR reader = session('tenant'))")
        admin.execute(f"CREATE POLICY i ON shared FOR INSERT WITH CHECK ({mine})")
        admin.execute(f"CREATE POLICY u ON shared FOR UPDATE USING ({mine})")
        admin.execute("CREATE POLICY d ON shared FOR DELETE USING (reader = session('tenant') AND v = 0)")
        conn = bearer()
        conn.execute(f"SET pruning = {pruning}")
        for sql, changed in OF_EACH_COMMAND.items():
            admin.execute("DELETE FROM shared")
            admin.cursor().executemany("INSERT INTO shared VALUES (?, ?, ?, ?)", OWN_AND_READ)
            assert conn.execute(sql).rowcount == len(changed), sql
            values = {key: v for key, _, _, v in OWN_AND_READ} | changed
            found = dict(admin.execute("SELECT id, v FROM shared").fetchall())
            assert found == {key: v for key, v in values.items() if v is not None}, sql
            taken = admin.execute("SELECT id FROM shared WHERE id IN (3, 4) AND owner <> 'C3'").fetchall()
            assert taken == [], sql
        for sql in (
            "INSERT OR REPLACE INTO shared SELECT id, 'C2', reader, 9 FROM shared",
            "INSERT INTO shared VALUES (4, 'C2', 'C2', 9) ON CONFLICT DO UPDATE SET owner = 'C2'",
        ):
            with pytest.raises(PolicyError, match="do not let this principal update"):
                conn.execute(sql)
        with pytest.raises(PolicyError, match=r"row policies of the table \(i\)"):
            conn.execute("INSERT INTO shared VALUES (7, 'C3', 'C2', 9)")
        admin.execute("DROP TABLE shared")


ROW = "(4, 'C2', '', 9)"
"""A row that C2 may write, with the key of one that is hidden from C2."""
ON_CONFLICT: dict[str, list[int] | type[Error]] = {
    f"INSERT INTO shared VALUES {ROW} ON CONFLICT DO NOTHING": [],
    f"INSERT INTO shared VALUES {ROW} ON CONFLICT (id) DO NOTHING RETURNING id": [],
    f"INSERT OR IGNORE INTO shared VALUES {ROW} RETURNING id": [],
    f"INSERT INTO shared VALUES {ROW}, (1, 'C2', '', 9), (6, 'C2', '', 9), (6, 'C2', '', 8), (7, 'C2', '', 9)"
    " ON CONFLICT DO NOTHING RETURNING id": [6, 7],
    f"INSERT INTO shared VALUES {ROW}, (1, 'C2', '', 9), (6, 'C2', '', 9), (6, 'C2', '', 8), (7, 'C2', '', 9)"
    " ON CONFLICT DO NOTHING": [6, 7],
    "INSERT INTO shared SELECT id + 1, 'C2', '', 9 FROM shared ON CONFLICT DO NOTHING": [6],
    "INSERT INTO shared SELECT id + 1, 'C2', '', 9 FROM shared ON CONFLICT DO NOTHING RETURNING id": [6],
    "INSERT INTO shared SELECT range, 'C2', '', 9 FROM range(9) ON CONFLICT DO NOTHING RETURNING id": [0, 6, 7, 8],
    "INSERT INTO shared VALUES ((SELECT max(id) - 1 FROM shared), 'C2', '', 9) ON CONFLICT DO NOTHING": [],
    "INSERT INTO shared VALUES (4, 'C3', 'C2', 9) ON CONFLICT DO NOTHING": PolicyError,
    "INSERT INTO shared VALUES (4, 'C3', 'C2', 9) ON CONFLICT DO NOTHING RETURNING id": PolicyError,
    "INSERT INTO shared VALUES (1, 'C3', 'C2', 9) ON CONFLICT DO NOTHING RETURNING id": PolicyError,
    "INSERT INTO shared VALUES (7, 'C3', 'C2', 9) ON CONFLICT DO NOTHING RETURNING id": PolicyError,
    f"INSERT INTO shared VALUES {ROW}": DuplicateKeyError,
    f"INSERT INTO shared VALUES {ROW} RETURNING id": DuplicateKeyError,
    f"INSERT INTO shared VALUES {ROW} ON CONFLICT (id) DO UPDATE SET v = 9": PolicyError,
    f"INSERT INTO shared VALUES {ROW} ON CONFLICT (id) DO UPDATE SET v = 9 RETURNING id, owner": PolicyError,
    "INSERT INTO shared VALUES (3, 'C2', '', 9) ON CONFLICT (id) DO UPDATE SET v = 9": PolicyError,
    f"INSERT INTO shared VALUES {ROW} ON CONFLICT (id) DO UPDATE SET v = 9 WHERE shared.v < 100": PolicyError,
    f"INSERT INTO shared VALUES {ROW} ON CONFLICT (id) DO UPDATE SET v = shared.owner::INTEGER": PolicyError,
    f"INSERT INTO shared VALUES {ROW} ON CONFLICT (id) DO UPDATE SET owner = 'C2'": PolicyError,
    f"INSERT INTO shared VALUES (6, 'C2', '', 9), {ROW} ON CONFLICT (id) DO UPDATE SET v = excluded.v": PolicyError,
    f"INSERT OR REPLACE INTO shared VALUES {ROW}": PolicyError,
    "INSERT INTO shared VALUES (1, 'C2', '', 9) ON CONFLICT (id) DO UPDATE SET owner = 'C3'": PolicyError,
    "INSERT INTO shared VALUES (1, 'C2', '', 9) ON CONFLICT (id) DO UPDATE SET v = 9 WHERE shared.v > 100": [],
    "INSERT INTO shared VALUES (1, 'C2', '', 9) ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING id": [1],
    "INSERT INTO shared VALUES (6, 'C2', '', 9) ON CONFLICT (id) DO UPDATE SET v = 9": [6],
    "INSERT INTO shared VALUES (6, 'C2', '', 9), (1, 'C2', '', 9) ON CONFLICT (id) DO UPDATE SET v = 9": [1, 6],
    "INSERT OR REPLACE INTO shared VALUES (1, 'C2', '', 9), (6, 'C2', '', 9)": [1, 6],
    "MERGE INTO shared t USING (SELECT 4 AS id) x USING (id) WHEN NOT MATCHED THEN INSERT VALUES (4, 'C2', '', 9)": (
        DuplicateKeyError
    ),
    "MERGE INTO shared t USING (SELECT 4 AS id) x USING (id) WHEN NOT MATCHED THEN INSERT VALUES (4, 'C3', 'C2', 9)": (
        PolicyError
    ),
    "MERGE INTO shared t USING (SELECT 4 AS id) x USING (id) WHEN MATCHED THEN UPDATE SET v = 9": [],
    "UPDATE shared SET id = 4 WHERE id = 1": DuplicateKeyError,
}
"""The keys of the rows that get ``v = 9``, or the error: all as PostgreSQL 15 has it."""
WHERE_HIDDEN = (
    f"INSERT INTO shared VALUES {ROW} ON CONFLICT (id) DO UPDATE SET v = 9 WHERE shared.v > 100",
    f"INSERT INTO shared VALUES {ROW} ON CONFLICT (id) DO UPDATE SET v = 9 WHERE shared.owner::INTEGER > 100",
)
"""PostgreSQL evaluates a condition over the row that is hidden: its outcome, and its error, tell values of that row."""


@pytest.mark.parametrize(("partitions", "pruning"), [(1, "verify"), (8, "on")])
def test_a_key_that_is_hidden_is_met_as_in_postgresql(
    own: Cluster, bearer: Callable[..., secateur.Connection], partitions: int, pruning: str
) -> None:
    with own.connect() as admin:
        admin.execute(
            "CREATE TABLE shared (id BIGINT PRIMARY KEY, owner VARCHAR, reader VARCHAR, v BIGINT)"
            f" PARTITION BY HASH (id) PARTITIONS {partitions}"
        )
        admin.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON shared TO reader")
        admin.execute("ALTER TABLE shared ENABLE ROW LEVEL SECURITY")
        mine = "owner = session('tenant')"
        admin.execute(f"CREATE POLICY s ON shared FOR SELECT USING ({mine} OR reader = session('tenant'))")
        admin.execute(f"CREATE POLICY i ON shared FOR INSERT WITH CHECK ({mine})")
        admin.execute(f"CREATE POLICY u ON shared FOR UPDATE USING ({mine})")
        conn = bearer()
        conn.execute(f"SET pruning = {pruning}")
        for sql, expected in (ON_CONFLICT | dict.fromkeys(WHERE_HIDDEN, PolicyError)).items():
            admin.execute("DELETE FROM shared")
            admin.cursor().executemany("INSERT INTO shared VALUES (?, ?, ?, ?)", OWN_AND_READ)
            if isinstance(expected, list):
                done = conn.execute(sql)
                found = [row[0] for row in done.fetchall()] if "RETURNING" in sql else expected
                assert (sorted(found), done.rowcount) == (expected, len(expected)), sql
            else:
                with pytest.raises(expected) as caught:
                    conn.execute(sql)
                assert "C3" not in str(caught.value), sql
            changes = expected if isinstance(expected, list) else []
            rows = dict.fromkeys((id_ for id_, *_ in OWN_AND_READ), 0) | dict.fromkeys(changes, 9)
            changed = admin.execute("SELECT id, CASE v WHEN 9 THEN 9 ELSE 0 END FROM shared").fetchall()
            assert dict(changed) == rows, sql
            hidden = admin.execute("SELECT * FROM shared WHERE id IN (3, 4) ORDER BY id").fetchall()
            assert hidden == OWN_AND_READ[2:4], sql
        admin.execute("DROP TABLE shared")


@pytest.mark.parametrize("partitioning", ["PARTITION BY HASH (id) PARTITIONS 8", "REPLICATED"])
def test_of_many_rows_those_are_left_out_whose_keys_are_hidden(
    own: Cluster, bearer: Callable[..., secateur.Connection], partitioning: str
) -> None:
    with own.connect() as admin:
        admin.execute(f"CREATE TABLE wide (id BIGINT PRIMARY KEY, tenant VARCHAR) {partitioning}")
        admin.execute("GRANT SELECT, INSERT, UPDATE ON wide TO reader")
        admin.execute("ALTER TABLE wide ENABLE ROW LEVEL SECURITY")
        admin.execute("CREATE POLICY own ON wide USING (tenant = session('tenant'))")
        admin.execute("INSERT INTO wide SELECT 3 * range, 'C3' FROM range(1000)")
        conn = bearer()
        new = [id_ for id_ in range(3000) if id_ % 3]
        sql = "INSERT INTO wide SELECT range, 'C2' FROM range(3000) ON CONFLICT DO {}"
        with pytest.raises(PolicyError, match="do not let this principal update"):
            conn.execute(sql.format("UPDATE SET tenant = 'C2'"))
        assert admin.execute("SELECT count(*) FROM wide").fetchall() == [(1000,)]
        done = conn.execute(sql.format("NOTHING RETURNING id"))
        assert ([id_ for (id_,) in done.fetchall()], done.rowcount) == (new, len(new))
        assert conn.execute("SELECT id FROM wide ORDER BY id").fetchall() == [(id_,) for id_ in new]
        assert admin.execute("SELECT count(*), sum(id) FROM wide WHERE tenant = 'C3'").fetchall() == [(1000, 1498500)]
        assert conn.execute(sql.format("NOTHING RETURNING id")).fetchall() == []
        admin.execute("DROP TABLE wide")


@pytest.mark.parametrize("condition", ["tenant IN ('C2', 'C9')", "tenant = session('tenant')"])
def test_nobody_learns_of_a_key_that_may_not_be_written(
    own: Cluster, bearer: Callable[..., secateur.Connection], condition: str
) -> None:
    with own.connect() as admin:
        admin.execute(
            "CREATE TABLE pairs (id BIGINT, tenant VARCHAR, v BIGINT, PRIMARY KEY (id, tenant))"
            " PARTITION BY HASH (id) PARTITIONS 8"
        )
        admin.execute("GRANT SELECT, INSERT, UPDATE ON pairs TO reader")
        admin.execute("ALTER TABLE pairs ENABLE ROW LEVEL SECURITY")
        admin.execute(f"CREATE POLICY own ON pairs USING ({condition})")
        admin.execute("INSERT INTO pairs VALUES (1, 'C3', 200), (2, 'C2', 5)")
        conn = bearer()
        for sql in (
            "INSERT INTO pairs VALUES (?, ?, 0) ON CONFLICT DO NOTHING",
            "INSERT INTO pairs VALUES (?, ?, 0) ON CONFLICT DO NOTHING RETURNING id",
            "INSERT INTO pairs VALUES (?, ?, 0) ON CONFLICT DO UPDATE SET v = 1 WHERE pairs.v > 100",
            "INSERT INTO pairs VALUES (?, ?, 0) ON CONFLICT DO UPDATE SET v = 1 WHERE pairs.v > 300",
            "INSERT INTO pairs VALUES (?, ?, 0) ON CONFLICT DO UPDATE SET v = 1 WHERE pairs.v > 300 RETURNING id",
        ):
            for key in (1, 9):
                with pytest.raises(PolicyError, match="not one that the row policies"):
                    conn.execute(sql, [key, "C3"])
            assert conn.execute(sql, [2, "C2"]).rowcount == 0
        assert admin.execute("FROM pairs ORDER BY id").fetchall() == [(1, "C3", 200), (2, "C2", 5)]
        admin.execute("DROP TABLE pairs")


def test_a_refusal_says_what_its_role_needs(
    admin: secateur.Connection, bearer: Callable[..., secateur.Connection]
) -> None:
    with pytest.raises(AuthenticationError, match=r"role 'admin' can GRANT SELECT ON secateur\.jobs TO reader"):
        bearer().execute("FROM secateur.jobs")
    admin.execute("GRANT SELECT, INSERT ON orders TO clerk")
    with pytest.raises(AuthenticationError, match=r"can GRANT DELETE ON orders TO clerk"):
        bearer("C2", "clerk").execute("DELETE FROM orders")


def test_other_doors(
    own: Cluster, admin: secateur.Connection, bearer: Callable[..., secateur.Connection], tmp_path: Path
) -> None:
    before, conn = others(admin), bearer()
    reader = secateur.connect(own.address, own.tokens.create("read", claims={"tenant": "C2"}).token)
    assert reader.execute("SELECT DISTINCT tenant FROM orders").fetchall() == [("C2",)]
    orders = conn.table("orders")
    foreign = {"tenant": ["C5"], "id": [70], "amount": [1.0], "note": ["l"]}
    for refused in (
        lambda: orders.get(("C3", 13)),
        lambda: orders.get_many([("C2", 12)]),
        lambda: orders.put(("C3", 9, 1.0, "z")),
        lambda: orders.put_many([("C3", 9, 1.0, "z"), ("C2", 9, 1.0, "z")]),
        lambda: orders.delete(("C3", 13)),
        lambda: orders.delete_many([("C3", 13), ("C4", 14)]),
        lambda: orders.load(foreign),
        lambda: orders.load(foreign, mode="upsert"),
        lambda: orders.load({**foreign, "tenant": ["C2"]}, mode="overwrite"),
        lambda: list(conn.changes("fed", "earliest")),
        lambda: conn.execute("SELECT * FROM secateur.statements").fetchall(),
        lambda: conn.execute("SELECT * FROM secateur.hot_keys").fetchall(),
        lambda: reader.execute("SELECT * FROM secateur.hot_keys").fetchall(),
        lambda: reader.execute("SELECT * FROM secateur.tokens").fetchall(),
        lambda: conn.execute(f"BACKUP TO '{tmp_path / 'all'}'"),
        lambda: conn.execute("CREATE POLICY mine ON orders USING (TRUE)"),
        lambda: conn.execute("ALTER TABLE orders DISABLE ROW LEVEL SECURITY"),
        lambda: conn.execute("GRANT SELECT ON secateur.statements TO reader"),
        lambda: conn.execute("FORGET TENANT 'C3'"),
        lambda: conn.tokens.create("reader", claims={"tenant": "C3"}),
    ):
        with pytest.raises(AuthenticationError):
            refused()
        assert others(admin) == before
    orders.put(("C2", 9, 1.0, "z"))
    assert orders.delete(("C2", 9))
    assert orders.load({**foreign, "tenant": ["C2"]}) == 1
    path = tmp_path / "rows.csv"
    conn.execute(f"COPY orders TO '{path}'")
    assert {line.split(",")[0] for line in path.read_text().splitlines()[1:]} == {"C2"}
    path.write_text("tenant,id,amount,note\nC2,800,1,a\nC3,801,1,a\n")
    with pytest.raises(PolicyError):
        conn.execute(f"COPY orders FROM '{path}'")
    try:
        conn.execute(f"BACKUP TABLE orders TO '{tmp_path / 'one'}'")
    except AuthenticationError:
        pass
    else:
        with secateur.start(members=1, runtime="embedded") as other, other.connect() as restored:
            restored.execute(f"RESTORE FROM '{tmp_path / 'one'}'")
            assert restored.execute("SELECT DISTINCT tenant FROM orders").fetchall() == [("C2",)]
    assert others(admin) == before
    reader.close()


def prepared(own: Cluster, token: str | None, sql: str, params: list[Any] | None = None) -> Any:
    with RawConnection(own, own.address, token=token) as raw:
        asked = Prepare(sql, params or [], {}, None)
        return decode(raw.ask(operation_of(asked), encode(asked)), PreparedAnswer).statement


def test_members_do_not_trust_a_plan_or_a_claim(own: Cluster, admin: secateur.Connection) -> None:
    before = others(admin)
    mine = own.tokens.create("reader", claims={"tenant": "C2"}).token
    other = own.tokens.create("reader", claims={"tenant": "C3"}).token
    query = prepared(own, mine, "SELECT tenant, id FROM orders")
    foreign = prepared(own, None, "SELECT tenant, id FROM orders")
    of_other = prepared(own, other, "SELECT tenant, id FROM orders")
    update = prepared(own, mine, "UPDATE orders SET amount = 0 WHERE id = 13")
    wide = prepared(own, None, "UPDATE orders SET amount = 0")
    upsert = prepared(
        own, mine, "INSERT INTO orders VALUES (?, ?, 1, 'a') ON CONFLICT DO UPDATE SET amount = 1", ["a", 1]
    )
    assert query.plan_id == of_other.plan_id, "a plan is one for all tenants"
    orders = admin.execute("SELECT table_id FROM secateur.tables WHERE table_name = 'orders'").fetchall()[0][0]
    row = bytes(encode_rows(ShortTable([["C3"], [1], [1.0], ["a"]], 1)))
    key = bytes(encode_rows(ShortTable([["C3"], [13]], 1)))
    plain: list[tuple[Message[Any], bytes]] = [
        (Execute(query.plan_id, ["C3"], True), b""),
        (Execute(query.plan_id, [], True), b""),
        (Execute(query.plan_id, [None], True), b""),
        (Execute(query.plan_id, ["C3", "C2"], True), b""),
        (Execute(query.plan_id, ["C3"], False), b""),
        (Execute(foreign.plan_id, [], True), b""),
        (Execute(wide.select.plan_id, [], True), b""),
        (ExecuteMany(query.plan_id, [["C2"], ["C3"]]), b""),
        (ExecuteFirstStage(foreign.plan_id, [], [list(range(31))], None), b""),
        (ExecuteFirstStage(query.plan_id, ["C3"], [list(range(31))], None), b""),
        (Profile(Execute(query.plan_id, ["C3"], True), True), b""),
        (OpenSnapshot("s", Execute(query.plan_id, ["C2"], True), [1], 10.0), b""),
        (GetRows(orders, 1, [["C3", 13]]), b""),
        (ReadChanges(orders, [(0, 0)], 1000), b""),
        (ChangeOnePartition(update.select.plan_id, ["C3"], True, "upsert", "a"), b""),
        (ChangeOnePartition(update.select.plan_id, ["C2"], True, "delete", "b"), b""),
        (ChangeOnePartition(query.plan_id, ["C2"], True, "delete", "c"), b""),
        (ChangeOnePartition(wide.select.plan_id, [], True, "upsert", "d"), b""),
        (ChangeOnePartition(upsert.select.plan_id, ["C3", 13, "C3"], True, "effects", "e"), b""),
        (ChangeMany(update.select.plan_id, [["C3"]], "upsert", "f"), b""),
        *(
            (WriteRows(orders, part, mode, f"w{part}{mode}"), row)
            for part in range(31)
            for mode in ("upsert", "append")
        ),
        *((WriteRows(orders, part, "delete", f"x{part}"), key) for part in range(31)),
        (WriteRows(orders, 0, "overwrite", "g"), row),
        (WriteMany(orders, "upsert", "h", [(part, row) for part in range(31)]), b""),
        (StageRows("load", orders, 0, [(0, 1)]), row),
        (StageRows("load", orders, 0, [(0, 1)], are_keys=True), key),
    ]
    for member in own.members():
        with RawConnection(own, member.address, token=mine) as raw:
            for message, payload in plain:
                with pytest.raises((AuthenticationError, TopologyChangedError, ProtocolError, ProgrammingError)):
                    print(message, raw.ask(operation_of(message), encode(message), payload))
    first = DuplicateMatchPolicy.FIRST
    version = 1
    with RawConnection(own, own.address, token=mine) as raw:
        for at_controller in (
            ChangeSeveralPartitions("l1", wide.select.plan_id, [], True, "upsert"),
            ChangeSeveralPartitions("l2", update.select.plan_id, ["C3"], True, "upsert"),
            ChangeSeveralPartitions("l3", update.select.plan_id, ["C2"], True, "delete"),
            ChangeTable("l4", "orders", orders, version, wide.select.plan_id, [], True, first, None, False),
            ChangeTable("l5", "orders", orders, version, query.plan_id, ["C2"], True, first, None, False),
            PublishLoad("l6", "orders", "overwrite", {}),
        ):
            with pytest.raises((AuthenticationError, TopologyChangedError, ProtocolError)):
                raw.ask(operation_of(at_controller), encode(at_controller))
    assert others(admin) == before


def test_plans_and_claims_outlive_nothing(
    own: Cluster, admin: secateur.Connection, bearer: Callable[..., secateur.Connection]
) -> None:
    conn, count = bearer(), ROWS // TENANTS
    sql = "SELECT count(*) FROM orders"
    for _ in range(3):
        assert conn.execute(sql).fetchall() == [(count,)]
    admin.execute("DROP POLICY own ON orders")
    assert conn.execute(sql).fetchall() == [(0,)]
    assert conn.execute("UPDATE orders SET amount = 0").rowcount == 0
    admin.execute("CREATE POLICY own ON orders USING (tenant = session('tenant') AND id < 100)")
    assert conn.execute(sql).fetchall() == [(count // 2,)]
    admin.execute("DROP POLICY own ON orders")
    admin.execute("CREATE POLICY own ON orders USING (tenant = session('tenant'))")
    assert conn.execute(sql).fetchall() == [(count,)]
    admin.execute("REVOKE SELECT ON orders FROM reader")
    with pytest.raises(AuthenticationError, match="read on orders"):
        conn.execute(sql).fetchall()
    admin.execute("GRANT SELECT ON orders TO reader")
    assert conn.execute(sql).fetchall() == [(count,)]
    admin.execute("ALTER TABLE orders DISABLE ROW LEVEL SECURITY")
    assert conn.execute(sql).fetchall() == [(ROWS,)]
    admin.execute("ALTER TABLE orders ENABLE ROW LEVEL SECURITY")
    assert conn.execute(sql).fetchall() == [(count,)]
    own.tokens.create("reader", claims={"tenant": "C2"}, expires=3600)
    short = own.tokens.create("reader", claims={"tenant": "C2"}, expires=0.3)
    with secateur.connect(own.address, short.token) as late:
        assert late.execute(sql).fetchall() == [(count,)]
        with pytest.raises(AuthenticationError, match="expired"):
            eventually(lambda: late.execute(sql).fetchall() != [(count,)])


def test_grants_go_with_their_table(
    own: Cluster, admin: secateur.Connection, bearer: Callable[..., secateur.Connection]
) -> None:
    admin.execute("CREATE TABLE kept (tenant VARCHAR PRIMARY KEY, v BIGINT)")
    admin.execute("INSERT INTO kept VALUES ('C2', 2), ('C3', 3)")
    admin.execute("GRANT SELECT ON kept TO reader")
    admin.execute("ALTER TABLE kept ENABLE ROW LEVEL SECURITY")
    admin.execute("CREATE POLICY own ON kept USING (tenant = session('tenant'))")
    alone = own.tokens.create("read on kept", claims={"tenant": "C2"})
    readers = [bearer(), secateur.connect(own.address, alone.token)]
    admin.execute("ALTER TABLE kept RENAME TO moved")
    admin.execute("CREATE TABLE kept AS SELECT * FROM moved")
    for conn in readers:
        assert conn.execute("SELECT v FROM moved").fetchall() == [(2,)]
        with pytest.raises(AuthenticationError):
            conn.execute("SELECT v FROM kept").fetchall()
    admin.execute("DROP TABLE moved")
    admin.execute("ALTER TABLE kept RENAME TO moved")
    for conn in readers:
        with pytest.raises(AuthenticationError):
            conn.execute("SELECT v FROM moved").fetchall()
    assert alone.id not in {token.id for token in own.tokens.list()}
    readers[1].close()
    admin.execute("DROP TABLE moved")


def test_the_primary_of_a_key_returns_what_policies_let_be_seen(
    admin: secateur.Connection, bearer: Callable[..., secateur.Connection]
) -> None:
    reader, before = bearer("C2"), others(admin)

    def returned(sql: str, *params: Any) -> list[tuple[Any, ...]]:
        cursor = reader.execute(sql, params)
        assert cursor.stats is not None
        assert cursor.stats.execution == "local"
        return cursor.fetchall()

    for key in (901, 902):
        assert returned("INSERT INTO orders VALUES ('C2', ?, 1.5, 'a') RETURNING id, note", key) == [(key, "a")]
        assert returned("INSERT OR IGNORE INTO orders VALUES ('C2', ?, 9.5, 'b') RETURNING id", key) == []
        assert returned("UPDATE orders SET amount = amount + 1.0 WHERE id = ? RETURNING amount", key) == [(2.5,)]
        assert returned("INSERT OR REPLACE INTO orders VALUES ('C2', ?, 3.5, 'c') RETURNING note", key) == [("c",)]
        assert returned("DELETE FROM orders WHERE id = ? RETURNING amount, note", key) == [(3.5, "c")]
        for sql in (
            "UPDATE orders SET amount = 0.0 WHERE tenant = 'C3' AND id = ? RETURNING amount",
            "UPDATE orders SET amount = 0.0 WHERE id = ? RETURNING amount",
            "DELETE FROM orders WHERE tenant = 'C3' AND id = ? RETURNING amount",
        ):
            assert reader.execute(sql, [3]).fetchall() == []
        for sql in (
            "INSERT INTO orders VALUES ('C3', ?, 1.5, 'a') RETURNING id",
            "INSERT OR REPLACE INTO orders VALUES ('C3', ?, 1.5, 'a') RETURNING id",
        ):
            with pytest.raises(PolicyError):
                reader.execute(sql, [3])
    assert others(admin) == before


def test_policies_of_commands_and_roles(admin: secateur.Connection, bearer: Callable[..., secateur.Connection]) -> None:
    admin.execute("CREATE TABLE shared (tenant VARCHAR, id BIGINT, v BIGINT, PRIMARY KEY (tenant, id))")
    admin.execute("INSERT INTO shared VALUES ('C2', 1, 1), ('C2', 2, 2), ('C3', 3, 3), ('all', 4, 4)")
    admin.execute("GRANT ALL ON shared TO clerk, reader")
    admin.execute("ALTER TABLE shared ENABLE ROW LEVEL SECURITY")
    clerk = bearer("C2", "clerk")
    assert clerk.execute("SELECT count(*) FROM shared").fetchall() == [(0,)]
    admin.execute("CREATE POLICY seen ON shared FOR SELECT USING (tenant IN (session('tenant'), 'all'))")
    admin.execute("CREATE POLICY more ON shared FOR SELECT TO clerk USING (id = 3)")
    admin.execute("CREATE POLICY changed ON shared FOR UPDATE TO clerk USING (tenant = 'all') WITH CHECK (v > 0)")
    admin.execute("CREATE POLICY added ON shared FOR INSERT WITH CHECK (tenant = session('tenant'))")
    assert clerk.execute("SELECT id FROM shared ORDER BY id").fetchall() == [(1,), (2,), (3,), (4,)]
    reader = bearer("C2")
    assert reader.execute("SELECT id FROM shared ORDER BY id").fetchall() == [(1,), (2,), (4,)]
    assert reader.execute("UPDATE shared SET v = 9").rowcount == 0
    assert clerk.execute("UPDATE shared SET v = 9").rowcount == 1
    with pytest.raises(PolicyError):
        clerk.execute("UPDATE shared SET v = -9")
    assert clerk.execute("DELETE FROM shared").rowcount == 0
    assert reader.execute("INSERT INTO shared VALUES ('C2', 7, 7)").rowcount == 1
    with pytest.raises(PolicyError):
        reader.execute("INSERT INTO shared VALUES ('all', 8, 8)")
    with pytest.raises(PolicyError):
        reader.execute("INSERT OR REPLACE INTO shared VALUES ('C2', 7, 8)")
    assert admin.execute("SELECT count(*), sum(v) FROM shared").fetchall() == [(5, 1 + 2 + 3 + 9 + 7)]
    for key in (11, 12):
        inserted = reader.execute("INSERT INTO shared VALUES (?, ?, 5) RETURNING id, v", ["C2", key])
        assert inserted.fetchall() == [(key, 5)]
        with pytest.raises(PolicyError):
            reader.execute("INSERT INTO shared VALUES (?, ?, 5) RETURNING id", ["all", key])
        with pytest.raises((PolicyError, DuplicateKeyError)):  # it may not update, so it finds no row to replace
            reader.execute("INSERT OR REPLACE INTO shared VALUES (?, ?, 6) RETURNING id", ["C2", key])
        assert (
            reader.execute("UPDATE shared SET v = 7 WHERE tenant = ? AND id = ? RETURNING v", ["all", 4]).rowcount == 0
        )
        updated = clerk.execute("UPDATE shared SET v = ? WHERE tenant = ? AND id = ? RETURNING v", [key, "all", 4])
        assert updated.fetchall() == [(key,)]
        with pytest.raises(PolicyError):
            clerk.execute("UPDATE shared SET v = -1 WHERE tenant = ? AND id = ? RETURNING v", ["all", 4])
        assert clerk.execute("DELETE FROM shared WHERE tenant = ? AND id = ? RETURNING v", ["C2", key]).rowcount == 0
    assert admin.execute("SELECT count(*), sum(v) FROM shared").fetchall() == [(7, 1 + 2 + 3 + 12 + 7 + 5 + 5)]
    admin.execute("DROP TABLE shared")
    admin.execute("CREATE TABLE shared (id BIGINT PRIMARY KEY)")
    admin.execute("INSERT INTO shared VALUES (1)")
    with pytest.raises(AuthenticationError):  # policies end with their table, and so do grants
        reader.execute("SELECT * FROM shared").fetchall()
    admin.execute("DROP TABLE shared")


@pytest.mark.parametrize(
    ("sql", "kind", "said"),
    [
        ("CREATE POLICY p ON orders USING (nothing = 1)", UnknownColumnError, "has no column 'nothing'"),
        ("CREATE POLICY p ON orders USING (id)", ProgrammingError, "takes a condition"),
        ("CREATE POLICY p ON orders USING (id = (SELECT 1))", NotSupportedError, "a subquery"),
        ("CREATE POLICY p ON orders USING (random() > 0)", NotSupportedError, "random()"),
        ("CREATE POLICY p ON orders USING (tenant = session(note))", SqlSyntaxError, "as in session('tenant')"),
        ("CREATE POLICY p ON orders FOR INSERT USING (TRUE)", ProgrammingError, "WITH CHECK alone"),
        ("CREATE POLICY p ON orders FOR DELETE USING (id = 1) WITH CHECK (id = 1)", ProgrammingError, "USING alone"),
        ("CREATE POLICY own ON orders USING (id = 1)", ProgrammingError, "exists already"),
        ("CREATE POLICY p ON orders TO nobody USING (id = 1)", ProgrammingError, "role 'nobody' does not exist"),
        ("CREATE POLICY p ON orders", SqlSyntaxError, "USING"),
        ("DROP POLICY nothing ON orders", ProgrammingError, "there is no policy 'nothing'"),
        ("DROP ROLE nobody", ProgrammingError, "does not exist"),
        ("CREATE ROLE admin", ProgrammingError, "there always"),
        ("GRANT SELECT ON nothing TO reader", UnknownTableError, "nothing"),
        ("GRANT INSERT ON secateur.tables TO reader", ProgrammingError, "nobody changes"),
        ("GRANT DROP ON orders TO reader", SqlSyntaxError, "SELECT, INSERT"),
        ("ALTER TABLE orders DROP COLUMN tenant", Error, "tenant"),
        ("ALTER TABLE loose RENAME COLUMN tenant TO t", ProgrammingError, "policy own reads it"),
        ("FORGET TENANT 'C1' CLAIM 'other'", ProgrammingError, "no row policy compares"),
        ("FORGET TENANT C1", SqlSyntaxError, "as 'text'"),
        ("CREATE OR REPLACE TABLE orders (id BIGINT PRIMARY KEY)", ProgrammingError, "has row level security"),
        ("CREATE OR REPLACE TABLE orders AS SELECT 1 AS id", ProgrammingError, "has row level security"),
    ],
)
def test_what_cannot_be_is_said(admin: secateur.Connection, sql: str, kind: type[Error], said: str) -> None:
    with pytest.raises(kind, match=said.replace("(", r"\(").replace(")", r"\)")):
        admin.execute(sql)


def test_a_tenant_is_forgotten(admin: secateur.Connection) -> None:
    cur = admin.execute("FORGET TENANT 'C2'")
    assert cur.description is not None
    names = [column[0] for column in cur.description]
    receipt = {row[0]: dict(zip(names, row, strict=True)) for row in cur.fetchall()}
    assert sorted(receipt) == ["fed", "items", "loose", "orders"]
    assert (receipt["orders"]["rows"], receipt["orders"]["partitions"], receipt["orders"]["rows_left"]) == (20, 1, 0)
    assert receipt["loose"]["rows"] == 10
    assert "change feed" in receipt["fed"]["held_elsewhere"]
    assert "backups" in receipt["orders"]["held_elsewhere"]
    for name in ("orders", "items", "loose"):
        assert admin.execute(f"SELECT count(*) FROM {name} WHERE tenant = 'C2'").fetchall() == [(0,)]
    assert [row[2] for row in admin.execute("FORGET TENANT 'C2'").fetchall()] == [0, 0, 0, 0]


def test_policies_outlive_controllers_and_reach_new_members() -> None:
    with secateur.start(members=2, runtime="embedded", member_silence_s=10.0) as own, own.connect() as conn:
        conn.execute(DDL.format("orders"))
        conn.table("orders").load(
            pa.table({"tenant": ["C1", "C2"], "id": [1, 2], "amount": [1.0, 2.0], "note": ["a", "b"]})
        )
        conn.execute("CREATE ROLE reader")
        conn.execute("GRANT SELECT ON orders TO reader")
        conn.execute("ALTER TABLE orders ENABLE ROW LEVEL SECURITY")
        conn.execute("CREATE POLICY own ON orders USING (tenant = session('tenant'))")
        token = own.tokens.create("reader", claims={"tenant": "C1"}).token
        own.kill_controller()
        with secateur.connect(own.address, token) as reader:
            assert reader.execute("SELECT id FROM orders").fetchall() == [(1,)]
            own.scale(3)
            assert reader.execute("SELECT id FROM orders WHERE amount > 0").fetchall() == [(1,)]


def shows(value: object, texts: Sequence[str]) -> bool:
    """Whether a decoded message has one of some texts; the bytes of a number may be those of one by chance."""
    match value:
        case str():
            return any(text in value for text in texts)
        case bytes():
            return any(text.encode() in value for text in texts)
        case list():
            return any(shows(one, texts) for one in value)
        case dict():
            return shows([*value, *value.values()], texts)
        case _:
            return False


def test_mutated_requests_show_no_row_of_others(own: Cluster, admin: secateur.Connection) -> None:
    """Bytes of good requests of one tenant, with some of them changed: whatever is answered has no value of others."""
    rng = random.Random(SEED)
    mine = own.tokens.create("reader", claims={"tenant": "C2"}).token
    queries = [prepared(own, mine, sql) for sql in ("SELECT tenant, id FROM orders", "SELECT * FROM loose WHERE v > 3")]
    wide = prepared(own, None, "SELECT tenant, id FROM orders")
    frames = [encode(Execute(query.plan_id, ["C2"], True)) for query in queries]
    frames += [encode(ExecuteFirstStage(query.plan_id, ["C2"], [[20]], None)) for query in queries]
    frames.append(encode(Execute(wide.plan_id, [], True)))
    foreign = [f"C{number}" for number in range(TENANTS) if number != 2]
    answered = 0
    for member in own.members():
        raw: RawConnection | None = None
        for _ in range(MUTATED_REQUESTS // 6):  # two operations at each of three members
            header = bytearray(rng.choice(frames))
            for _ in range(rng.choice([0, 1, 1, 2])):
                header[rng.randrange(len(header))] = rng.choice([rng.randrange(256), 0xA2, ord("C"), ord("3"), 0xC2])
            raw = raw or RawConnection(own, member.address, token=mine)
            for operation in (operation_of(Execute("", [], True)), operation_of(ExecuteFirstStage("", [], [], None))):
                try:
                    answer = raw.answer(operation, bytes(header))
                except Error:
                    continue
                except (EOFError, OSError):
                    raw.__exit__()
                    raw = RawConnection(own, member.address, token=mine)
                    continue
                answered += 1
                assert not shows([decode(answer.header, list), bytes(answer.payload)], foreign), (header, answer)
        if raw is not None:
            raw.__exit__()
    assert answered > 20
