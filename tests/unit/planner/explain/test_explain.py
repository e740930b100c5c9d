"""EXPLAIN to the letter of DESIGN section 7."""

from __future__ import annotations

import json
from typing import Any

import pytest

from secateur.partitioning.affinity import assign
from secateur.partitioning.topology import Ownership


def pruning(bench: Any, sql: str, params: Any = (), **settings: str) -> dict[str, Any]:
    explained = bench.explain(sql, params, **settings).json
    assert json.loads(json.dumps(explained)) == explained, "plain JSON"
    found: dict[str, Any] = explained["pruning"]
    return found


def owners(bench: Any, *partitions: int) -> list[str]:
    return sorted(bench.topology.primaries(bench.table("orders").scheme.affinity_group(), list(partitions)))


def test_the_example_of_the_design(bench: Any) -> None:
    partition = bench.partition("orders", customer_id="C2")
    explained = bench.explain("SELECT count(*), sum(amount), priority FROM orders o WHERE customer_id = 'C2' GROUP BY priority")
    assert explained.json == {
        "pruning": {
            "enabled": True,
            "applicable": True,
            "reason": None,
            "tree": f"orders: (p{partition})",
            "execution": "local",
            "topology_version": 3,
            "required_members": owners(bench, partition),
            "members_total": 3,
            "scans": [
                {
                    "table": "orders",
                    "alias": "o",
                    "partitions": [partition],
                    "partitions_total": 271,
                    "partitioning_key": ["customer_id"],
                    "partitioning_key_values": [["C2"]],
                    "primary_key_bounds": {"lower": ["C2"], "upper": ["C2"]},
                    "reason": None,
                }
            ],
        },
        "dag": {"vertices": [{"name": "statement", "members": owners(bench, partition), "local_parallelism": 1}], "edges": []},
    }


def test_several_partitions_on_several_members_are_a_job(bench: Any) -> None:
    customers = [f"C{number}" for number in range(12)]
    partitions = sorted({bench.partition("orders", customer_id=customer) for customer in customers})
    explained = bench.explain(f"SELECT sum(amount) FROM orders WHERE customer_id IN ({', '.join('?' * 12)})", customers)
    facts, dag = explained.json["pruning"], explained.json["dag"]
    assert (facts["execution"], facts["required_members"]) == ("distributed", owners(bench, *partitions))
    assert facts["tree"] == "orders: (" + " | ".join(f"?{number}" for number in range(12)) + ")"
    assert facts["scans"][0]["partitions"] == partitions
    assert facts["scans"][0]["partitioning_key_values"] == [[customer] for customer in sorted(customers)]
    scan = dag["vertices"][0]
    assert (scan["name"], scan["members"]) == ("scan:orders", owners(bench, *partitions))
    assert {edge["kind"] for edge in dag["edges"] if edge["distributed"]} == {"all-to-one"}
    assert all(set(edge) == {"from", "to", "kind", "distributed"} for edge in dag["edges"])


def test_unbound_parameters_are_shown_in_the_tree(bench: Any) -> None:
    sql = "SELECT * FROM orders WHERE customer_id IN ('C2', ?)"
    partition = bench.partition("orders", customer_id="C2")
    facts = pruning(bench, sql)
    assert facts["tree"] == f"orders: (p{partition} | ?0)"
    assert facts["scans"][0]["partitions"] is None
    assert "the parameters are not bound" in facts["scans"][0]["reason"]
    assert facts["required_members"] == ["m1", "m2", "m3"]
    assert pruning(bench, sql, ["C9"])["scans"][0]["partitions"] == sorted({partition, bench.partition("orders", customer_id="C9")})


def test_one_unbound_key_is_local_wherever_it_is(bench: Any) -> None:
    assert pruning(bench, "SELECT * FROM orders WHERE customer_id = ?")["execution"] == "local"


def test_nothing_to_read(bench: Any) -> None:
    explained = bench.explain("SELECT count(*) FROM orders WHERE customer_id = NULL")
    assert explained.json["pruning"]["execution"] == "none"
    assert explained.json["pruning"]["required_members"] == []
    assert explained.json["pruning"]["scans"][0]["partitions"] == []
    assert explained.json["dag"] == {"vertices": [], "edges": []}
    assert "execution: none on 0 of 3 members" in explained.text


@pytest.mark.parametrize(
    ("sql", "params", "reason"),
    [
        ("SELECT * FROM orders WHERE lower(customer_id) = 'c2'", (), "customer_id is wrapped in lower(): compare the bare column"),
        ("SELECT * FROM orders WHERE customer_id = ?", [5], "5 does not compare in the type of customer_id: pass a VARCHAR"),
        ("SELECT * FROM metrics WHERE host = 'h'", (), "partition key is (host, metric, time) but only host is bound"),
    ],
)
def test_a_scan_that_is_not_pruned_says_why(bench: Any, sql: str, params: Any, reason: str) -> None:
    explained = bench.explain(sql, params)
    facts = explained.json["pruning"]
    assert facts["scans"][0]["partitions"] is None
    assert facts["scans"][0]["reason"] == reason
    assert facts["reason"] == reason
    assert f"because {reason}" in explained.text


def test_a_range_of_a_parameter_past_the_limit_says_so(bench: Any) -> None:
    bench.create("CREATE TABLE numbers (n INT PRIMARY KEY) PARTITION BY HASH (n) PARTITIONS 10")
    facts = pruning(bench, "SELECT * FROM numbers WHERE n BETWEEN ? AND ?", [1, 1000])
    assert facts["scans"][0]["partitions"] is None
    assert facts["scans"][0]["reason"] == "the range of (n) has more values than the limit of 80, or values that cannot be counted"


def test_pruning_switched_off(bench: Any) -> None:
    facts = pruning(bench, "SELECT * FROM orders WHERE customer_id = 'C2'", pruning="off")
    assert (facts["enabled"], facts["applicable"]) == (False, False)
    assert facts["scans"][0]["partitions"] is None
    assert facts["scans"][0]["reason"] == "pruning is off: SET pruning = on"
    assert facts["required_members"] == ["m1", "m2", "m3"]


def test_one_unpruned_scan_needs_all_its_owners_and_the_other_keeps_its_set(bench: Any) -> None:
    facts = pruning(bench, "SELECT count(*) FROM orders o JOIN customers c ON c.score = o.id WHERE o.customer_id = 'C2'")
    assert facts["applicable"]
    assert facts["reason"] is None
    assert [scan["partitions"] for scan in facts["scans"]] == [[bench.partition("orders", customer_id="C2")], None]
    assert facts["required_members"] == ["m1", "m2", "m3"]


def test_a_replicated_table_needs_nobody_in_particular(bench: Any) -> None:
    facts = pruning(bench, "SELECT * FROM airlines WHERE code = 'AA'")
    assert facts["execution"] == "local"
    assert facts["tree"] == "airlines: any"
    assert len(facts["required_members"]) == 1
    assert facts["scans"][0]["partitions"] == [0]
    assert facts["scans"][0]["reason"] is None


def test_values_of_every_type_are_plain_json(bench: Any) -> None:
    bench.create(
        "CREATE TABLE wide (d DATE, t TIMESTAMP, p DECIMAL(6,2), u UUID, b BLOB, f BOOLEAN, PRIMARY KEY (d, t, p, u, b, f)) "
        "PARTITION BY HASH (d, t, p, u, b, f) PARTITIONS 5"
    )
    where = "d = DATE '2024-01-01' AND t = TIMESTAMP '2024-01-01 10:00:00' AND p = 1.5 AND u = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' AND b = X'00ff' AND f"
    (scan,) = pruning(bench, f"SELECT * FROM wide WHERE {where}")["scans"]
    assert scan["partitioning_key_values"] == [["2024-01-01", "2024-01-01 10:00:00", "1.50", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00ff", True]]
    assert len(scan["partitions"]) == 1


@pytest.mark.parametrize("sql", ["CREATE TABLE x (a INT PRIMARY KEY)", "DROP TABLE orders", "SET pruning = off"])
def test_what_reads_nothing_has_the_same_form(bench: Any, sql: str) -> None:
    facts = pruning(bench, f"EXPLAIN {sql}")
    assert set(facts) == {"enabled", "applicable", "reason", "tree", "execution", "topology_version", "required_members", "members_total", "scans"}
    assert facts["scans"] == []


def with_backups(bench: Any) -> Ownership:
    scheme = bench.table("orders").scheme
    bench.owners[scheme.affinity_group()] = ownership = assign(scheme.partition_count, bench.topology.member_ids, 2)
    return ownership


def test_an_insert_says_where_its_rows_go(bench: Any) -> None:
    partition = bench.partition("orders", customer_id="C2")
    primary, backup = with_backups(bench).holders(partition)
    explained = bench.explain("INSERT INTO orders (customer_id, id) VALUES ('C2', 1)")
    facts = explained.json["pruning"]
    assert (facts["execution"], facts["required_members"], facts["backup_members"]) == ("local", [primary], [backup])
    assert facts["scans"] == [
        {
            "table": "orders",
            "alias": "orders",
            "partitions": [partition],
            "partitions_total": 271,
            "partitioning_key": ["customer_id"],
            "partitioning_key_values": [["C2"]],
            "primary_key_bounds": {"lower": None, "upper": None},
            "reason": None,
        }
    ]
    assert explained.text.splitlines() == [
        "INSERT of 1 row into orders",
        f"execution: local on 1 of 3 members [{primary}]",
        f"tree: orders: (p{partition})",
        f"rows go to 1 of 271 partitions [p{partition}]",
        f"backups: [{backup}]",
        "written: by the primary, then by its backups",
        "dag:",
        f"  insert into orders x1 [{primary}]",
    ]


def test_an_insert_of_many_rows_or_into_a_replicated_table_is_published(bench: Any) -> None:
    many = bench.explain("INSERT INTO orders (customer_id, id) VALUES ('C1', 1), ('C2', 1), ('C3', 1)")
    assert many.json["pruning"]["scans"][0]["partitions"] == sorted(bench.partition("orders", customer_id=key) for key in ("C1", "C2", "C3"))
    assert "published at once" in many.text
    everywhere = bench.explain("INSERT INTO airlines VALUES ('AA', 'American')")
    assert everywhere.json["pruning"]["required_members"] == ["m1", "m2", "m3"]
    assert everywhere.json["pruning"]["execution"] == "distributed"


def test_an_insert_for_which_ranges_are_made_says_so(bench: Any) -> None:
    bench.create("CREATE TABLE daily (day DATE PRIMARY KEY) PARTITION BY RANGE (day) EVERY INTERVAL 1 DAY")
    explained = bench.explain("INSERT INTO daily VALUES (DATE '2024-01-01')")
    (scan,) = explained.json["pruning"]["scans"]
    assert scan["partitions"] is None
    assert scan["reason"].startswith("ranges are made for some of the rows")
    assert scan["reason"] in explained.text


def test_a_change_explains_its_query_and_who_keeps_copies(bench: Any) -> None:
    partition = bench.partition("orders", customer_id="C2")
    primary, backup = with_backups(bench).holders(partition)
    explained = bench.explain("UPDATE orders SET priority = 'high' WHERE customer_id = ?", ["C2"])
    facts = explained.json["pruning"]
    assert (facts["execution"], facts["required_members"], facts["backup_members"]) == ("local", [primary], [backup])
    assert facts["scans"][0]["partitions"] == [partition]
    assert facts["scans"][0]["partitioning_key_values"] == [["C2"]]
    assert explained.json["dag"] == {"vertices": [{"name": "update orders", "members": [primary], "local_parallelism": 1}], "edges": []}
    assert explained.text.splitlines()[0] == "UPDATE of orders"
    assert "written: by the primary, then by its backups" in explained.text


@pytest.mark.parametrize(
    ("sql", "execution", "members", "partitions", "reason"),
    [
        pytest.param("DELETE FROM orders WHERE amount > 1", "distributed", ["m1", "m2", "m3"], None, "no predicate on the partition key", id="unpruned"),
        pytest.param("DELETE FROM orders WHERE customer_id = 'a' AND customer_id = 'b'", "none", [], [], None, id="contradiction"),
        pytest.param("UPDATE airlines SET name = 'x' WHERE code = 'AA'", "distributed", ["m1", "m2", "m3"], [0], None, id="replicated"),
        pytest.param("TRUNCATE orders", "distributed", ["m1", "m2", "m3"], None, "no WHERE clause", id="truncate"),
    ],
)
def test_what_changes_concern(bench: Any, sql: str, execution: str, members: list[str], partitions: list[int] | None, reason: str | None) -> None:
    facts = pruning(bench, sql)
    assert (facts["execution"], facts["required_members"]) == (execution, members)
    (scan,) = facts["scans"]
    assert scan["partitions"] == partitions
    assert reason is None or reason in scan["reason"]


def test_a_change_with_open_parameters(bench: Any) -> None:
    explained = bench.explain("DELETE FROM orders WHERE customer_id IN (?, ?)")
    assert explained.json["pruning"]["tree"] == "orders: (?0 | ?1)"
    assert "written: as on one partition" in explained.text


def test_an_insert_from_a_query_explains_the_query(bench: Any) -> None:
    explained = bench.explain("INSERT INTO customers SELECT customer_id, priority, 1 FROM orders WHERE customer_id = 'C2'")
    assert explained.json["pruning"]["scans"][0]["partitions"] == [bench.partition("orders", customer_id="C2")]
    assert explained.text.startswith("INSERT into customers from:")


def test_the_text(bench: Any) -> None:
    partition = bench.partition("orders", customer_id="C2")
    member = owners(bench, partition)[0]
    assert bench.explain("SELECT count(DISTINCT id) FROM orders o WHERE customer_id = 'C2' AND id = 7").text == "\n".join(
        [
            f"execution: local on 1 of 3 members [{member}]",
            "pruning: on, topology version 3",
            f"tree: orders: (p{partition})",
            f"scan orders AS o: 1 of 271 partitions [p{partition}]",
            "  partitioning key (customer_id): ('C2')",
            "  primary key bounds: ('C2', 7)",
            "when distributed: two-stage",
            "dag:",
            f"  statement x1 [{member}]",
        ]
    )


def test_a_reason_names_tables_as_the_user_does(bench: Any) -> None:
    sql = "SELECT * FROM orders WHERE customer_id = (SELECT $low FROM orders x) || random()"
    found = pruning(bench, sql, {"low": 1})
    assert "orders AS x" in found["scans"][0]["reason"]
    assert "$low" in found["scans"][0]["reason"]
