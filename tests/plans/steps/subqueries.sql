-- Subqueries that run first, and what of them stays in the statement.
-- tables: shop
CREATE TABLE vip (customer_id VARCHAR PRIMARY KEY, region VARCHAR, since DATE, best BIGINT, score DOUBLE) PARTITION BY HASH (customer_id) PARTITIONS 7;
CREATE TABLE days (day DATE, n INTEGER, best UINTEGER, PRIMARY KEY (day, n)) PARTITION BY RANGE (day) SPLIT AT (DATE '2024-01-01', DATE '2024-02-01', DATE '2024-03-01');
CREATE TABLE numbers (a BIGINT, b INTEGER, v BIGINT, PRIMARY KEY (a, b)) PARTITION BY HASH (a) PARTITIONS 7, HASH (b) PARTITIONS 3;
CREATE TABLE one (k VARCHAR PRIMARY KEY, customer_id VARCHAR) REPLICATED;
----
-- steps: the example of the seed
-- parameters: 'north'
SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE region = ?)
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($2[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($2[]) they select
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $2
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $2[]: SELECT customer_id FROM vip WHERE region = $1
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id, region
    filter: region = $1
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- steps: named parameters on both sides
-- parameters: {'low': 1, 'region': 'é', 'high': 9}
SELECT * FROM orders WHERE id > $low AND customer_id IN (SELECT customer_id FROM vip WHERE region = $region) AND id < $high
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($4[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($4[]) they select
  columns: customer_id, id, priority, amount, day
  filter: id > $1 AND customer_id IN $4 AND id < $3
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $4[]: SELECT customer_id FROM vip WHERE region = $region
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id, region
    filter: region = $2
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- steps: any
SELECT * FROM orders WHERE customer_id = ANY (SELECT customer_id FROM vip)
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($1[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT customer_id FROM vip
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- steps: a scalar subquery
SELECT * FROM orders WHERE customer_id = (SELECT max(customer_id) FROM vip)
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($1)
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1) they select
  columns: customer_id, id, priority, amount, day
serving: no, queries run first whose values prune it
runs first, for $1: SELECT max(customer_id) FROM vip
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- steps: a range between two scalar subqueries
SELECT * FROM days WHERE day BETWEEN (SELECT min(since) FROM vip) AND (SELECT max(since) FROM vip)
/*
execution: distributed on at most 3 of 3 members
tree: days: ([$1, $2])
rewrites: materialize_subquery
scan days: the partitions that the parameters select, of 4
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ([$1, $2]) they select
  columns: day, n, best
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1: SELECT min(since) FROM vip
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: since
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
runs first, for $2: SELECT max(since) FROM vip
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: since
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- steps: an expression of a scalar subquery
SELECT * FROM days WHERE day >= (SELECT max(since) FROM vip) - 7
/*
execution: distributed on at most 3 of 3 members
tree: days: (>= $1 - 7)
rewrites: materialize_subquery
scan days: the partitions that the parameters select, of 4
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of (>= $1 - 7) they select
  columns: day, n, best
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1: SELECT max(since) FROM vip
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: since
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- steps: two lists
SELECT * FROM numbers WHERE a IN (SELECT best FROM vip) AND b IN (SELECT n FROM days)
/*
execution: distributed on at most 3 of 3 members
tree: numbers: (($1[], $2[]))
rewrites: materialize_subquery
scan numbers: the partitions that the parameters select, of 21
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of (($1[], $2[])) they select
  columns: a, b, v
  filter: a IN $1 AND b IN $2
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT best FROM vip
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: best
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
runs first, for $2[]: SELECT n FROM days
  execution: distributed on 3 of 3 members
  tree: days: all
  scan days: all 4 partitions
    because no predicate on the partition key day: compare it with values
    columns: n
  serving: no, it does not search days by its key: compare the first columns of (day, n) with values
  when distributed: two-stage
*/
----
-- steps: integers of another type
SELECT * FROM numbers WHERE a IN (SELECT best FROM days)
/*
execution: distributed on at most 3 of 3 members
tree: numbers: (($1[], *))
rewrites: materialize_subquery
scan numbers: the partitions that the parameters select, of 21
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of (($1[], *)) they select
  columns: a, b, v
  filter: a IN CAST($1 AS BIGINT[])
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT best FROM days
  execution: distributed on 3 of 3 members
  tree: days: all
  scan days: all 4 partitions
    because no predicate on the partition key day: compare it with values
    columns: best
  serving: no, it does not search days by its key: compare the first columns of (day, n) with values
  when distributed: two-stage
*/
----
-- steps: inside of a join
SELECT * FROM orders o JOIN customers c ON o.priority = c.name WHERE c.customer_id IN (SELECT customer_id FROM vip) AND c.score > 1
/*
execution: distributed on at most 3 of 3 members
tree: orders: all; customers: ($1[])
rewrites: materialize_subquery
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
scan customers AS c: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id, name, score
  filter: customer_id IN $1 AND score > 1
serving: no, queries run first whose values prune it
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
runs first, for $1[]: SELECT customer_id FROM vip
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- steps: inside of a derived table
SELECT * FROM (SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip)) LIMIT 3
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($1[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT customer_id FROM vip
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- steps: inside of a union
SELECT id FROM orders WHERE customer_id IN (SELECT customer_id FROM vip) UNION ALL SELECT 1
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($1[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id, id
  filter: customer_id IN $1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT customer_id FROM vip
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- steps: only the inner one prunes
SELECT * FROM orders WHERE priority IN (SELECT region FROM vip WHERE customer_id IN (SELECT customer_id FROM customers))
/*
execution: distributed on at most 3 of 3 members
tree: orders: all; vip: ($1[])
rewrites: materialize_subquery
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
scan vip: the partitions that the parameters select, of 7
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id, region
  filter: customer_id IN $1
serving: no, queries run first whose values prune it
when distributed: in 3 stages
  x0 scan vip: at the members over vip, to every member
  x1 join orders: at the members over orders, x0, to the coordinator
  final: at the coordinator over x1
runs first, for $1[]: SELECT customer_id FROM customers
  execution: distributed on 3 of 3 members
  tree: customers: all
  scan customers: all 271 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id
  serving: no, it does not search customers by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- steps: inside of a correlated subquery
SELECT * FROM orders o WHERE EXISTS (FROM vip v WHERE v.region = o.priority AND v.customer_id IN (SELECT customer_id FROM customers))
/*
execution: distributed on at most 3 of 3 members
tree: orders: all; vip: ($1[])
rewrites: materialize_subquery
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
scan vip AS v: the partitions that the parameters select, of 7
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id, region, since, best, score
  filter: region IS NOT NULL AND customer_id IN $1
serving: no, queries run first whose values prune it
when distributed: in 3 stages
  x0 scan v: at the members over v, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
runs first, for $1[]: SELECT customer_id FROM customers
  execution: distributed on 3 of 3 members
  tree: customers: all
  scan customers: all 271 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id
  serving: no, it does not search customers by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- steps: or
-- parameters: 'C1'
SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip) OR customer_id = ?
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($2[] | $1)
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($2[] | $1) they select
  columns: customer_id, id, priority, amount, day
  filter: (customer_id IN $2 OR customer_id = $1)
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $2[]: SELECT customer_id FROM vip
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- what stays whole: correlated
SELECT * FROM orders o WHERE customer_id IN (SELECT customer_id FROM vip v WHERE v.region = o.priority)
/*
execution: distributed on 3 of 3 members
tree: orders: all; vip: all
scan orders AS o: all 271 partitions
  because customer_id = v.customer_id only joins the key: compare either side with a value
  columns: customer_id, id, priority, amount, day
scan vip AS v: all 7 partitions
  because o.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, region
  filter: region IS NOT NULL
serving: no, it does not find the rows that it joins by their keys
when distributed: in 3 stages
  x0 scan v: at the members over v, to the owners of the keys
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- what stays whole: nothing but a column of the outer query
SELECT * FROM orders WHERE customer_id IN (SELECT priority)
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id = orders.priority only joins the key: compare either side with a value; customer_id is compared with priority, which is neither a constant nor a parameter: pass its value as a parameter
  columns: customer_id, id, priority, amount, day
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: in 4 stages
  x0 scan orders: at the members over orders, to the coordinator
  x1 rows of orders: at the coordinator over x0, to the owners of the keys
  x2 join orders: at the members over orders, x1, to the coordinator
  final: at the coordinator over x2
*/
----
-- what stays whole: volatile
SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE random() < 0.5)
/*
execution: distributed on 3 of 3 members
tree: orders: all; vip: all
scan orders: all 271 partitions
  because customer_id = vip.customer_id only joins the key: compare either side with a value
  columns: customer_id, id, priority, amount, day
scan vip: all 7 partitions
  because orders.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan vip: at the members over vip, to every member
  x1 join orders: at the members over orders, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- the clock of a subquery is that of its statement
SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE since < current_date)
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($2[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($2[]) they select
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $2
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $2[]: SELECT customer_id FROM vip WHERE since < current_date
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id, since
    filter: since < CAST(now() AS DATE)
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- what stays whole: collation
SELECT * FROM orders WHERE customer_id IN (SELECT customer_id COLLATE NOCASE FROM vip)
/*
execution: distributed on 3 of 3 members
tree: orders: all; vip: all
scan orders: all 271 partitions
  because customer_id is wrapped in lower(): compare the bare column
  columns: customer_id, id, priority, amount, day
scan vip: all 7 partitions
  because customer_id is wrapped in lower(): compare the bare column
  columns: customer_id
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: gather (a collation decides which texts are equal, and stages do not exchange it: leave out COLLATE)
*/
----
-- what stays whole: inner collation
SELECT * FROM orders WHERE customer_id = (SELECT k FROM (SELECT max(customer_id COLLATE NOCASE) AS k FROM vip))
/*
execution: distributed on 3 of 3 members
tree: orders: all; vip: all
scan orders: all 271 partitions
  because customer_id is wrapped in lower(): compare the bare column
  columns: customer_id, id, priority, amount, day
scan vip: all 7 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: gather (a collation decides which texts are equal, and stages do not exchange it: leave out COLLATE)
*/
----
-- what stays whole: bound to one key already
SELECT * FROM orders WHERE customer_id = 'C1' AND customer_id IN (SELECT customer_id FROM vip)
/*
execution: local on 1 of 3 members
tree: orders: (p262); vip: (p1)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount, day
scan vip: 1 of 7 partitions [p1]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id
serving: yes
*/
----
-- what stays whole: bound to a few keys
SELECT * FROM orders WHERE customer_id IN ('C1', 'C2') AND customer_id IN (SELECT customer_id FROM vip)
/*
execution: distributed on 3 of 3 members
tree: orders: (p128 | p262); vip: (p1 | p6)
scan orders: 2 of 271 partitions [p128, p262]
  partitioning key (customer_id): ('C1'), ('C2')
  primary key bounds: ('C1') <= key <= ('C2'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN ('C1', 'C2')
scan vip: 2 of 7 partitions [p1, p6]
  partitioning key (customer_id): ('C1'), ('C2')
  primary key bounds: ('C1') <= key <= ('C2'), in 2 ranges
  columns: customer_id
serving: yes
when distributed: in 3 stages
  x0 scan vip: at the members over vip, to every member
  x1 join orders: at the members over orders, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- what stays whole: not a key
SELECT * FROM orders WHERE priority IN (SELECT region FROM vip)
/*
execution: distributed on 3 of 3 members
tree: orders: all; vip: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
scan vip: all 7 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: region
serving: no, it does not find the rows that it joins by their keys
when distributed: in 3 stages
  x0 scan vip: at the members over vip, to every member
  x1 join orders: at the members over orders, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- what stays whole: a function of the key
SELECT * FROM orders WHERE lower(customer_id) IN (SELECT customer_id FROM vip)
/*
execution: distributed on 3 of 3 members
tree: orders: all; vip: all
scan orders: all 271 partitions
  because customer_id is wrapped in lower(): compare the bare column
  columns: customer_id, id, priority, amount, day
scan vip: all 7 partitions
  because customer_id is compared with lower(orders.customer_id), which is neither a constant nor a parameter: pass its value as a parameter
  columns: customer_id
serving: no, it does not find the rows that it joins by their keys
when distributed: in 3 stages
  x0 scan vip: at the members over vip, to every member
  x1 join orders: at the members over orders, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- what stays whole: another type
SELECT * FROM numbers WHERE a IN (SELECT score FROM vip)
/*
execution: distributed on 3 of 3 members
tree: numbers: all; vip: all
scan numbers: all 21 partitions
  because a is compared with vip.score, which is neither a constant nor a parameter: pass its value as a parameter
  columns: a, b, v
scan vip: all 7 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: score
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan vip: at the members over vip, to every member
  x1 join numbers: at the members over numbers, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- what stays whole: an unbounded branch
SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip) OR id = 1
/*
execution: distributed on 3 of 3 members
tree: orders: all; vip: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
scan vip: all 7 partitions
  because orders.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan vip: at the members over vip, to every member
  x1 join orders: at the members over orders, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- a subquery of constants alone is a list
SELECT * FROM orders WHERE customer_id IN (SELECT unnest(['C1', 'C2']))
/*
execution: distributed on 2 of 3 members
tree: orders: (p128 | p262)
scan orders: 2 of 271 partitions [p128, p262]
  partitioning key (customer_id): ('C1'), ('C2')
  primary key bounds: ('C1') <= key <= ('C2'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN ['C1', 'C2']
serving: no, its expressions, types or clauses need a kernel over whole columns
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- what stays whole: a replicated table
SELECT * FROM airlines WHERE code IN (SELECT region FROM vip)
/*
execution: distributed on 3 of 3 members
tree: airlines: any; vip: all
scan airlines: replicated, every member has it
  columns: code, name
scan vip: all 7 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: region
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 scan vip: at the members over vip, to the coordinator
  final: at the coordinator over airlines, x0
*/
----
-- what stays whole: a column
SELECT customer_id IN (SELECT customer_id FROM vip) FROM orders
/*
execution: distributed on 3 of 3 members
tree: vip: all; orders: all
scan vip: all 7 partitions
  because orders.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan vip: at the members over vip, to every member
  x1 join orders: at the members over orders, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- what stays whole: all
SELECT * FROM orders WHERE customer_id < ALL (SELECT customer_id FROM vip)
/*
execution: distributed on 3 of 3 members
tree: orders: all; vip: all
scan orders: all 271 partitions
  because CASE WHEN ... IS NULL THEN false ELSE CASE WHEN ... = 0 T... does not restrict customer_id to values: compare customer_id with = or IN
  columns: customer_id, id, priority, amount, day
scan vip: all 7 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 4 stages
  x0 scan vip: at the members over vip, to the coordinator
  x1 rows of vip: at the coordinator over x0, to every member
  x2 join orders: at the members over orders, x1, to the coordinator
  final: at the coordinator over x2
*/
----
-- what stays whole: rows
SELECT * FROM numbers WHERE (a, b) IN (SELECT n, n FROM days)
/*
execution: distributed on 3 of 3 members
tree: numbers: all; days: all
scan numbers: all 21 partitions
  because a = days.n only joins the key: compare either side with a value; b = days.n only joins the key: compare either side with a value; b is compared with a, which is neither a constant nor a parameter: pass its value as a parameter
  columns: a, b, v
scan days: all 4 partitions
  because no predicate on the partition key day: compare it with values
  columns: n
serving: no, it does not find the rows that it joins by their keys
when distributed: in 3 stages
  x0 scan days: at the members over days, to every member
  x1 join numbers: at the members over numbers, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- what stays whole: condition of an outer join
SELECT * FROM orders LEFT JOIN vip ON orders.customer_id IN (SELECT customer_id FROM vip)
/*
execution: distributed on 3 of 3 members
tree: orders: all; vip: all; vip: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
scan vip: all 7 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, region, since, best, score
scan vip: all 7 partitions
  because orders.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, region, since, best, score
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 4 stages
  x0 scan vip: at the members over vip, to every member
  x1 scan vip: at the members over vip, to every member
  x2 join orders: at the members over orders, x0, x1, to the coordinator
  final: at the coordinator over x2
*/
----
-- what stays whole: a column that is called by its text
SELECT (SELECT max(id) FROM orders WHERE customer_id IN (SELECT customer_id FROM vip)) FROM airlines
/*
execution: distributed on 3 of 3 members
tree: orders: all; vip: all; airlines: any
scan orders: all 271 partitions
  because customer_id = vip.customer_id only joins the key: compare either side with a value
  columns: customer_id, id
scan vip: all 7 partitions
  because orders.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id
scan airlines: replicated, every member has it
  columns: code
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan vip: at the members over vip, to every member
  x1 join orders: at the members over orders, x0, to the coordinator
  final: at the coordinator over airlines, x1
*/
----
-- a step is bounded where the rows are, 1
SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip
)
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($1[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT customer_id FROM vip
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- a step is bounded where the rows are, 2
SELECT * FROM orders WHERE customer_id IN (SELECT DISTINCT customer_id FROM vip
)
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($1[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT DISTINCT customer_id FROM vip
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- a step is bounded where the rows are, 3
SELECT * FROM orders WHERE customer_id IN (SELECT ALL customer_id FROM vip
)
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($1[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT ALL customer_id FROM vip
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- a step is bounded where the rows are, 4
SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip LIMIT 2
)
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($1[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT customer_id FROM vip LIMIT 2
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- a step is bounded where the rows are, 5
SELECT * FROM orders WHERE customer_id IN (SELECT max(customer_id) FROM vip
)
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($1[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT max(customer_id) FROM vip
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- a step is bounded where the rows are, 6
SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip -- all
)
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($1[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT customer_id FROM vip
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- a step is bounded where the rows are, 7
SELECT * FROM orders WHERE customer_id IN (FROM (SELECT customer_id FROM vip)
)
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($1[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: FROM (SELECT customer_id FROM vip)
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- a scalar step is bounded to two rows
SELECT * FROM orders WHERE customer_id = (SELECT customer_id FROM vip ORDER BY since LIMIT 1)
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($1)
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1) they select
  columns: customer_id, id, priority, amount, day
serving: no, queries run first whose values prune it
runs first, for $1: SELECT customer_id FROM vip ORDER BY since LIMIT 1
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id, since
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- a step may have steps
-- parameters: 0.5
SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE customer_id IN (SELECT customer_id FROM customers WHERE score > ?))
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($2[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($2[]) they select
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $2
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $2[]: SELECT customer_id FROM vip WHERE customer_id IN (SELECT customer_id FROM customers WHERE score > $1)
  execution: distributed on at most 3 of 3 members
  tree: vip: ($2[])
  rewrites: materialize_subquery
  scan vip: the partitions that the parameters select, of 7
    because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($2[]) they select
    columns: customer_id
    filter: customer_id IN $2
  serving: no, queries run first whose values prune it
  scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
  when distributed: two-stage
  runs first, for $2[]: SELECT customer_id FROM customers WHERE score > $1
    execution: distributed on 3 of 3 members
    tree: customers: all
    scan customers: all 271 partitions
      because no predicate on the partition key customer_id: compare it with values
      columns: customer_id, score
      filter: score > $1
    serving: no, it does not search customers by its key: compare the first columns of (customer_id) with values
    when distributed: two-stage
*/
----
-- common table expressions go with a step: a name of WITH
-- parameters: 'x'
WITH v AS (SELECT * FROM vip WHERE region = ?) SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM v)
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($2[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($2[]) they select
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $2
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $2[]: SELECT customer_id FROM v
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id, region, since, best, score
    filter: region = $1
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- common table expressions go with a step: a name of WITH that is a table's as well
-- parameters: 1
WITH vip AS (SELECT name AS customer_id FROM customers WHERE score > ?) SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip)
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($2[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($2[]) they select
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $2
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $2[]: SELECT customer_id FROM vip
  execution: distributed on 3 of 3 members
  tree: customers: all
  scan customers: all 271 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id, name, score
    filter: score > $1
  serving: no, it does not search customers by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- common table expressions go with a step: only what is needed goes with it
-- parameters: 'x'
WITH v AS (SELECT * FROM vip WHERE region = ?), o AS (SELECT * FROM orders), w(k) AS (SELECT customer_id FROM v) SELECT * FROM orders WHERE customer_id IN (SELECT k FROM w) AND id IN (SELECT id FROM o)
/*
execution: distributed on at most 3 of 3 members
tree: orders: all; orders: ($2[])
rewrites: materialize_subquery
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($2[]) they select
  columns: customer_id, id, priority, amount, day
serving: no, queries run first whose values prune it
when distributed: in 3 stages
  x0 scan orders: at the members over orders, to every member
  x1 join orders: at the members over orders, x0, to the coordinator
  final: at the coordinator over x1
runs first, for $2[]: SELECT k FROM w
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id, region, since, best, score
    filter: region = $1
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- common table expressions go with a step: a name of WITH that the rest needs too
-- parameters: 'x'
WITH v AS (SELECT * FROM vip WHERE region = ?) SELECT * FROM orders o JOIN v ON o.priority = v.region WHERE o.customer_id IN (SELECT customer_id FROM v)
/*
execution: distributed on at most 3 of 3 members
tree: vip: all; orders: ($2[])
rewrites: materialize_subquery
scan vip: all 7 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, region, since, best, score
  filter: region = $1
scan orders AS o: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($2[]) they select
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $2
serving: no, queries run first whose values prune it
when distributed: in 3 stages
  x0 scan vip: at the members over vip, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
runs first, for $2[]: SELECT customer_id FROM v
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id, region, since, best, score
    filter: region = $1
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- names that cannot go with a step: of the same WITH
WITH vip AS (SELECT * FROM customers), w AS (SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip)) SELECT * FROM w
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all
scan customers: all 271 partitions
  because orders.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, name, score
scan orders: all 271 partitions
  because customer_id = customers.customer_id only joins the key: compare either side with a value
  columns: customer_id, id, priority, amount, day
co-located: customers, orders
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join orders: at the members over orders, customers, to the coordinator
  final: at the coordinator over x0
*/
----
-- names that cannot go with a step: of a part
SELECT * FROM (WITH vip AS (SELECT * FROM customers) SELECT * FROM orders WHERE customer_id IN (SELECT customer_id FROM vip))
/*
execution: distributed on 3 of 3 members
tree: customers: all; orders: all
scan customers: all 271 partitions
  because orders.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, name, score
scan orders: all 271 partitions
  because customer_id = customers.customer_id only joins the key: compare either side with a value
  columns: customer_id, id, priority, amount, day
co-located: customers, orders
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join orders: at the members over orders, customers, to the coordinator
  final: at the coordinator over x0
*/
----
-- an insert runs its query in steps
INSERT INTO customers (customer_id) SELECT customer_id FROM orders WHERE customer_id IN (SELECT customer_id FROM vip)
/*
INSERT into customers from:
execution: distributed on at most 3 of 3 members
tree: orders: ($1[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: customer_id
  filter: customer_id IN $1
serving: no, its rows are computed by a query
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT customer_id FROM vip
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- explain shows the steps
-- parameters: 'north'
SELECT count(*) FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE region = ?)
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($2[])
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($2[]) they select
  columns: customer_id
  filter: customer_id IN $2
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $2[]: SELECT customer_id FROM vip WHERE region = $1
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: customer_id, region
    filter: region = $1
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- explain without pruning shows the whole
-- set: pruning = off
SELECT count(*) FROM orders WHERE customer_id IN (SELECT customer_id FROM vip)
/*
execution: distributed on 3 of 3 members
pruning: off, topology version 3
tree: orders: all; vip: all
scan orders: all 271 partitions
  because pruning is off: SET pruning = on
  columns: customer_id
scan vip: all 7 partitions
  because pruning is off: SET pruning = on
  columns: customer_id
serving: no, it does not find the rows that it joins by their keys
when distributed: in 3 stages
  x0 scan vip: at the members over vip, to every member
  x1 join orders: at the members over orders, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- explain of one key from another one key
-- parameters: 'a'
SELECT * FROM orders WHERE customer_id = (SELECT customer_id FROM one WHERE k = ?)
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($2)
rewrites: materialize_subquery
scan orders: the partitions that the parameters select, of 271
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($2) they select
  columns: customer_id, id, priority, amount, day
serving: no, queries run first whose values prune it
runs first, for $2: SELECT customer_id FROM one WHERE k = $1
  execution: local on 1 of 3 members
  tree: one: any
  scan one: replicated, every member has it
    primary key bounds: ('a')
    columns: k, customer_id
  serving: yes
*/
----
-- IN over a co-located table stays local, as EXISTS does
SELECT count(*) FROM orders WHERE customer_id IN (SELECT customer_id FROM customers WHERE name = 'Ada')
/*
execution: distributed on 3 of 3 members
tree: orders: all; customers: all
scan orders: all 271 partitions
  because customer_id = customers.customer_id only joins the key: compare either side with a value
  columns: customer_id
scan customers: all 271 partitions
  because orders.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id, name
  filter: name = 'Ada'
co-located: orders, customers
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join orders: at the members over orders, customers, to the coordinator
  final: at the coordinator over x0
*/
----
-- a computed key is found by the values of a subquery
SELECT * FROM numbers WHERE 2 + abs(a) IN (SELECT best FROM vip WHERE region = 'north')
/*
execution: distributed on at most 3 of 3 members
tree: numbers: ((abs(key) + 2 = $1[], *))
rewrites: materialize_subquery
scan numbers: the partitions that the parameters select, of 21
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ((abs(key) + 2 = $1[], *)) they select
  columns: a, b, v
  filter: 2 + abs(a) IN $1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1[]: SELECT best FROM vip WHERE region = 'north'
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: region, best
    filter: region = 'north'
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- a computed key is found by one value
SELECT * FROM numbers WHERE a * 3 = (SELECT max(best) FROM vip WHERE region = 'north')
/*
execution: distributed on at most 3 of 3 members
tree: numbers: ((key * 3 = $1, *))
rewrites: materialize_subquery
scan numbers: the partitions that the parameters select, of 21
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ((key * 3 = $1, *)) they select
  columns: a, b, v
  filter: a * 3 = $1
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: two-stage
runs first, for $1: SELECT max(best) FROM vip WHERE region = 'north'
  execution: distributed on 3 of 3 members
  tree: vip: all
  scan vip: all 7 partitions
    because no predicate on the partition key customer_id: compare it with values
    columns: region, best
    filter: region = 'north'
  serving: no, it does not search vip by its key: compare the first columns of (customer_id) with values
  when distributed: two-stage
*/
----
-- a computed key, cast: the values could be of any text
SELECT * FROM numbers WHERE a::VARCHAR IN (SELECT region FROM vip WHERE customer_id = 'C2')
/*
execution: distributed on 3 of 3 members
tree: numbers: all; vip: (p6)
scan numbers: all 21 partitions
  because a is compared with vip.region, which is neither a constant nor a parameter: pass its value as a parameter
  columns: a, b, v
scan vip: 1 of 7 partitions [p6]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, region
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan vip: at the members over vip, to every member
  x1 join numbers: at the members over numbers, x0, to the coordinator
  final: at the coordinator over x1
*/
