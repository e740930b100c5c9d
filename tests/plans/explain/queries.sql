-- EXPLAIN of queries: open parameters, nothing to read, pruning that is switched off.
-- tables: shop
CREATE TABLE numbers (n INT PRIMARY KEY) PARTITION BY HASH (n) PARTITIONS 10;
----
-- the example of the design
SELECT count(*), sum(amount), priority FROM orders o WHERE customer_id = 'C2' GROUP BY priority
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders AS o: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
when distributed: two-stage
*/
----
-- unbound parameters are shown in the tree, 1
SELECT * FROM orders WHERE customer_id IN ('C2', ?)
/*
execution: distributed on at most 3 of 3 members
tree: orders: (p128 | ?0)
scan orders: the partitions that the parameters select, of 271
  because the parameters are not bound: EXPLAIN with values shows the partitions of (p128 | ?0)
when distributed: two-stage
*/
----
-- unbound parameters are shown in the tree, 2
-- parameters: 'C9'
SELECT * FROM orders WHERE customer_id IN ('C2', ?)
/*
execution: distributed on 2 of 3 members
tree: orders: (p128 | ?0)
scan orders: 2 of 271 partitions [p128, p156]
  partitioning key (customer_id): ('C2'), ('C9')
  primary key bounds: ('C2') <= key <= ('C9'), in 2 ranges
when distributed: two-stage
*/
----
-- one unbound key is local wherever it is
SELECT * FROM orders WHERE customer_id = ?
/*
execution: local on at most 3 of 3 members
tree: orders: (?0)
scan orders: the partitions that the parameters select, of 271
  because the parameters are not bound: EXPLAIN with values shows the partitions of (?0)
when distributed: two-stage
*/
----
-- nothing to read
SELECT count(*) FROM orders WHERE customer_id = NULL
/*
execution: none on 0 of 3 members
tree: orders: none
scan orders: 0 of 271 partitions
when distributed: two-stage
*/
----
-- a scan that is not pruned says why, 1
SELECT * FROM orders WHERE lower(customer_id) = 'c2'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id is wrapped in lower(): compare the bare column
when distributed: two-stage
*/
----
-- a scan that is not pruned says why, 2
-- parameters: 5
SELECT * FROM orders WHERE customer_id = ?
/*
execution: distributed on 3 of 3 members
tree: orders: (?0)
scan orders: all 271 partitions
  because customer_id is a VARCHAR, and comparing it with 5 would cast it: pass a VARCHAR
when distributed: two-stage
*/
----
-- a scan that is not pruned says why, 3
SELECT * FROM metrics WHERE host = 'h'
/*
execution: distributed on 3 of 3 members
tree: metrics: all
scan metrics: all 8 partitions
  because partition key is (host, metric, time) but only host is bound: compare metric, time with values as well
  primary key bounds: ('h')
when distributed: two-stage
*/
----
-- a range of a parameter past the limit says so
-- parameters: 1, 1000
SELECT * FROM numbers WHERE n BETWEEN ? AND ?
/*
execution: distributed on 3 of 3 members
tree: numbers: ([?0, ?1])
scan numbers: all 10 partitions
  because the range of (n) has more values than the limit of 80, or values that cannot be counted: compare with = or IN, or with a narrower range
  primary key bounds: (1) <= key <= (1000)
when distributed: two-stage
*/
----
-- pruning switched off
-- set: pruning = off
SELECT * FROM orders WHERE customer_id = 'C2'
/*
execution: distributed on 3 of 3 members
pruning: off, topology version 3
tree: orders: (p128)
scan orders: all 271 partitions
  because pruning is off: SET pruning = on
when distributed: two-stage
*/
----
-- one unpruned scan needs all its owners and the other keeps its set
SELECT count(*) FROM orders o JOIN customers c ON c.score = o.id WHERE o.customer_id = 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: (p128); customers: all
scan orders AS o: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- a replicated table needs nobody in particular
SELECT * FROM airlines WHERE code = 'AA'
/*
execution: local on 1 of 3 members
tree: airlines: any
scan airlines: replicated, every member has it
  primary key bounds: ('AA')
when distributed: two-stage
*/
----
-- what reads nothing has the same form, 1
EXPLAIN CREATE TABLE x (a INT PRIMARY KEY)
/*
DDL runs at the controller and reads no partition
*/
----
-- what reads nothing has the same form, 2
EXPLAIN DROP TABLE orders
/*
DDL runs at the controller and reads no partition
*/
----
-- what reads nothing has the same form, 3
EXPLAIN SET pruning = off
/*
SET changes a setting of the session and reads no partition
*/
----
-- the text
SELECT count(DISTINCT id) FROM orders o WHERE customer_id = 'C2' AND id = 7
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders AS o: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2', 7)
when distributed: two-stage
*/
----
-- a reason names tables as the user does
-- parameters: {'low': 1}
SELECT * FROM orders WHERE customer_id = (SELECT $low FROM orders x) || random()
/*
execution: distributed on 3 of 3 members
tree: orders: all; orders: all
scan orders: all 271 partitions
  because customer_id is compared with (SELECT $low FROM orders AS x) || RANDOM(), which is neither a constant nor a parameter: pass its value as a parameter
scan orders AS x: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
when distributed: in 3 stages
  x0 scan x: at the members over x, to every member
  x1 join orders: at the members over orders, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- functions that tell of the dialect are not refused
SELECT count(*) FROM duckdb_functions()
/*
execution: local on 0 of 3 members
when distributed: gather (the result of duckdb_functions depends on when and where it is evaluated: filter by the partitioning key to gather less)
*/
