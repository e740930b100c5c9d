"""Writes the pictures of docs/dashboard.md: `make pictures`. It needs a Chromium (`make browser`)."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import duckdb
from playwright.sync_api import Page, sync_playwright

import secateur
from secateur.connectors import collect
from secateur.processors import count_rows
from secateur.server import HttpServer

HERE = Path(__file__).parent
JOIN = (
    "SELECT c.region, count(*) AS orders FROM orders o JOIN customers c USING (customer)"
    " WHERE o.customer IN ('C1', 'C2', 'C9') GROUP BY ALL ORDER BY ALL"
)


def main() -> None:
    """Start a cluster, put it under load, and take a picture of each page."""
    is_over = threading.Event()
    with secateur.start(members=5, runtime="embedded") as cluster, cluster.connect() as conn:
        for table, columns in (
            ("orders", "customer VARCHAR, id BIGINT, amount DOUBLE"),
            ("customers", "customer VARCHAR, region VARCHAR"),
        ):
            key = "customer, id" if table == "orders" else "customer"
            conn.execute(
                f"CREATE TABLE {table} ({columns}, PRIMARY KEY ({key})) PARTITION BY HASH (customer) PARTITIONS 271"
            )
        conn.table("customers").load(
            duckdb.sql("SELECT 'C' || range AS customer, 'R' || range % 7 AS region FROM range(5000)").to_arrow_table()
        )
        conn.table("orders").load(
            duckdb.sql(
                "SELECT 'C' || (hash(range) % 70 * (hash(range + 1) % 70)) AS customer, range AS id,"
                " range % 97 / 2 AS amount FROM range(200000)"
            ).to_arrow_table()
        )

        def load() -> None:
            with cluster.connect() as other:
                number = 0
                while not is_over.wait(0.004):
                    number += 1
                    customer = number % 900 if number % 3 else (7, 42)[number % 2]  # two take a third of the load
                    other.execute("SELECT sum(amount) FROM orders WHERE customer = ?", [f"C{customer}"]).fetchall()
                    if number % 50 == 0:
                        other.execute("SELECT count(*) FROM orders WHERE lower(customer) = 'c7'").fetchall()
                    if number % 80 == 0:
                        other.execute(
                            "SELECT region, count(*) FROM customers WHERE region = 'R1' GROUP BY ALL"
                        ).fetchall()
                    if number % 60 == 0:
                        other.execute(JOIN).fetchall()

        job = secateur.Pipeline().read_table("orders", where={"customer": "C7"}).key_by("customer")
        totals = job.aggregate(orders=count_rows()).write_to(collect())
        totals.submit(conn, secateur.JobConfig(name="orders of C7")).result()
        thread = threading.Thread(target=load)
        thread.start()
        try:
            _take(cluster.address, cluster.token or "")
        finally:
            is_over.set()
            thread.join()


def _take(address: str, token: str) -> None:
    with HttpServer(address, token) as server, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme, names in (("light", tuple(path for path in _PATHS if path not in _DARK)), ("dark", _DARK)):
            context = browser.new_context(
                base_url=server.url,
                http_credentials={"username": "any", "password": token},
                color_scheme=scheme,
                viewport={"width": 1120, "height": 560},
            )
            page = context.new_page()
            for name in names:
                page.goto(_PATHS[name])
                page.locator("#line-rate:not(:text-is('-'))").wait_for()
                if name in _PREPARED:
                    _PREPARED[name](page)
                page.wait_for_timeout(3000)  # the line covers some seconds of load
                page.screenshot(path=HERE / f"dashboard-{name}.png")
                page.set_viewport_size({"width": 1120, "height": 560})
            context.close()
        browser.close()


def _planned(page: Page) -> None:
    page.set_viewport_size({"width": 1120, "height": 900})
    page.fill("#sql", JOIN.replace("'C1', 'C2', 'C9'", "'C1', 'C2'"))
    page.click("text=EXPLAIN ANALYZE")
    page.locator("svg.dag").wait_for()
    page.evaluate("scrollTo(0, 0)")


def _compared(page: Page) -> None:
    page.set_viewport_size({"width": 1120, "height": 720})
    page.fill("#sql", "SELECT sum(amount) AS amount FROM orders WHERE customer = ?")
    page.fill("#params", '["C7"]')
    page.click("text=Compare pruning on and off")
    page.locator("#rows-equal").wait_for()
    page.evaluate("scrollTo(0, 0)")


def _heightened(page: Page) -> None:
    page.set_viewport_size({"width": 1120, "height": 900})


def _opened(page: Page) -> None:
    """The first one of the list: a statement, or a job."""
    page.locator("tbody tr a").first.click()
    page.locator("dl.facts, #job-status").first.wait_for()


_PATHS = {
    "members": "/members",
    "partitions": "/partitions?table=orders",
    "hits": "/partitions?table=orders&shade=hits",
    "hot-keys": "/hot-keys",
    "statements": "/statements",
    "statement": "/statements",
    "pruning": "/pruning",
    "plan": "/sql",
    "sql": "/sql",
    "tables": "/tables",
    "loads": "/loads",
    "jobs": "/jobs",
    "job": "/jobs",
    "events": "/events",
    "overview": "/",  # last: the other pages have taken a minute of history
}
_PREPARED = {"plan": _planned, "sql": _compared, "statement": _opened, "job": _opened, "overview": _heightened}
_DARK = ("statements", "events")


if __name__ == "__main__":
    main()
