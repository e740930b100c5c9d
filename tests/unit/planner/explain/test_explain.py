"""EXPLAIN as text and as JSON, to the letter: programs read its keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from secateur.partitioning.topology import Ownership, assign


def pruning(context: Any, sql: str, params: Any = (), **settings: str) -> dict[str, Any]:
    explained = context.explain(sql, params, **settings).json
    assert json.loads(json.dumps(explained)) == explained, "plain JSON"
    found: dict[str, Any] = explained["pruning"]
    return found


def owners(context: Any, *partitions: int) -> list[str]:
    return sorted(context.topology.primaries(context.table("orders").scheme.affinity_group(), list(partitions)))


def test_the_example_of_the_design(context: Any) -> None:
    partition = context.partition("orders", customer_id="C2")
    explained = context.explain(
        "SELECT count(*), sum(amount), priority FROM orders o WHERE customer_id = 'C2' GROUP BY priority"
    )
    assert explained.json == {
        "pruning": {
            "enabled": True,
            "applicable": True,
            "reason": None,
            "tree": f"orders: (p{partition})",
            "execution": "local",
            "topology_version": 3,
            "required_members": owners(context, partition),
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
                    "columns": ["customer_id", "priority", "amount"],
                    "filter": None,
                    "estimated_rows": None,
                    "reason": None,
                }
            ],
            "serving": True,
            "serving_reason": None,
        },
        "dag": {
            "vertices": [{"name": "statement", "members": owners(context, partition), "local_parallelism": 1}],
            "edges": [],
        },
    }


def test_several_partitions_on_several_members_are_a_job(context: Any) -> None:
    customers = [f"C{number}" for number in range(12)]
    partitions = sorted({context.partition("orders", customer_id=customer) for customer in customers})
    explained = context.explain(
        f"SELECT sum(amount) FROM orders WHERE customer_id IN ({', '.join('?' * 12)})", customers
    )
    facts, dag = explained.json["pruning"], explained.json["dag"]
    assert (facts["execution"], facts["required_members"]) == ("distributed", owners(context, *partitions))
    assert facts["tree"] == "orders: (" + " | ".join(f"${number}" for number in range(1, 13)) + ")"
    assert facts["scans"][0]["partitions"] == partitions
    assert facts["scans"][0]["partitioning_key_values"] == [[customer] for customer in sorted(customers)]
    scan = dag["vertices"][0]
    assert (scan["name"], scan["members"]) == ("scan orders", owners(context, *partitions))
    assert {edge["kind"] for edge in dag["edges"] if edge["distributed"]} == {"all-to-one"}
    assert all(set(edge) == {"from", "to", "kind", "distributed"} for edge in dag["edges"])


def test_nothing_to_read(context: Any) -> None:
    explained = context.explain("SELECT count(*) FROM orders WHERE customer_id = NULL")
    assert explained.json["pruning"]["execution"] == "none"
    assert explained.json["pruning"]["required_members"] == []
    assert explained.json["pruning"]["scans"][0]["partitions"] == []
    assert explained.json["dag"] == {"vertices": [], "edges": []}
    assert "execution: none on 0 of 3 members" in explained.text


def test_values_of_every_type_are_plain_json(context: Any) -> None:
    context.create(
        "CREATE TABLE wide (d DATE, t TIMESTAMP, p DECIMAL(6,2), u UUID, b BLOB, f BOOLEAN, PRIMARY KEY (d, t, p, u, b,"
        " f)) PARTITION BY HASH (d, t, p, u, b, f) PARTITIONS 5"
    )
    where = (
        "d = DATE '2024-01-01' AND t = TIMESTAMP '2024-01-01 10:00:00' AND p = 1.5 AND u ="
        " 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' AND b = X'00ff' AND f"
    )
    (scan,) = pruning(context, f"SELECT * FROM wide WHERE {where}")["scans"]
    assert scan["partitioning_key_values"] == [
        ["2024-01-01", "2024-01-01 10:00:00", "1.50", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00ff", True]
    ]
    assert len(scan["partitions"]) == 1


@pytest.mark.parametrize("sql", ["CREATE TABLE x (a INT PRIMARY KEY)", "DROP TABLE orders", "SET pruning = off"])
def test_what_reads_nothing_has_the_same_form(context: Any, sql: str) -> None:
    facts = pruning(context, f"EXPLAIN {sql}")
    assert set(facts) == {
        "enabled",
        "applicable",
        "reason",
        "tree",
        "execution",
        "topology_version",
        "required_members",
        "members_total",
        "scans",
        "serving",
        "serving_reason",
    }
    assert facts["scans"] == []
    assert (facts["serving"], facts["serving_reason"]) == (False, facts["reason"])


def with_backups(context: Any) -> Ownership:
    scheme = context.table("orders").scheme
    context.owners[scheme.affinity_group()] = ownership = assign(scheme.partition_count, context.topology.member_ids, 2)
    return ownership


def test_an_insert_says_where_its_rows_go(context: Any) -> None:
    partition = context.partition("orders", customer_id="C2")
    primary, backup = with_backups(context).holders(partition)
    explained = context.explain("INSERT INTO orders (customer_id, id) VALUES ('C2', 1)")
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
            "columns": ["customer_id", "id", "priority", "amount", "day"],
            "filter": None,
            "estimated_rows": 1,
            "reason": None,
        }
    ]
    assert explained.text.splitlines() == [
        "INSERT of 1 row into orders",
        f"execution: local on 1 of 3 members [{primary}]",
        f"tree: orders: (p{partition})",
        f"rows go to 1 of 271 partitions [p{partition}]",
        "serving: yes",
        f"backups: [{backup}]",
        "written: by the primary, then by its backups",
        "dag:",
        f"  insert into orders x1 [{primary}]",
    ]


def test_a_change_explains_its_query_and_who_keeps_copies(context: Any) -> None:
    partition = context.partition("orders", customer_id="C2")
    primary, backup = with_backups(context).holders(partition)
    explained = context.explain("UPDATE orders SET priority = 'high' WHERE customer_id = ?", ["C2"])
    facts = explained.json["pruning"]
    assert (facts["execution"], facts["required_members"], facts["backup_members"]) == ("local", [primary], [backup])
    assert facts["scans"][0]["partitions"] == [partition]
    assert facts["scans"][0]["partitioning_key_values"] == [["C2"]]
    assert explained.json["dag"] == {
        "vertices": [{"name": "update orders", "members": [primary], "local_parallelism": 1}],
        "edges": [],
    }
    assert explained.text.splitlines()[0] == "UPDATE of orders"
    assert "written: by the primary, then by its backups" in explained.text
