-- EXPLAIN of queries: open parameters, nothing to read, pruning that is switched off.
-- tables: shop
CREATE TABLE numbers (n INT PRIMARY KEY) PARTITION BY HASH (n) PARTITIONS 10;
CREATE TABLE samples (host VARCHAR, metric VARCHAR, time BIGINT, value DOUBLE, PRIMARY KEY (host, metric, time))
  PARTITION BY HASH (host, metric) PARTITIONS 2, RANGE (time) SPLIT AT (10, 20, 30);
CREATE TABLE readings (device BIGINT, time BIGINT, PRIMARY KEY (device, time)) PARTITION BY HASH (device) PARTITIONS 4;
----
-- the example of the design
SELECT count(*), sum(amount), priority FROM orders o WHERE customer_id = 'C2' GROUP BY priority
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders AS o: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, priority, amount
serving: yes
*/
----
-- unbound parameters are shown in the tree, 1
SELECT * FROM orders WHERE customer_id IN ('C2', ?)
/*
execution: distributed on at most 3 of 3 members
tree: orders: (p128 | $1)
scan orders: the partitions that the parameters select, of 271
  because the parameters are not bound: EXPLAIN with values shows the partitions of (p128 | $1)
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN ('C2', $1)
serving: yes
scatter: each owner is asked once where at most 64 partitions are left, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- unbound parameters are shown in the tree, 2
-- parameters: 'C9'
SELECT * FROM orders WHERE customer_id IN ('C2', ?)
/*
execution: distributed on 2 of 3 members
tree: orders: (p128 | $1)
scan orders: 2 of 271 partitions [p128, p156]
  partitioning key (customer_id): ('C2'), ('C9')
  primary key bounds: ('C2') <= key <= ('C9'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN ('C2', $1)
serving: yes
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- one unbound key is local wherever it is
SELECT * FROM orders WHERE customer_id = ?
/*
execution: local on at most 3 of 3 members
tree: orders: ($1)
scan orders: the partitions that the parameters select, of 271
  because the parameters are not bound: EXPLAIN with values shows the partitions of ($1)
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- nothing to read
SELECT count(*) FROM orders WHERE customer_id = NULL
/*
execution: none on 0 of 3 members
tree: orders: none
scan orders: 0 of 271 partitions
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- a scan that is not pruned says why, 1
SELECT * FROM orders WHERE lower(customer_id) = 'c2'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id is wrapped in lower(): compare the bare column
  columns: customer_id, id, priority, amount, day
  filter: lower(customer_id) = 'c2'
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- a scan that is not pruned says why, 2
-- parameters: 5
SELECT * FROM orders WHERE customer_id = ?
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id is cast in CAST(customer_id AS INTEGER) = $1: compare the bare column with a VARCHAR
  columns: customer_id, id, priority, amount, day
  filter: CAST(customer_id AS INTEGER) = $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
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
  columns: host, metric, time, value
serving: yes
when distributed: two-stage
*/
----
-- a range of a parameter past the limit says so
-- parameters: 1, 1000
SELECT * FROM numbers WHERE n BETWEEN ? AND ?
/*
execution: distributed on 3 of 3 members
tree: numbers: ([$1, $2])
scan numbers: all 10 partitions
  because the range of (n) has more values than the limit of 80, or values that cannot be counted: compare with = or IN, or with a narrower range
  primary key bounds: (1) <= key <= (1000)
  columns: n
serving: no, it reads a range of keys of numbers, for which the native executor alone has a program
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
  columns: customer_id, id, priority, amount, day
serving: yes
when distributed: gather (one member answers it, unless pruning is off)
*/
----
-- the owner of one key answers a join with a replicated table, whatever the key is
SELECT o.id, a.name FROM orders o JOIN airlines a ON a.code = o.priority WHERE o.customer_id = ?
/*
execution: local on at most 3 of 3 members
tree: orders: ($1); airlines: any
scan orders AS o: the partitions that the parameters select, of 271
  because the parameters are not bound: EXPLAIN with values shows the partitions of ($1)
  columns: customer_id, id, priority
scan airlines AS a: replicated, every member has it
  columns: code, name
serving: yes
*/
----
-- so it does where rows of one partition are joined
SELECT o.id, c.name FROM orders o JOIN customers c USING (customer_id) WHERE o.customer_id = ?
/*
execution: local on at most 3 of 3 members
tree: orders: ($1); customers: ($1)
scan orders AS o: the partitions that the parameters select, of 271
  because the parameters are not bound: EXPLAIN with values shows the partitions of ($1)
  columns: customer_id, id
scan customers AS c: the partitions that the parameters select, of 271
  because the parameters are not bound: EXPLAIN with values shows the partitions of ($1)
  columns: customer_id, name
co-located: o, c
serving: yes
*/
----
-- two keys may be on two members
SELECT o.id, p.id FROM orders o JOIN orders p ON p.customer_id = ? WHERE o.customer_id = ?
/*
execution: distributed on at most 3 of 3 members
tree: orders: ($2); orders: ($1)
scan orders AS o: the partitions that the parameters select, of 271
  because the parameters are not bound: EXPLAIN with values shows the partitions of ($2)
  columns: customer_id, id
scan orders AS p: the partitions that the parameters select, of 271
  because the parameters are not bound: EXPLAIN with values shows the partitions of ($1)
  columns: customer_id, id
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan p: at the members over p, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
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
  columns: customer_id, id
scan customers AS c: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, score
serving: no, its expressions, types or clauses need a kernel over whole columns
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
  columns: code, name
serving: yes
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
  columns: customer_id, id
serving: yes
*/
----
-- a reason names tables as the user does
-- parameters: {'low': 1}
SELECT * FROM orders WHERE customer_id = (SELECT $low FROM orders x) || random()
/*
execution: distributed on 3 of 3 members
tree: orders: all; orders: all
scan orders: all 271 partitions
  because customer_id is compared with CAST(... AS VARCHAR) || CAST(random() AS VARCHAR), which is neither a constant nor a parameter: pass its value as a parameter
  columns: customer_id, id, priority, amount, day
scan orders AS x: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 4 stages
  x0 scan x: at the members over x, to the coordinator
  x1 rows of x: at the coordinator over x0, to every member
  x2 join orders: at the members over orders, x1, to the coordinator
  final: at the coordinator over x2
  gathered: x: an aggregate has no partial aggregation: GROUP BY the partitioning key
*/
----
-- functions that tell of the dialect are not refused
SELECT count(*) FROM duckdb_functions()
/*
execution: local on 0 of 3 members
serving: no, it reads no table
*/
----
-- values of a key are shown beside the range of its last column
SELECT value FROM samples WHERE host = 'h1' AND metric IN ('m1', 'm2') AND time >= 15
/*
execution: distributed on 3 of 3 members
tree: samples: (p3 | p5 | p7)
scan samples: 3 of 8 partitions [p3, p5, p7]
  partitioning key (host, metric, time): ('h1', 'm1', [15, inf)), ('h1', 'm2', [15, inf))
  primary key bounds: ('h1', 'm1', 15) <= key <= ('h1', 'm2'), in 2 ranges
  columns: host, metric, time, value
  filter: host = 'h1' AND metric IN ('m1', 'm2') AND time >= 15
serving: no, it does not search samples by its key: compare the first columns of (host, metric, time) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- the filter is the part of WHERE that the search does not answer
SELECT value FROM samples WHERE host = 'h1' AND metric = 'm1' AND time BETWEEN 1 AND 9 AND value > 0.5
/*
execution: local on 1 of 3 members
tree: samples: (p1)
scan samples: 1 of 8 partitions [p1]
  partitioning key (host, metric, time): ('h1', 'm1', [1, 9])
  primary key bounds: ('h1', 'm1', 1) <= key <= ('h1', 'm1', 9)
  columns: host, metric, time, value
  filter: value > 0.5
serving: no, it reads a range of keys of samples, for which the native executor alone has a program
*/
----
-- a range that reaches every range of the table has a reason
SELECT value FROM samples WHERE host = 'h1' AND time > 5
/*
execution: distributed on 3 of 3 members
tree: samples: (p0 | p1 | p2 | p3 | p4 | p5 | p6 | p7)
scan samples: all 8 partitions
  because metric of HASH (host, metric) is not bound: compare metric with = or IN; the predicates on time reach every range of RANGE (time): ask for a narrower range
  partitioning key (host, metric, time): ('h1', *, (5, inf))
  primary key bounds: ('h1')
  columns: host, time, value
  filter: host = 'h1' AND time > 5
serving: no, it does not search samples by its key: compare the first columns of (host, metric, time) with values
when distributed: two-stage
*/
----
-- values that are in all partitions have a reason
SELECT time FROM readings WHERE device IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
/*
execution: distributed on 3 of 3 members
tree: readings: (p0 | p1 | p2 | p3)
scan readings: all 4 partitions
  because the values of HASH (device) are in all of its 4 partitions: ask for fewer keys at once
  partitioning key (device): (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)
  primary key bounds: (1) <= key <= (10), in 10 ranges
  columns: device, time
  filter: device IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
serving: yes
when distributed: two-stage
*/
----
-- a range of values that are in all partitions has a reason
-- parameters: 1, 20
SELECT time FROM readings WHERE device BETWEEN ? AND ?
/*
execution: distributed on 3 of 3 members
tree: readings: ([$1, $2])
scan readings: all 4 partitions
  because the range of device has values in all 4 partitions of HASH (device): compare with =, IN or a narrower range
  primary key bounds: (1) <= key <= (20)
  columns: device, time
serving: no, it reads a range of keys of readings, for which the native executor alone has a program
when distributed: two-stage
*/
----
-- alternatives that reach every partition only together have a reason
SELECT value FROM samples WHERE (host = 'h1' AND metric = 'm1') OR (host = 'h2' AND metric = 'm1') OR (host = 'h4' AND metric = 'm3')
/*
execution: distributed on 3 of 3 members
tree: samples: (p0 | p1 | p2 | p3 | p4 | p5 | p6 | p7)
scan samples: all 8 partitions
  because its alternatives reach every partition together: ask for fewer keys at once
  partitioning key (host, metric, time): ('h1', 'm1', *), ('h2', 'm1', *), ('h4', 'm3', *)
  primary key bounds: ('h1', 'm1') <= key <= ('h4', 'm3'), in 3 ranges
  columns: host, metric, value
  filter: (host = 'h1' AND metric = 'm1' OR host = 'h2' AND metric = 'm1' OR host = 'h4' AND metric = 'm3')
serving: no, it does not search samples by its key: compare the first columns of (host, metric, time) with values
when distributed: two-stage
*/
----
-- parameters have the names that the user gave them
SELECT value FROM samples WHERE host = $machine AND metric = $metric AND time > $since AND value <> $value
/*
execution: distributed on at most 3 of 3 members
tree: samples: (($machine, $metric, > $since))
scan samples: the partitions that the parameters select, of 8
  because the parameters are not bound: EXPLAIN with values shows the partitions of (($machine, $metric, > $since))
  columns: host, metric, time, value
  filter: value <> $value
serving: no, it reads a range of keys of samples, for which the native executor alone has a program
scatter: each owner is asked once where at most 64 partitions are left, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- nothing is said of a division where one member runs everything
SELECT host, count(*) FROM samples WHERE host = 'h1' AND metric = 'm1' AND time = 3 GROUP BY host ORDER BY 1
/*
execution: local on 1 of 3 members
tree: samples: (p1)
scan samples: 1 of 8 partitions [p1]
  partitioning key (host, metric, time): ('h1', 'm1', 3)
  primary key bounds: ('h1', 'm1', 3)
  columns: host, metric, time
serving: yes
*/
