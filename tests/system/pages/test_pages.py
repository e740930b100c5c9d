"""Every example of the documents runs as it stands there, the commands of the shell as well.

What is beside them here is what a page takes for granted: a connection, a table, a file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TYPE_PAGE = Path(__file__).with_name("type_page.py")
COMMAND = Path(sys.executable).with_name("secateur")
EMBEDDED = """
import secateur
cluster = secateur.start(members=2, runtime="embedded")
conn = cluster.connect()
"""
ON_RAY = """
import ray, secateur
ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level="error", num_cpus=64)
"""
STOP = "conn.close(); cluster.stop()"
LOCAL_SPARK = """
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.warehouse.dir", "warehouse").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
"""


@dataclass(frozen=True)
class Page:
    """What a reader of a page has and does beside typing its examples.

    Attributes:
        before: What is typed before them.
        before_blocks: What is typed before the example of a number, counted from 1.
        after: What is typed behind them.
        meant: Texts of examples that stand for something else, with the expression that it is.
        printed: The numbers of the blocks of text, counted from 0, that are printed.
        languages: Those of the examples; SQL is given to a function ``sql``.
        without: Examples with this text are left out.
        stays: Commands that do not end by themselves.
    """

    before: str = ""
    before_blocks: Mapping[int, str] = field(default_factory=dict)
    after: str = ""
    meant: Mapping[str, str] = field(default_factory=dict)
    printed: tuple[int, ...] = ()
    languages: tuple[str, ...] = ("python", "console")
    without: str = ""
    stays: tuple[str, ...] = ()


IN_ONE_PROCESS = {
    "README.md": Page(
        languages=("python",), without="pyspark", printed=(0,), after="assert job.result().num_rows == 1"
    ),
    "docs/jobs.md": Page(printed=(0,)),
    "docs/http.md": Page(
        before_blocks={6: "os.environ |= {'SECATEUR_URL': server.url, 'SECATEUR_TOKEN': cluster.token}"},
    ),
    "docs/tenants.md": Page(
        languages=("python", "sql"),
        printed=(0,),
        before="""
import secateur
from issuers import AUDIENCE, ISSUER, Issuer, write_keys
from pathlib import Path
write_keys(Path("jwks.json"), Issuer("RS256", "2026"))
first = cluster = secateur.start(members=3, runtime="embedded")
admin = first.connect()
def sql(text):
    for statement in filter(str.strip, text.split(";")):
        admin.execute(statement)
""",
        before_blocks={
            5: """
from typing import Any
from fastapi import FastAPI, Request
import secateur.aio
app, opened = FastAPI(), {}
""",
        },
        meant={"https://login.example.com/": "ISSUER", 'audience="orders"': "f'audience={AUDIENCE!r}'"},
        after="""
os.environ["SECATEUR_ADDRESS"] = first.address
import asyncio, httpx
async def ask():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app") as client:
        bearer = {"authorization": f"Bearer {first.tokens.create('customer', claims={'tenant': 'C3'}).token}"}
        answer = await client.post("/sql", content="SELECT count(*) AS n FROM orders", headers=bearer)
    await opened.popitem()[1].close()
    return answer.json()
assert asyncio.run(ask()) == [{"n": 10}]
assert admin.execute("SELECT count(*) FROM orders").fetchall() == [(30,)]
admin.close(); first.stop(); cluster.stop()
""",
    ),
    "docs/connectors.md": Page(
        before="""
import sqlite3
paths = ["0.db", "1.db"]
for number, path in enumerate(paths):
    with sqlite3.connect(path) as shard:
        shard.execute("CREATE TABLE people (id INTEGER, name TEXT)")
        shard.execute("INSERT INTO people VALUES (?, 'Ann')", [1000 * number + 7])
""",
    ),
    "docs/bi_tools.md": Page(
        languages=("python",),
        after=f"""
with duckdb.connect("sales.duckdb", read_only=True) as file:
    assert file.execute("SELECT sum(amount) FROM sales WHERE shop = 'Rome'").fetchall()[0][0] == 15.5
assert httpx.post(**{{**ask, "json": {{"sql": "DELETE FROM sales"}}}}).status_code == 403
server.stop(); {STOP}
""",
    ),
    "docs/fastapi.md": Page(
        before=f"""
{EMBEDDED}
os.environ.update(SECATEUR_ADDRESS=cluster.address, SECATEUR_TOKEN=cluster.token)
columns = "customer_id VARCHAR, order_id INTEGER, amount DECIMAL(10, 2)"
conn.execute(f"CREATE TABLE orders ({{columns}}, PRIMARY KEY (customer_id, order_id))")
conn.execute("INSERT INTO orders VALUES ('C2', 2, 3), ('C2', 3, 1.25)")
endless = "FROM range(100000) AS a(i), range(100000) AS b(i) WHERE a.i * b.i % 7 = 3"
conn.execute(f"CREATE VIEW sales AS SELECT DATE '2026-01-01' + (a.i % 9)::INTEGER AS day, b.i AS amount {{endless}}")
""",
        after="""
import httpx
from contextlib import suppress

def running():
    sql = "SELECT id FROM secateur.running_statements WHERE statement LIKE ?"
    return [id for (id,) in conn.execute(sql, ["%FROM sales%"]).fetchall()]

async def ask():
    service = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service")
    async with both(app), service:
        place = "/customers/C2/orders"
        assert (await service.get(f"{place}/4")).status_code == 404
        for path in ("/days", "/sold"):
            slow = asyncio.create_task(service.get(path))
            while not slow.done() and not await asyncio.to_thread(running):
                pass
            rows = (await service.get(place)).json()
            assert [(row["order_id"], float(row["amount"])) for row in rows] == [(2, 3.0), (3, 1.25)]
            assert float((await service.get(f"{place}/3")).json()["amount"]) == 1.25
            assert not slow.done(), path  # others were answered meanwhile
            while not slow.done():
                for id in await asyncio.to_thread(running):
                    with suppress(secateur.ProgrammingError):  # the controller may have planned it meanwhile
                        conn.execute(f"KILL '{id}'")
            assert (await slow).status_code == 503
asyncio.run(ask())
"""
        + STOP,
    ),
    "docs/asyncio.md": Page(
        languages=("python",),
        before=f"""
{EMBEDDED}
address, token = cluster.address, cluster.token
""",
        printed=(0,),
        after="""
async def ended():
    async with await secateur.aio.connect(address, token) as conn:
        begun = asyncio.get_running_loop().time()
        try:
            await all_of(conn)
        except TimeoutError:
            return asyncio.get_running_loop().time() - begun
assert 0.4 < asyncio.run(ended()) < 5
"""
        + STOP,
    ),
    "docs/sqlalchemy.md": Page(
        languages=("python",),
        before="""
from sqlalchemy.dialects import registry
registry.register("secateur", "secateur.sqlalchemy_dialect.dialect", "SecateurDialect")  # of this checkout
""",
        printed=(0,),
        after="""
with engine.connect() as conn:
    assert conn.execute(select(orders.c.amount).where(orders.c.customer == "C2", orders.c.id == 2)).all() == [(9,)]
assert len(spent) == 10
engine.dispose(); cluster.stop()
""",
    ),
    "docs/schema_changes.md": Page(
        languages=("python", "sql"),
        before=f"""
{EMBEDDED}
def sql(text):
    for statement in filter(str.strip, text.split(";")):
        conn.execute(statement)
""",
        after=f"""
assert conn.execute("SELECT amount, state, sent FROM orders WHERE customer = 3").fetchall() == [(1, "new", None)]
{STOP}
""",
    ),
    "docs/key_value.md": Page(
        before=f"""
{EMBEDDED}
conn.execute("CREATE TABLE orders (customer_id INT, order_id INT, amount DOUBLE, PRIMARY KEY (customer_id, order_id))")
""",
        after=f"assert orders.get_many([(7, 4), (7, 3)]) == [(7, 4, 99.0), None]; {STOP}",
    ),
    "docs/loading.md": Page(
        before=f"""
{EMBEDDED}
conn.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, price DOUBLE, note VARCHAR)")
conn.execute("INSERT INTO orders VALUES (1, 0, 'one'), (3, 0, 'three')")
""",
        after=f"""
rows = conn.execute("SELECT * FROM orders ORDER BY id").fetchall()
assert rows == [(1, 9.5, "one"), (2, 7.0, None), (3, 8.0, None)]
{STOP}
""",
    ),
    "docs/sql.md": Page(
        before=f"""
{EMBEDDED}
conn.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name VARCHAR)")
conn.execute("INSERT INTO users VALUES (7, 'Ann'), (9, 'Bo')")
conn.execute("CREATE TABLE orders (customer_id VARCHAR PRIMARY KEY) WITH (change_feed = true)")
cursor, seen, positions = conn.cursor(), [], []

def apply(batch):
    seen.append(batch)

def save(position):
    positions.append(position)
    raise KeyboardInterrupt  # who follows changes ends with Ctrl-C
""",
        before_blocks={
            2: """
import threading
threading.Timer(0.5, lambda: cluster.connect().execute("INSERT INTO orders VALUES ('C2')")).start()
"""
        },
        after=f"""
assert names == [[("Ann",)], [], [("Bo",)]]
assert sum(batch.num_rows for batch in seen) == 1
assert list(conn.changes("orders", since=positions[-1])) == []
{STOP}
""",
    ),
}
"""Pages whose clusters need neither Ray nor Spark."""

WITH_SPARK = Page(
    languages=("python", "sql"),
    before=f"""
{EMBEDDED}
{LOCAL_SPARK}
spark.conf.set("spark.secateur.address", cluster.address)
COLUMNS = "tailnum VARCHAR, day DATE, id BIGINT, carrier VARCHAR, arr_delay BIGINT, PRIMARY KEY (tailnum, day, id)"
FLIGHTS = f"CREATE TABLE flights ({{COLUMNS}}) PARTITION BY HASH (tailnum) PARTITIONS 16"

def flights(tailnum, first, last):
    rows = spark.range(first, last)
    day, carrier, delay = "DATE '2026-01-01' AS day", "'AA' AS carrier", "7L AS arr_delay"
    return rows.selectExpr(f"'{{tailnum}}' AS tailnum", day, "id", carrier, delay)

conn.execute(FLIGHTS)
df = flights("N1", 0, 100)
gone, day = df.where("id = 3"), df.where("id < 10")
keys = spark.sql("SELECT explode(array('N14228', 'N9')) AS tailnum")
flights("N14228", 3, 5).createOrReplaceTempView("changed_flights")
flights("N14228", 5, 10).createOrReplaceTempView("new_flights")
sql = spark.sql
""",
    before_blocks={
        2: "conn.execute('DROP TABLE flights')",
        3: """
rate = spark.readStream.format("rate").load()
df = rate.selectExpr("'N8' AS tailnum", "DATE '2026-01-01' AS day", "value AS id")
""",
        4: """
query.stop()
conn.execute("DROP TABLE flights")
conn.execute(FLIGHTS + " WITH (change_feed = true)")
conn.execute("INSERT INTO flights SELECT 'N14228', '2026-01-01', i, 'AA', 1 FROM range(5) AS r(i)")
""",
    },
    meant={"secateur://host:port": "cluster.address", "/data/": "os.getcwd() + '/data/'"},
    after=f"""
assert conn.execute("SELECT count(*), sum(arr_delay) FROM flights").fetchall() == [(10, 3 + 7 * 7)]
assert [row.n for row in totals.collect()] == [10]
assert {{(row.tailnum, row.carrier) for row in found.collect()}} == {{("N14228", "AA"), ("N9", None)}}
assert changes.isStreaming
spark.stop(); {STOP}
""",
)
SCHEDULED = Page(
    before=f"""
{EMBEDDED}
{LOCAL_SPARK}
os.environ.update(SECATEUR_ADDRESS=cluster.address, SECATEUR_TOKEN=cluster.token)
day = "date_add(DATE '2026-01-01', CAST(id % 2 AS INT)) AS day"
spark.range(10).selectExpr("'C' || id % 3 AS customer_id", day, "id AS order_id").write.parquet("lake/orders")
""",
    before_blocks={2: "assert [load_day(spark, f'2026-01-0{day}') for day in (1, 2, 1)] == [5, 5, 5]"},
    meant={"/lake/": "os.getcwd() + '/lake/'"},
    after=f"""
from datetime import date
assert kept == [(date(2026, 1, 1), 5), (date(2026, 1, 2), 5)] and last[0][0] is not None
assert conn.execute("SELECT DISTINCT day FROM orders").fetchall() == [(date(2026, 1, 2),)]
spark.stop(); {STOP}
""",
)
WITH_RAY = {
    "docs/security.md": Page(
        languages=("python", "sql", "console"),
        before=f"""
{ON_RAY}
from issuers import AUDIENCE, ISSUER, Issuer, write_keys
from pathlib import Path
issuer = Issuer("RS256", "2026")
write_keys(Path("jwks.json"), issuer)
token_of_the_user = issuer.token(groups=["reader"], tenant_id="C2", exp=4_000_000_000)
import trustme
authority = trustme.CA()
issued = authority.issue_cert("127.0.0.1", ray.util.get_node_ip_address())
authority.cert_pem.write_to_path("ca.pem")
issued.private_key_pem.write_to_path("server.key")
issued.cert_chain_pems[0].write_to_path("server.pem")
first = cluster = secateur.start(members=1, runtime="embedded")
os.environ.update(SECATEUR_ADDRESS=first.address, SECATEUR_TOKEN=first.token)
sql = first.connect().execute
for name in ("orders", "items"):
    key = "PRIMARY KEY (tenant, id)) PARTITION BY HASH (tenant) PARTITIONS 4"
    sql(f"CREATE TABLE {{name}} (tenant VARCHAR, id INTEGER, {{key}}")
sql("INSERT INTO orders VALUES ('C1', 1), ('C2', 2)")
""",
        before_blocks={
            7: """
assert sorted(token.title for token in first.tokens.list()) == ["reader", "reader"]
bob = first.tokens.create("reader", claims={"tenant": "C2"}).token
assert secateur.connect(first.address, bob).execute("SELECT id FROM orders").fetchall() == [(2,)]
cluster.stop()
"""
        },
        meant={"https://login.example.com/": "ISSUER", 'audience="orders"': "f'audience={AUDIENCE!r}'"},
        after=f"first.stop(); {STOP}",
    ),
    "docs/tracing.md": Page(
        before="""
os.mkdir("my_service")
with open("my_service/tracing.py", "w") as file:
    print("def configure():\\n    from opentelemetry import trace", file=file)
""",
        after="cluster.stop(); provider.shutdown()",
    ),
    "docs/operations.md": Page(
        before="import ray",
        before_blocks={2: "cluster.stop()", 3: "assert len(cluster.members()) == 2; cluster.stop()"},
        meant={
            "10.0.0.1:6379": "ray.get_runtime_context().gcs_address",
            "/var/lib/": "os.getcwd() + '/'",
            "members=6": "'members=2'",
        },
        after="cluster.stop()",
    ),
}
WITH_COMMANDS = {
    "docs/cli.md": Page(),
    "docs/index.md": Page(printed=(0,)),
    "docs/dashboard.md": Page(stays=("secateur dashboard",)),
}
EVERYTHING = {
    "README.md": Page(printed=(0,), after="assert sum(job.result()['orders'].to_pylist()) == 130; spark.stop()"),
    "docs/quickstart.md": Page(printed=(0, 1, 2)),
}
"""Pages with Spark, and members on Ray."""


def type_pages(folder: Path, pages: Mapping[str, Page], *options: str) -> None:
    """Type pages one after the other, in one session and in an empty directory with the files that they name."""
    (folder / "orders.csv").write_text("customer_id,order_id,amount\nC1,1,12.50\nC2,2,3.00\nC2,3,1.25\n")
    home = folder / "home"
    around = [[str(ROOT / name), asdict(page)] for name, page in pages.items()]
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((str(COMMAND.parent), os.environ["PATH"])),
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(folder), str(ROOT / "tests" / "unit" / "wire"))),
        "PYSPARK_PYTHON": sys.executable,
        "SECATEUR_HOME": str(home),
    }
    try:
        done = subprocess.run(
            [sys.executable, *options, str(TYPE_PAGE), json.dumps(around)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=580,
            check=False,
        )
    finally:
        for known in home.glob("clusters/*.json"):
            subprocess.run([COMMAND, "stop", "--name", known.stem], env=environment, check=True)
    assert done.returncode == 0, done.stderr + done.stdout
    for name, page in pages.items():
        texts = re.findall(r"^```text\n(.*?)^```$", (ROOT / name).read_text("utf-8"), re.DOTALL | re.MULTILINE)
        for part in (part for number in page.printed for part in texts[number].split("...\n")):
            assert part.rstrip("\n") in done.stdout, name  # a table goes on behind a line


def test_pages_that_need_nothing_else(tmp_path: Path) -> None:
    type_pages(tmp_path, IN_ONE_PROCESS, "-W", "error")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_pages_about_spark(tmp_path: Path) -> None:
    type_pages(tmp_path, {"docs/spark.md": WITH_SPARK, "docs/scheduled_spark.md": SCHEDULED})


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_pages_with_members_on_ray(tmp_path: Path) -> None:
    type_pages(tmp_path, WITH_RAY)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", WITH_COMMANDS)
def test_pages_with_commands(tmp_path: Path, name: str) -> None:
    type_pages(tmp_path, {name: WITH_COMMANDS[name]})


@pytest.mark.ray
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", EVERYTHING)
def test_pages_that_need_everything(tmp_path: Path, name: str) -> None:
    type_pages(tmp_path, {name: EVERYTHING[name]})


def test_every_page_with_examples_is_typed() -> None:
    typed = {*IN_ONE_PROCESS, "docs/spark.md", "docs/scheduled_spark.md", *WITH_RAY, *WITH_COMMANDS, *EVERYTHING}
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    examples = re.compile(r"^```(python|console)\n", re.MULTILINE)
    assert {str(page.relative_to(ROOT)) for page in pages if examples.search(page.read_text("utf-8"))} == typed
