-- Subqueries that run first: their values prune the scans of the rest.
CREATE TABLE step_orders (customer_id VARCHAR, id BIGINT, amount DECIMAL(10,2), PRIMARY KEY (customer_id, id)) PARTITION BY HASH (customer_id) PARTITIONS 16;
CREATE TABLE step_vip (id INTEGER PRIMARY KEY, customer_id VARCHAR, region VARCHAR) PARTITION BY HASH (id) PARTITIONS 4;
CREATE TABLE step_regions (region VARCHAR PRIMARY KEY, big BOOLEAN) REPLICATED;
CREATE TABLE step_days (day DATE PRIMARY KEY, n INTEGER) PARTITION BY RANGE (day) SPLIT AT (DATE '2024-01-01', DATE '2024-02-01', DATE '2024-03-01');
INSERT INTO step_orders VALUES ('C1', 1, 1.5), ('C1', 2, 2.5), ('C2', 1, -3), ('C2', 7, 4.25), ('C3', 1, 0), ('C4', 9, 100);
INSERT INTO step_vip VALUES (1, 'C1', 'north'), (2, 'C2', 'north'), (3, 'C2', 'north'), (4, NULL, 'north'), (5, 'C4', 'south'), (6, 'C9', 'west');
INSERT INTO step_regions VALUES ('north', true), ('south', false), ('west', true);
INSERT INTO step_days VALUES (DATE '2023-12-31', 1), (DATE '2024-01-15', 2), (DATE '2024-02-15', 3), (DATE '2024-03-15', 4)
----
-- the values of a subquery choose the partitions
-- partitions=6
SELECT count(*), sum(amount) FROM step_orders WHERE customer_id IN (SELECT customer_id FROM step_vip WHERE region = 'north')
/*
tree: step_orders: ($1[])
rewrites: materialize_subquery
scan step_orders: the partitions that the parameters select, of 16
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id, amount; about 3 rows
  filter: customer_id IN $1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT customer_id FROM step_vip WHERE region = 'north'
  tree: step_vip: all
  scan step_vip: all 4 partitions
    because no predicate on the partition key id: compare it with values
    columns: customer_id, region; about 2 rows
    filter: region = 'north'
  serving: no, it does not search step_vip by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- one row of the subquery one partition of the rest
-- partitions=2
SELECT id FROM step_orders WHERE customer_id IN (SELECT customer_id FROM step_vip WHERE id = 5)
/*
tree: step_orders: ($1[])
rewrites: materialize_subquery
scan step_orders: the partitions that the parameters select, of 16
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id, id; about 3 rows
  filter: customer_id IN $1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT customer_id FROM step_vip WHERE id = 5
  tree: step_vip: (p1)
  scan step_vip: 1 of 4 partitions [p1]
    partitioning key (id): (5)
    primary key bounds: (5)
    columns: id, customer_id; about 1 row
  serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- no value and nothing else is read
-- partitions=1 members=1 execution=local
SELECT count(*) FROM step_orders WHERE customer_id IN (SELECT customer_id FROM step_vip WHERE id = 4)
/*
tree: step_orders: ($1[])
rewrites: materialize_subquery
scan step_orders: the partitions that the parameters select, of 16
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id; about 3 rows
  filter: customer_id IN $1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT customer_id FROM step_vip WHERE id = 4
  tree: step_vip: (p3)
  scan step_vip: 1 of 4 partitions [p3]
    partitioning key (id): (4)
    primary key bounds: (4)
    columns: id, customer_id; about 1 row
  serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- a scalar subquery
-- partitions=5
SELECT count(*) FROM step_orders WHERE customer_id = (SELECT max(customer_id) FROM step_vip WHERE region = 'south')
/*
tree: step_orders: ($1)
rewrites: materialize_subquery
scan step_orders: the partitions that the parameters select, of 16
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1) they select
  columns: customer_id; about 2 rows
serving: no, queries run first whose values prune it
runs first, for $1: SELECT max(customer_id) FROM step_vip WHERE region = 'south'
  tree: step_vip: all
  scan step_vip: all 4 partitions
    because no predicate on the partition key id: compare it with values
    columns: customer_id, region; about 2 rows
    filter: region = 'south'
  serving: no, it does not search step_vip by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- a range between scalar subqueries
-- partitions=9
SELECT n FROM step_days WHERE day BETWEEN (SELECT min(day) + 20 FROM step_days WHERE n > 1) AND (SELECT max(day) - 20 FROM step_days WHERE day < DATE '2024-03-01' OR n = 4) ORDER BY n
/*
tree: step_days: ([$1, $2])
rewrites: materialize_subquery
scan step_days: the partitions that the parameters select, of 4
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ([$1, $2]) they select
  columns: day, n; about 1 row
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1: SELECT min(day) + 20 FROM step_days WHERE n > 1
  tree: step_days: all
  scan step_days: all 4 partitions
    because no predicate on the partition key day: compare it with values
    columns: day, n; about 4 rows
    filter: n > 1
  serving: no, it does not search step_days by its key: compare the first columns of (day) with values
  when distributed: two-stage
runs first, for $2: SELECT max(day) - 20 FROM step_days WHERE day < DATE '2024-03-01' OR n = 4
  tree: step_days: all
  scan step_days: all 4 partitions
    because the OR branch n = 4 does not restrict the key: compare day with values in every branch
    columns: day, n; about 4 rows
    filter: (day < '2024-03-01' OR n = 4)
  serving: no, it does not search step_days by its key: compare the first columns of (day) with values
  when distributed: two-stage
*/
----
-- a step that has a step
-- partitions=6
SELECT sum(amount) FROM step_orders WHERE customer_id IN (SELECT customer_id FROM step_orders WHERE customer_id IN (SELECT customer_id FROM step_vip WHERE region = 'south') AND amount > 50) AND id > 1
/*
tree: step_orders: ($1[])
rewrites: materialize_subquery
scan step_orders: the partitions that the parameters select, of 16
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id, id, amount; about 3 rows
  filter: customer_id IN $1 AND id > 1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT customer_id FROM step_orders WHERE customer_id IN (SELECT customer_id FROM step_vip WHERE region = 'south') AND amount > 50
  tree: step_orders: ($1[])
  rewrites: materialize_subquery
  scan step_orders: the partitions that the parameters select, of 16
    because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
    columns: customer_id, amount; about 1 row
    filter: customer_id IN $1 AND amount > 50
  serving: no, queries run first whose values prune it
  scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
  when distributed: two-stage
  runs first, for $1[]: SELECT customer_id FROM step_vip WHERE region = 'south'
    tree: step_vip: all
    scan step_vip: all 4 partitions
      because no predicate on the partition key id: compare it with values
      columns: customer_id, region; about 2 rows
      filter: region = 'south'
    serving: no, it does not search step_vip by its key: compare the first columns of (id) with values
    when distributed: two-stage
*/
----
-- a common table expression goes along
-- partitions=6
WITH big AS (SELECT v.customer_id FROM step_vip v JOIN step_regions r USING (region) WHERE r.big AND v.region <> 'north') SELECT count(*) FROM step_orders WHERE customer_id IN (SELECT customer_id FROM big)
/*
tree: step_orders: ($1[])
rewrites: materialize_subquery
scan step_orders: the partitions that the parameters select, of 16
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id; about 3 rows
  filter: customer_id IN $1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT customer_id FROM big
  tree: step_vip: all; step_regions: any
  scan step_vip AS v: all 4 partitions
    because no predicate on the partition key id: compare it with values
    columns: customer_id, region; about 4 rows
    filter: region <> 'north'
  scan step_regions AS r: replicated, every member has it
    primary key bounds: key, in 2 ranges
    columns: region, big; about 2 rows
    filter: big
  serving: no, its expressions, types or clauses need a kernel over whole columns
  when distributed: in 2 stages
    x0 join v: at the members over v, r, to the coordinator
    final: at the coordinator over x0
*/
----
-- a key that is bound already
-- partitions=5
SELECT count(*) FROM step_orders WHERE customer_id = 'C2' AND customer_id IN (SELECT customer_id FROM step_vip WHERE region = 'north')
/*
tree: step_orders: (p7); step_vip: all
scan step_orders: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id; about 2 rows
scan step_vip: all 4 partitions
  because no predicate on the partition key id: compare it with values
  columns: customer_id, region; about 2 rows
  filter: region = 'north'
serving: no, it does not find the rows that it joins by their keys
when distributed: in 3 stages
  x0 scan step_vip: at the members over step_vip, to every member
  x1 join step_orders: at the members over step_orders, x0, to the coordinator
  final: at the coordinator over x1
*/
