"""What tenants have used, by the hour: from the log of statements and from the counters of their accounts."""

from __future__ import annotations

import pytest

from secateur.cluster.controller import tenant_rows
from secateur.cluster.member import EndedStatement, TenantAccounts, TenantLedger
from secateur.protocol import ChangedRows, Executed, GrantedToken, ResourceGroup, TenantHours, TokenRole, buckets_of
from secateur.wire import PeerInfo

HOUR = 3600.0


class _Clock:
    def __init__(self) -> None:
        self.now_s = 10 * HOUR

    def __call__(self) -> float:
        return self.now_s


def token(token_id: str, principal: str = "", roles: tuple[str, ...] = (), **claims: str) -> GrantedToken:
    return GrantedToken(token_id, TokenRole.READ, principal=principal, roles=roles, claims=claims)


def peer(granted: GrantedToken | None) -> PeerInfo:
    return PeerInfo(1, "there", "test", True, token=granted)


def entry(
    tenant: str, at_s: float, elapsed_s: float = 0.002, said: Executed | ChangedRows | None = None
) -> EndedStatement:
    return 1, "plan", True, at_s, elapsed_s, said, None if said else "DataError: no", tenant


def add(ledger: TenantLedger, *entries: EndedStatement) -> None:
    ledger.add(entries, buckets_of([1000 * entry[4] for entry in entries]))


@pytest.mark.parametrize(
    ("granted", "tenant"),
    [
        pytest.param(token("t1", "alice", tenant="C2"), "C2", id="claim"),
        pytest.param(token("t1", "alice", region="eu"), "alice", id="principal"),
        pytest.param(token("t1"), "t1", id="token"),
        pytest.param(None, "", id="owner"),
    ],
)
def test_whom_a_statement_is_for(granted: GrantedToken | None, tenant: str) -> None:
    assert peer(granted).tenant == tenant


def test_statements_and_counters_stand_in_the_hour_in_which_they_ended() -> None:
    clock, accounts = _Clock(), TenantAccounts()
    ledger = TenantLedger(accounts, clock)
    ran = Executed("local", 1, 8, 3, 5, [[1, 2, 3, 4, 5]])
    now_s = clock.now_s
    add(ledger, entry("b", now_s - HOUR), entry("a", now_s + 1, said=ran), entry("a", now_s + 2))
    account = accounts.of(peer(token("a")))
    account.gets, account.short_s = 3, 0.5
    account.use.kernel_s, account.use.waited_s, account.use.rows_read, account.use.refused = 1.5, 0.25, 100, 2
    clock.now_s += HOUR
    ledger.turned()
    add(ledger, entry("a", clock.now_s + 1, said=ChangedRows(7, 1)))
    lines = {(line.tenant, line.hour): line for line in ledger.lines()}
    assert set(lines) == {("b", 9 * 3600), ("a", 10 * 3600), ("a", 11 * 3600)}
    first = lines["a", 36_000]
    assert (first.statements, first.failed, first.refused, first.rows, first.rows_read) == (5, 1, 2, 5, 100)
    assert (first.processor_ms, first.waiting_ms, first.latencies.total) == (2000.0, 250.0, 2)
    assert first.bytes_sent > 0
    assert lines["a", 39_600].rows == 7


def test_the_tenants_that_use_least_stand_in_one_line() -> None:
    clock, accounts = _Clock(), TenantAccounts()
    ledger = TenantLedger(accounts, clock, tenants_max=10)
    for number in range(100):
        accounts.of(peer(token(f"t{number}"))).use.kernel_s = float(number)
    ledger.fold()
    lines = {line.tenant: line.processor_ms for line in ledger.lines()}
    assert len(lines) <= 12
    assert {"others", "t99", "t98", "t97"} <= set(lines)
    assert sum(lines.values()) == 1000 * sum(range(100))


def test_lines_of_a_day_are_kept() -> None:
    clock, accounts = _Clock(), TenantAccounts()
    ledger = TenantLedger(accounts, clock)
    for _ in range(40):
        accounts.of(peer(token("a"))).use.kernel_s = 1.0
        ledger.fold()
        clock.now_s += HOUR
    assert len(ledger.lines()) <= 24


def test_members_are_added_up() -> None:
    clock = _Clock()
    answers = []
    for kernel_s in (1.0, 2.0):
        accounts = TenantAccounts()
        ledger = TenantLedger(accounts, clock)
        accounts.of(peer(token("a"))).use.kernel_s = kernel_s
        add(ledger, entry("a", clock.now_s, kernel_s, Executed("local", 1, 8, 3, 5)))
        answers.append(TenantHours(ledger.lines()))
    (row,) = tenant_rows(answers)
    assert (row["tenant"], row["statements"], row["processor_ms"], row["rows"]) == ("a", 2, 3000.0, 10)
    assert row["p50_ms"] == pytest.approx(1000.0, rel=0.1)
    assert row["p99_ms"] == pytest.approx(2000.0, rel=0.1)


def test_the_group_of_a_tenant_is_the_first_for_a_role_of_it_and_else_that_for_everybody() -> None:
    accounts = TenantAccounts()
    everybody, gold = ResourceGroup("everybody", weight=0.5), ResourceGroup("gold", ("payer",), weight=3.0)
    accounts.take_groups((everybody, gold))
    payer, other = peer(token("p", roles=("reader", "payer"))), peer(token("o", roles=("reader",)))
    for one in (payer, other, peer(None)):
        accounts.connected(one)
    assert [accounts.share_of(name).weight for name in ("p", "o", "", "unheard")] == [3.0, 0.5, 1.0, 1.0]
    accounts.take_groups(())
    assert accounts.share_of("p").weight == 1.0
