"""What the tests of the dashboard share: a table, clients that use it, and a page whose console stays silent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
from playwright.sync_api import Browser, Page, expect

import secateur
from secateur.cluster import Cluster
from secateur.errors import Error
from secateur.server import HttpServer

PAGES = [
    *(
        "/",
        "/members",
        "/partitions",
        "/statements",
        "/pruning",
        "/hot-keys",
        "/tenants",
        "/sql",
        "/tables",
        "/loads",
        "/jobs",
    ),
    "/events",
]
ONE = "SELECT count(*) AS orders FROM orders WHERE customer = ?"
ALL = "SELECT count(*) AS orders FROM orders WHERE lower(customer) = 'c1'"
PAGE_BYTES_MAX = 200_000
WAIT_MS = 60_000
expect.set_options(timeout=WAIT_MS)


def create_orders(conn: secateur.Connection) -> None:
    conn.execute(
        "CREATE TABLE orders (customer VARCHAR, id BIGINT, PRIMARY KEY (customer, id))"
        " PARTITION BY HASH (customer) PARTITIONS 32"
    )
    rows = duckdb.sql("SELECT 'C' || range % 100 AS customer, range AS id FROM range(20000)")
    conn.table("orders").load(rows.to_arrow_table())


@contextmanager
def load(cluster: Cluster) -> Iterator[None]:
    """Statements from another connection until the end; a member that is lost is none of its business."""
    is_over = threading.Event()

    def run() -> None:
        with cluster.connect() as conn:
            number = 0
            while not is_over.wait(0.1):
                number += 1
                try:
                    conn.execute(ONE, [f"C{number % 100}"]).fetchall()
                    if number % 10 == 0:
                        conn.execute(ALL).fetchall()
                except Error:
                    continue

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextmanager
def visited(browser: Browser, cluster: Cluster, server: HttpServer) -> Iterator[Page]:
    """A page whose console stays without errors."""
    said: list[str] = []
    context = browser.new_context(
        base_url=server.url, http_credentials={"username": "any", "password": cluster.token or ""}
    )
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        yield page
    finally:
        context.close()
    assert said == []


def visit_every_page(page: Page) -> None:
    """Each is small, and says to a screen reader what it is, what its tables and fields are, and where one stands."""
    for path in PAGES:
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 200, f"{path}: {answer.status} {page.inner_text('main')}"
        assert len(answer.body()) < PAGE_BYTES_MAX, path
        assert page.locator("h1").count() == page.locator("main").count() == 1, path
        assert page.locator("nav[aria-label=Pages] [aria-current=page]").get_attribute("href") == path
        for table in page.locator("table").all():
            assert table.locator("caption").count() == 1, path
            assert table.locator("thead th:not([scope=col])").count() == 0, path
        for field in page.locator("textarea, input").all():
            assert page.locator(f"label[for={field.get_attribute('id')}]").count() == 1, path


def expect_a_member_replaced(page: Page, cluster: Cluster, gone: str, new: str) -> None:
    """On the pages: the member is lost, another has come, its partitions have moved, and no backup is missing."""
    expect(page.locator("#line-members")).to_contain_text("3 of 3", timeout=WAIT_MS)
    expect(page.locator("#map-incomplete")).to_have_text("0 lack a backup", timeout=WAIT_MS)
    expect(page.locator(".legend a", has_text=new).locator(".dim")).not_to_have_text("0", timeout=WAIT_MS)
    with cluster.connect() as conn:
        owned = conn.execute(
            "SELECT primary_member, count(*) FROM secateur.partitions WHERE table_name = 'orders' GROUP BY ALL"
        ).fetchall()
    assert gone not in [member for member, _ in owned]
    for member, count in owned:
        expect(page.locator(".legend a", has_text=str(member)).locator(".dim")).to_have_text(
            str(count), timeout=WAIT_MS
        )
    page.click("nav >> text=Events")
    lost = page.locator("tr", has_text="member_lost").first
    expect(lost).to_contain_text(gone, timeout=WAIT_MS)
    expect(lost).to_contain_text("its process has ended")
    expect(page.locator("tr", has_text="member_joined").first).to_contain_text(new)
    page.click("nav >> text=Members")
    expect(page.locator(f"#member-{gone} .state")).to_have_text("lost", timeout=WAIT_MS)
    expect(page.locator(f"#member-{new} .state")).to_have_text("active", timeout=WAIT_MS)
