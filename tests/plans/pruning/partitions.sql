-- Hash, hash and range, and a replicated table.
CREATE TABLE plan_orders (customer_id VARCHAR, id BIGINT, priority VARCHAR, amount DECIMAL(10,2), PRIMARY KEY (customer_id, id)) PARTITION BY HASH (customer_id) PARTITIONS 16;
CREATE TABLE plan_customers (customer_id VARCHAR PRIMARY KEY, name VARCHAR) PARTITION BY HASH (customer_id) PARTITIONS 16;
CREATE TABLE plan_metrics (host VARCHAR, metric VARCHAR, day DATE, value DOUBLE, PRIMARY KEY (host, metric, day)) PARTITION BY HASH (host, metric) PARTITIONS 4, RANGE (day) (PARTITION VALUES < DATE '2024-01-01', PARTITION DATE '2024-01-01' <= VALUES < DATE '2024-02-01' HASH (host) PARTITIONS 2, PARTITION DATE '2024-03-01' <= VALUES NO HASH);
CREATE TABLE plan_priorities (priority VARCHAR PRIMARY KEY, label VARCHAR) REPLICATED;
INSERT INTO plan_orders VALUES ('C1', 1, 'a', 1.5), ('C1', 2, 'b', 2.5), ('C2', 1, 'a', -3), ('C2', 7, NULL, 4.25), ('C3', 1, 'c', 0), ('C4', 9, 'b', 100);
INSERT INTO plan_customers VALUES ('C1', 'Ada'), ('C2', 'Grace'), ('C4', NULL), ('C5', 'Edsger');
INSERT INTO plan_metrics VALUES ('h1', 'load', DATE '2023-12-31', 0.5), ('h1', 'load', DATE '2024-01-15', 1), ('h2', 'load', DATE '2024-01-15', 2), ('h1', 'temp', DATE '2024-03-01', 40), ('h3', 'temp', DATE '2025-01-01', 41);
INSERT INTO plan_priorities VALUES ('a', 'low'), ('b', 'high')
----
-- one key
-- partitions=1 members=1 execution=local
SELECT * FROM plan_orders WHERE customer_id = 'C2' ORDER BY id
/*
tree: plan_orders: (p7)
scan plan_orders: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount; about 2 rows
serving: yes
*/
----
-- the whole primary key is a search in one partition
-- partitions=1 members=1 execution=local
SELECT amount FROM plan_orders WHERE id = 7 AND customer_id = 'C2'
/*
tree: plan_orders: (p7)
scan plan_orders: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2', 7)
  columns: customer_id, id, amount; about 0 rows
serving: yes
*/
----
-- the query of the design document aggregates one partition
-- partitions=1 members=1 execution=local
SELECT count(*), sum(amount), priority FROM plan_orders WHERE customer_id = 'C2' GROUP BY priority
/*
tree: plan_orders: (p7)
scan plan_orders: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, priority, amount; about 2 rows
serving: yes
*/
----
-- a list
SELECT sum(amount) FROM plan_orders WHERE customer_id IN ('C1', 'C2', 'C9') OR customer_id = 'C4'
/*
tree: plan_orders: (p5 | p7 | p8 | p10)
scan plan_orders: 4 of 16 partitions [p5, p7, p8, p10]
  partitioning key (customer_id): ('C1'), ('C2'), ('C4'), ('C9')
  primary key bounds: ('C1') <= key <= ('C9'), in 4 ranges
  columns: customer_id, amount; about 6 rows
  filter: (customer_id IN ('C1', 'C2', 'C9') OR customer_id = 'C4')
serving: yes
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- nothing can match and an aggregate still has its row
-- partitions=0 members=0 execution=none
SELECT count(*), max(amount) FROM plan_orders WHERE customer_id = 'C1' AND customer_id = 'C2'
/*
tree: plan_orders: none
scan plan_orders: 0 of 16 partitions
serving: no, it does not search plan_orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- a contradiction with NULL
-- partitions=0 members=0 execution=none
SELECT id FROM plan_orders WHERE customer_id = NULL
/*
tree: plan_orders: none
scan plan_orders: 0 of 16 partitions
serving: no, it does not search plan_orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- everything in two stages
-- partitions=16 members=3 execution=distributed
SELECT priority, count(*) AS n, avg(amount) FROM plan_orders GROUP BY priority HAVING count(*) > 1 ORDER BY n DESC, priority LIMIT 2
/*
tree: plan_orders: all
scan plan_orders: all 16 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: priority, amount; about 6 rows
serving: no, it does not search plan_orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- a function of the key
-- partitions=16 members=3 execution=distributed
SELECT id FROM plan_orders WHERE lower(customer_id) = 'c2' ORDER BY id
/*
tree: plan_orders: all
scan plan_orders: all 16 partitions
  because customer_id is wrapped in lower(): compare the bare column
  columns: customer_id, id; about 1 row
  filter: lower(customer_id) = 'c2'
serving: no, it does not search plan_orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- not
-- partitions=16
SELECT id FROM plan_orders WHERE NOT customer_id = 'C2' ORDER BY id, customer_id
/*
tree: plan_orders: all
scan plan_orders: all 16 partitions
  because customer_id = 'C2' excludes values of customer_id: name the values to keep, with = or IN
  primary key bounds: key, in 2 ranges
  columns: customer_id, id; about 4 rows
  filter: NOT customer_id = 'C2'
serving: no, it does not search plan_orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- an unbounded branch
-- partitions=16
SELECT customer_id FROM plan_orders WHERE customer_id = 'C2' OR id = 9 ORDER BY customer_id
/*
tree: plan_orders: all
scan plan_orders: all 16 partitions
  because the OR branch id = 9 does not restrict the key: compare customer_id with values in every branch
  columns: customer_id, id; about 3 rows
  filter: (customer_id = 'C2' OR id = 9)
serving: no, it does not search plan_orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- a filter above LIMIT is not below it
-- partitions=16
SELECT count(*) FROM (SELECT * FROM plan_orders ORDER BY amount DESC LIMIT 2) WHERE customer_id = 'C4'
/*
tree: plan_orders: all
scan plan_orders: all 16 partitions
  because the filter customer_id = 'C4' cannot be pushed below LIMIT: filter inside it if you mean its input
  columns: customer_id, id, priority, amount; about 6 rows
serving: no, it does not search plan_orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- count with a partition filter
-- partitions=1 members=1
SELECT count(*) FROM plan_orders WHERE customer_id = 'C1'
/*
tree: plan_orders: (p10)
scan plan_orders: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id; about 2 rows
serving: yes
*/
----
-- union all keeps a set for each scan
SELECT id FROM plan_orders WHERE customer_id = 'C1' UNION ALL SELECT id FROM plan_orders WHERE customer_id = 'C4'
/*
tree: plan_orders: (p10); plan_orders: (p8)
scan plan_orders: 1 of 16 partitions [p10]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id; about 2 rows
scan plan_orders: 1 of 16 partitions [p8]
  partitioning key (customer_id): ('C4')
  primary key bounds: ('C4')
  columns: customer_id, id; about 2 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join plan_orders: at the members over plan_orders, plan_orders, to the coordinator
  final: at the coordinator over x0
*/
----
-- a co-located join of one key is local
-- partitions=2 members=1 execution=local
SELECT o.id, c.name FROM plan_orders o JOIN plan_customers c USING (customer_id) WHERE customer_id = 'C2' ORDER BY o.id
/*
tree: plan_orders: (p7); plan_customers: (p7)
scan plan_orders AS o: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id; about 2 rows
scan plan_customers AS c: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, name; about 4 rows
co-located: o, c
serving: yes
*/
----
-- a left join filtered on the preserved side
SELECT o.id, c.name FROM plan_orders o LEFT JOIN plan_customers c ON o.customer_id = c.customer_id WHERE o.customer_id = 'C3'
/*
tree: plan_orders: (p8); plan_customers: (p8)
scan plan_orders AS o: 1 of 16 partitions [p8]
  partitioning key (customer_id): ('C3')
  primary key bounds: ('C3')
  columns: customer_id, id; about 2 rows
scan plan_customers AS c: 1 of 16 partitions [p8]
  partitioning key (customer_id): ('C3')
  primary key bounds: ('C3')
  columns: customer_id, name; about 4 rows
co-located: o, c
serving: yes
*/
----
-- a left join asked for what is missing
-- partitions=32
SELECT o.customer_id, o.id FROM plan_orders o LEFT JOIN plan_customers c ON o.customer_id = c.customer_id WHERE c.customer_id IS NULL
/*
tree: plan_orders: all; plan_customers: all
scan plan_orders AS o: all 16 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id; about 6 rows
scan plan_customers AS c: all 16 partitions
  because customer_id IS NULL can hold for rows that the LEFT JOIN fills with NULLs: use an inner join, or a condition that NULL does not satisfy; o.customer_id = customer_id only joins the key: compare either side with a value
  columns: customer_id; about 4 rows
co-located: o, c
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join o: at the members over o, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- a replicated table is wherever the rest is
-- partitions=2 members=1 execution=local
SELECT o.id, p.label FROM plan_orders o LEFT JOIN plan_priorities p ON o.priority = p.priority WHERE o.customer_id = 'C2' ORDER BY o.id
/*
tree: plan_orders: (p7); plan_priorities: any
scan plan_orders AS o: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority; about 2 rows
scan plan_priorities AS p: replicated, every member has it
  columns: priority, label; about 2 rows
serving: yes
*/
----
-- a replicated table alone
-- partitions=1 members=1 execution=local
SELECT label FROM plan_priorities WHERE priority = 'b'
/*
tree: plan_priorities: any
scan plan_priorities: replicated, every member has it
  primary key bounds: ('b')
  columns: priority, label; about 1 row
serving: yes
*/
----
-- a distinct aggregate gathers rows
SELECT count(DISTINCT priority) FROM plan_orders
/*
tree: plan_orders: all
scan plan_orders: all 16 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: priority; about 6 rows
serving: no, it does not search plan_orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- hash and range
-- partitions=1 members=1
SELECT value FROM plan_metrics WHERE host = 'h1' AND metric = 'load' AND day = DATE '2024-01-15'
/*
tree: plan_metrics: (p4)
scan plan_metrics: 1 of 7 partitions [p4]
  partitioning key (host, metric, day): ('h1', 'load', '2024-01-15')
  primary key bounds: ('h1', 'load', '2024-01-15')
  columns: host, metric, day, value; about 0 rows
serving: yes
*/
----
-- a range with hash components of its own is pruned by them
SELECT count(*) FROM plan_metrics WHERE host = 'h1' AND day >= '2024-01-01' AND day < '2024-02-01'
/*
tree: plan_metrics: (p4)
scan plan_metrics: 1 of 7 partitions [p4]
  partitioning key (host, metric, day): ('h1', *, ['2024-01-01', '2024-02-01'))
  primary key bounds: ('h1')
  columns: host, day; about 0 rows
  filter: host = 'h1' AND day >= '2024-01-01' AND day < '2024-02-01'
serving: no, it does not search plan_metrics by its key: compare the first columns of (host, metric, day) with values
*/
----
-- the range alone and a gap
-- partitions=0 members=0 execution=none
SELECT count(*) FROM plan_metrics WHERE day BETWEEN DATE '2024-02-01' AND DATE '2024-02-28'
/*
tree: plan_metrics: none
scan plan_metrics: 0 of 7 partitions
serving: no, it does not search plan_metrics by its key: compare the first columns of (host, metric, day) with values
*/
----
-- half of the hash component prunes only the range that hashes by it alone
-- partitions=6
SELECT count(*) FROM plan_metrics WHERE host = 'h1'
/*
tree: plan_metrics: (p0 | p1 | p2 | p3 | p4 | p6)
scan plan_metrics: 6 of 7 partitions [p0, p1, p2, p3, p4, p6]
  partitioning key (host, metric, day): ('h1', *, *)
  primary key bounds: ('h1')
  columns: host; about 2 rows
serving: yes
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- different components in the branches of an OR
SELECT count(*) FROM plan_metrics WHERE (host = 'h1' AND metric = 'load') OR day > DATE '2024-06-01'
/*
tree: plan_metrics: (p0 | p4 | p6)
scan plan_metrics: 3 of 7 partitions [p0, p4, p6]
  columns: host, metric, day; about 4 rows
  filter: (host = 'h1' AND metric = 'load' OR day > '2024-06-01')
serving: no, it does not search plan_metrics by its key: compare the first columns of (host, metric, day) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- a date in another spelling
-- partitions=1
SELECT host FROM plan_metrics WHERE day = TIMESTAMP '2024-03-01 00:00:00'
/*
tree: plan_metrics: (p6)
scan plan_metrics: 1 of 7 partitions [p6]
  partitioning key (host, metric, day): (*, *, '2024-03-01')
  columns: host, day; about 1 row
  filter: day = '2024-03-01 00:00:00'
serving: no, it does not search plan_metrics by its key: compare the first columns of (host, metric, day) with values
*/
----
-- two bounds that meet in one text
-- parameters: 'C2', 'C2'
SELECT id FROM plan_orders WHERE customer_id BETWEEN ? AND ?
/*
tree: plan_orders: ([$1, $2])
scan plan_orders: 1 of 16 partitions [p7]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2') <= key <= ('C2')
  columns: customer_id, id; about 2 rows
serving: no, it reads a range of keys of plan_orders, for which the native executor alone has a program
*/
----
-- two bounds that do not meet
-- parameters: 'C2', 'C4'
SELECT id FROM plan_orders WHERE customer_id BETWEEN ? AND ?
/*
tree: plan_orders: ([$1, $2])
scan plan_orders: all 16 partitions
  because the predicates on customer_id bound a range, but customer_id is hashed: compare customer_id with = or IN
  primary key bounds: ('C2') <= key <= ('C4')
  columns: customer_id, id; about 2 rows
serving: no, it reads a range of keys of plan_orders, for which the native executor alone has a program
when distributed: two-stage
*/
----
-- bounds that contradict each other, about a part of a hash key
-- parameters: 'h2', 'h1'
SELECT day FROM plan_metrics WHERE host > ? AND host < ?
/*
tree: plan_metrics: ((> $1 & < $2, *, *))
scan plan_metrics: 0 of 7 partitions
serving: no, it reads a range of keys of plan_metrics, for which the native executor alone has a program
*/
----
-- no text is less than the empty one
-- parameters: ''
SELECT id FROM plan_orders WHERE customer_id < ?
/*
tree: plan_orders: (< $1)
scan plan_orders: 0 of 16 partitions
serving: no, it reads a range of keys of plan_orders, for which the native executor alone has a program
*/
