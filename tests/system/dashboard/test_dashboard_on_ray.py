"""The dashboard in a real browser, on three Ray members under load while the process of one is killed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pages_under_load import (
    ALL,
    ONE,
    WAIT_MS,
    create_orders,
    expect_a_member_replaced,
    load,
    visit_every_page,
    visited,
)
from playwright.sync_api import Browser, expect

import secateur
from secateur.cluster import Cluster
from secateur.server import HttpServer

pytestmark = [pytest.mark.ray, pytest.mark.slow]  # test_dashboard.py has the same pages over members in one process


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with secateur.start(members=3, start_timeout_s=170.0) as running:
        with running.connect() as conn:
            create_orders(conn)
        yield running


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[HttpServer]:
    with HttpServer(cluster.address) as running:
        yield running


def test_numbers_are_those_of_the_clients_stats(browser: Browser, cluster: Cluster, server: HttpServer) -> None:
    with visited(browser, cluster, server) as page, cluster.connect() as conn:
        one, everything = conn.execute(ONE, ["C3"]), conn.execute(ALL)
        prints = dict(conn.execute("SELECT DISTINCT statement, fingerprint FROM secateur.statements").fetchall())
        page.goto("/statements")
        for sql, stats in ((ONE, one.stats), (ALL, everything.stats)):
            assert stats is not None
            cells = page.locator(f"#fingerprint-{prints[sql]} td")
            expect(cells.nth(5)).to_have_text(f"{stats.partitions_read} of {stats.partitions_total}", timeout=WAIT_MS)
            expect(cells.nth(6)).to_have_text(f"{stats.members_touched} of {stats.members_total}")


def test_every_page_while_the_process_of_a_member_is_killed(
    browser: Browser, cluster: Cluster, server: HttpServer
) -> None:
    with load(cluster), visited(browser, cluster, server) as page:
        visit_every_page(page)
        page.goto("/partitions?table=orders")
        expect(page.locator(".map rect")).to_have_count(32)
        expect(page.locator("#line-rate")).not_to_have_text("-", timeout=WAIT_MS)
        cluster.kill_member("m2")
        visit_every_page(page)  # also while it is found out
        page.goto("/partitions?table=orders")
        expect_a_member_replaced(page, cluster, "m2", "m4")
        visit_every_page(page)
