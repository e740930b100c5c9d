-- Which forms of a statement name keys, and what EXPLAIN says where one names none.
-- tables: shop
CREATE TABLE few (n INTEGER PRIMARY KEY) PARTITION BY HASH (n) PARTITIONS 2;
----
-- keys are named, 1
SELECT * FROM orders WHERE customer_id = 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- keys are named, 2
SELECT * FROM orders WHERE 'C2' = customer_id
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- keys are named, 3
SELECT * FROM orders WHERE CUSTOMER_ID == 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- keys are named, 4
SELECT * FROM orders WHERE "customer_id" = 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- keys are named, 5
SELECT * FROM orders WHERE orders.customer_id = 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- keys are named, 6
SELECT * FROM orders WHERE ((customer_id)) = (('C2'))
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- keys are named, 7
SELECT * FROM orders WHERE customer_id = 'C2' AND amount > 5 AND priority LIKE 'a%'
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
  filter: amount > 5 AND priority LIKE 'a%'
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- keys are named, 8
SELECT * FROM orders WHERE customer_id IN ('C1', 'C2', NULL)
/*
execution: distributed on 2 of 3 members
tree: orders: (p128 | p262)
scan orders: 2 of 271 partitions [p128, p262]
  partitioning key (customer_id): ('C1'), ('C2')
  primary key bounds: ('C1') <= key <= ('C2'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN ('C1', 'C2', NULL)
serving: no, its expressions, types or clauses need a kernel over whole columns
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- keys are named, 9
SELECT * FROM orders WHERE customer_id IN ('C1') OR customer_id = 'C2' OR customer_id IN ('C3', 'C1')
/*
execution: distributed on 2 of 3 members
tree: orders: (p22 | p128 | p262)
scan orders: 3 of 271 partitions [p22, p128, p262]
  partitioning key (customer_id): ('C1'), ('C2'), ('C3')
  primary key bounds: ('C1') <= key <= ('C3'), in 3 ranges
  columns: customer_id, id, priority, amount, day
  filter: (customer_id IN ('C1') OR customer_id = 'C2' OR customer_id IN ('C3', 'C1'))
serving: yes
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- keys are named, 10
SELECT * FROM orders WHERE (customer_id = 'C1' AND id = 1) OR (customer_id = 'C2' AND id = 2)
/*
execution: distributed on 2 of 3 members
tree: orders: (p128 | p262)
scan orders: 2 of 271 partitions [p128, p262]
  partitioning key (customer_id): ('C1'), ('C2')
  primary key bounds: ('C1', 1) <= key <= ('C2', 2), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: (customer_id = 'C1' AND id = 1 OR customer_id = 'C2' AND id = 2)
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- keys are named, 11
SELECT * FROM orders WHERE customer_id = 'C1' AND customer_id = 'C2'
/*
execution: none on 0 of 3 members
tree: orders: none
scan orders: 0 of 271 partitions
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- keys are named, 12
SELECT * FROM orders WHERE customer_id IN ('C1', 'C2') AND customer_id IN ('C2', 'C3')
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- keys are named, 13
SELECT * FROM orders WHERE customer_id IN ('C1', 'C2') AND (customer_id = 'C2' OR customer_id = 'C9')
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
  filter: (customer_id = 'C2' OR customer_id = 'C9')
serving: yes
*/
----
-- keys are named, 14
SELECT * FROM orders WHERE NOT (customer_id <> 'C2' OR id = 3)
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2') <= key <= ('C2'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: NOT (customer_id <> 'C2' OR id = 3)
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- keys are named, 15
SELECT * FROM orders WHERE NOT NOT customer_id = 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- keys are named, 16
SELECT * FROM orders WHERE customer_id = NULL
/*
execution: none on 0 of 3 members
tree: orders: none
scan orders: 0 of 271 partitions
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- keys are named, 17
SELECT * FROM orders WHERE customer_id = 'C1' AND NULL
/*
execution: none on 0 of 3 members
tree: orders: none
scan orders: 0 of 271 partitions
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- keys are named, 18
SELECT * FROM orders WHERE FALSE
/*
execution: none on 0 of 3 members
tree: orders: none
scan orders: 0 of 271 partitions
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- keys are named, 19
SELECT * FROM orders WHERE customer_id = 'C1' OR FALSE
/*
execution: local on 1 of 3 members
tree: orders: (p262)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount, day
  filter: (customer_id = 'C1' OR false)
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- keys are named, 20
SELECT * FROM orders WHERE customer_id = upper('c') || CAST(1 + 1 AS VARCHAR)
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- keys are named, 21
SELECT * FROM orders WHERE customer_id = CAST('C2' AS VARCHAR)
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- keys are named, 22
SELECT * FROM orders WHERE customer_id BETWEEN 'C2' AND 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- all partitions, with the reason: another column
SELECT * FROM orders WHERE id = 3
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
  filter: id = 3
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- all partitions, with the reason: a function
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
-- all partitions, with the reason: a cast
SELECT * FROM orders WHERE CAST(customer_id AS BIGINT) = 2
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id is cast in CAST(customer_id AS BIGINT) = 2: compare the bare column with a VARCHAR
  columns: customer_id, id, priority, amount, day
  filter: CAST(customer_id AS BIGINT) = 2
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- all partitions, with the reason: an expression
SELECT * FROM orders WHERE customer_id || 'x' = 'C2x'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id is part of an expression in customer_id || 'x' = 'C2x': compare the bare column
  columns: customer_id, id, priority, amount, day
  filter: customer_id || 'x' = 'C2x'
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- all partitions, with the reason: a number for a text
SELECT * FROM orders WHERE customer_id = 5
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id is cast in CAST(customer_id AS INTEGER) = 5: compare the bare column with a VARCHAR
  columns: customer_id, id, priority, amount, day
  filter: CAST(customer_id AS INTEGER) = 5
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- all partitions, with the reason: not equal
SELECT * FROM orders WHERE customer_id <> 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id <> 'C2' excludes values of customer_id: name the values to keep, with = or IN
  primary key bounds: key, in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id <> 'C2'
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- all partitions, with the reason: not
SELECT * FROM orders WHERE NOT customer_id = 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id = 'C2' excludes values of customer_id: name the values to keep, with = or IN
  primary key bounds: key, in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: NOT customer_id = 'C2'
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- all partitions, with the reason: not in
SELECT * FROM orders WHERE customer_id NOT IN ('C2')
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because NOT IN excludes values of customer_id: name the values to keep, with = or IN
  primary key bounds: key, in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: NOT customer_id IN ('C2')
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- all partitions, with the reason: like is a range
SELECT * FROM orders WHERE customer_id LIKE 'C2%'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because the predicates on customer_id bound a range, but customer_id is hashed: compare customer_id with = or IN; customer_id LIKE 'C2%' may match more than 4,096 texts
  primary key bounds: ('C2') <= key < ('C3')
  columns: customer_id, id, priority, amount, day
  filter: customer_id LIKE 'C2%'
serving: no, it reads a range of keys of orders, for which the native executor alone has a program
when distributed: two-stage
*/
----
-- all partitions, with the reason: a pattern that begins with a wildcard
SELECT * FROM orders WHERE customer_id LIKE '%2'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because the pattern of customer_id LIKE '%2' begins with a wildcard: begin it with the first characters of customer_id
  columns: customer_id, id, priority, amount, day
  filter: customer_id LIKE '%2'
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- all partitions, with the reason: ilike
SELECT * FROM orders WHERE customer_id ILIKE 'c2%'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because the predicates on customer_id bound a range, but customer_id is hashed: compare customer_id with = or IN; customer_id ILIKE 'c2%' may match more than 4,096 texts
  primary key bounds: ('C2') <= key < ('c3'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id ILIKE 'c2%'
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- all partitions, with the reason: typed NULL
SELECT * FROM orders WHERE customer_id IN ('C2', CAST(NULL AS INTEGER))
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id is cast in CAST(customer_id AS INTEGER) IN ('C2', NULL): compare the bare column with a VARCHAR
  columns: customer_id, id, priority, amount, day
  filter: CAST(customer_id AS INTEGER) IN ('C2', NULL)
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- all partitions, with the reason: a range of a hash
SELECT * FROM orders WHERE customer_id > 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because the predicates on customer_id bound a range, but customer_id is hashed: compare customer_id with = or IN
  primary key bounds: ('C2') < key
  columns: customer_id, id, priority, amount, day
serving: no, it reads a range of keys of orders, for which the native executor alone has a program
when distributed: two-stage
*/
----
-- all partitions, with the reason: an unbounded branch
SELECT * FROM orders WHERE customer_id = 'C2' OR id = 3
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because the OR branch id = 3 does not restrict the key: compare customer_id with values in every branch
  columns: customer_id, id, priority, amount, day
  filter: (customer_id = 'C2' OR id = 3)
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- all partitions, with the reason: another column's value
SELECT * FROM orders WHERE customer_id = priority
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id is compared with priority, which is neither a constant nor a parameter: pass its value as a parameter
  columns: customer_id, id, priority, amount, day
  filter: customer_id = priority
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- all partitions, with the reason: a subquery
SELECT * FROM orders WHERE customer_id IN (SELECT 'C2')
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- all partitions, with the reason: a volatile function
SELECT * FROM orders WHERE customer_id = concat('C', random())
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id is compared with concat('C', CAST(random() AS VARCHAR)), which is neither a constant nor a parameter: pass its value as a parameter
  columns: customer_id, id, priority, amount, day
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- all partitions, with the reason: is not null
SELECT * FROM orders WHERE customer_id IS NOT NULL
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id IS NOT NULL is TRUE for every row: compare customer_id with values
  columns: customer_id, id, priority, amount, day
  filter: customer_id IS NOT NULL
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- all partitions, with the reason: a branch with a reason
SELECT * FROM orders WHERE customer_id = 'C2' OR lower(customer_id) = 'c3'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id is wrapped in lower(): compare the bare column
  columns: customer_id, id, priority, amount, day
  filter: (customer_id = 'C2' OR lower(customer_id) = 'c3')
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- no where clause is said
SELECT * FROM orders
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- half of a component is said
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
-- components prune each by itself: the hash component alone
SELECT value FROM metrics WHERE host = 'h' AND metric = 'm'
/*
execution: distributed on 2 of 3 members
tree: metrics: (p3 | p7)
scan metrics: 2 of 8 partitions [p3, p7]
  partitioning key (host, metric, time): ('h', 'm', *)
  primary key bounds: ('h', 'm')
  columns: host, metric, value
serving: yes
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- components prune each by itself: the range alone
SELECT value FROM metrics WHERE time < TIMESTAMP '2015-06-01 00:00:00'
/*
execution: distributed on 3 of 3 members
tree: metrics: (p0 | p1 | p2 | p3)
scan metrics: 4 of 8 partitions [p0, p1, p2, p3]
  columns: time, value
  filter: time < '2015-06-01 00:00:00'
serving: no, it does not search metrics by its key: compare the first columns of (host, metric, time) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- components prune each by itself: a closed range of texts
SELECT value FROM metrics WHERE time >= '2016-01-01 00:00:00' AND time < '2016-02-01'
/*
execution: distributed on 3 of 3 members
tree: metrics: (p4 | p5 | p6 | p7)
scan metrics: 4 of 8 partitions [p4, p5, p6, p7]
  columns: time, value
  filter: time >= '2016-01-01 00:00:00' AND time < '2016-02-01'
serving: no, it does not search metrics by its key: compare the first columns of (host, metric, time) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- components prune each by itself: both
SELECT value FROM metrics WHERE host IN ('h') AND metric = 'm' AND time = TIMESTAMP '2020-01-01 00:00:00'
/*
execution: local on 1 of 3 members
tree: metrics: (p7)
scan metrics: 1 of 8 partitions [p7]
  partitioning key (host, metric, time): ('h', 'm', '2020-01-01 00:00:00')
  primary key bounds: ('h', 'm', '2020-01-01 00:00:00')
  columns: host, metric, time, value
serving: yes
*/
----
-- components prune each by itself: another component in each branch
SELECT value FROM metrics WHERE host = 'h' AND metric = 'm' OR time < DATE '2000-01-01'
/*
execution: distributed on 3 of 3 members
tree: metrics: (p0 | p1 | p2 | p3 | p7)
scan metrics: 5 of 8 partitions [p0, p1, p2, p3, p7]
  columns: host, metric, time, value
  filter: (host = 'h' AND metric = 'm' OR time < '2000-01-01')
serving: no, it does not search metrics by its key: compare the first columns of (host, metric, time) with values
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- a bound of the range is its first value, 1
-- parameters: datetime(2016, 1, 1, 0, 0)
SELECT value FROM metrics WHERE time <= ?
/*
execution: distributed on 3 of 3 members
tree: metrics: ((*, *, <= $1))
scan metrics: all 8 partitions
  because host, metric of HASH (host, metric) are not bound: compare host, metric with = or IN; the predicates on time reach every range of RANGE (time): ask for a narrower range
  columns: time, value
  filter: time <= $1
serving: no, it does not search metrics by its key: compare the first columns of (host, metric, time) with values
when distributed: two-stage
*/
----
-- a bound of the range is its first value, 2
-- parameters: datetime(2016, 1, 1, 0, 0)
SELECT value FROM metrics WHERE time < ?
/*
execution: distributed on 3 of 3 members
tree: metrics: ((*, *, < $1))
scan metrics: 4 of 8 partitions [p0, p1, p2, p3]
  columns: time, value
  filter: time < $1
serving: no, it does not search metrics by its key: compare the first columns of (host, metric, time) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- parameters are bound late, 1
-- parameters: 'C2'
SELECT * FROM orders WHERE customer_id = ?
/*
execution: local on 1 of 3 members
tree: orders: ($1)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- parameters are bound late, 2
-- parameters: 5, 'C2'
SELECT * FROM orders WHERE customer_id = $2 AND id = $1
/*
execution: local on 1 of 3 members
tree: orders: ($2)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2', 5)
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- parameters are bound late, 3
-- parameters: {'who': 'C2'}
SELECT * FROM orders WHERE customer_id = $who
/*
execution: local on 1 of 3 members
tree: orders: ($who)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- parameters are bound late, 4
-- parameters: 'C1', 'C2'
SELECT * FROM orders WHERE customer_id IN (?, 'C9', ?)
/*
execution: distributed on 3 of 3 members
tree: orders: (p156 | $1 | $2)
scan orders: 3 of 271 partitions [p128, p156, p262]
  partitioning key (customer_id): ('C1'), ('C2'), ('C9')
  primary key bounds: ('C1') <= key <= ('C9'), in 3 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN ($1, 'C9', $2)
serving: yes
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- parameters are bound late, 5
-- parameters: 'C1', None
SELECT * FROM orders WHERE customer_id = ? OR customer_id = ?
/*
execution: local on 1 of 3 members
tree: orders: ($1 | $2)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount, day
  filter: (customer_id = $1 OR customer_id = $2)
serving: yes
*/
----
-- parameters are bound late, 6
-- parameters: 'C1'
SELECT * FROM orders WHERE customer_id = ? AND customer_id = 'C2'
/*
execution: none on 0 of 3 members
tree: orders: ('C2' & $1)
scan orders: 0 of 271 partitions
serving: yes
*/
----
-- parameters are bound late, 7
-- parameters: None
SELECT * FROM orders WHERE customer_id = ?
/*
execution: none on 0 of 3 members
tree: orders: ($1)
scan orders: 0 of 271 partitions
serving: yes
*/
----
-- a parameter of another type keeps everything
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
-- what stands above a scan does not stop its pruning: project
SELECT amount FROM orders WHERE customer_id = 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, amount
serving: yes
*/
----
-- what stands above a scan does not stop its pruning: count
SELECT count(*) FROM orders WHERE customer_id = 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id
serving: yes
*/
----
-- what stands above a scan does not stop its pruning: distinct, sort and limit
SELECT DISTINCT priority FROM orders WHERE customer_id = 'C2' ORDER BY 1 LIMIT 5
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, priority
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- what stands above a scan does not stop its pruning: aggregate and having
SELECT priority, sum(amount) FROM orders WHERE customer_id = 'C2' GROUP BY 1 HAVING sum(amount) > 3
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, priority, amount
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- what stands above a scan does not stop its pruning: window
SELECT id, row_number() OVER (ORDER BY id) FROM orders WHERE customer_id = 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- what stands above a scan does not stop its pruning: common table expression
WITH x AS (SELECT * FROM orders WHERE customer_id = 'C2') SELECT * FROM x
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- what stands above a scan does not stop its pruning: derived table
SELECT * FROM (SELECT * FROM orders WHERE customer_id = 'C2') WHERE id = 5
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2', 5)
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- what stands above a scan does not stop its pruning: an alias comes second to a column in WHERE
SELECT customer_id || 'x' AS customer_id FROM orders WHERE customer_id = 'C2'
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- what is applied too late prunes nothing: a filter above LIMIT
SELECT * FROM (SELECT * FROM orders ORDER BY id LIMIT 5) WHERE customer_id = 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because the filter customer_id = 'C2' cannot be pushed below LIMIT: filter inside it if you mean its input
  columns: customer_id, id, priority, amount, day
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- what is applied too late prunes nothing: a filter above LIMIT of a join, on a column that equals one below it
SELECT * FROM (SELECT o.customer_id FROM orders o JOIN airlines a ON a.code = o.customer_id ORDER BY 1 LIMIT 5) WHERE customer_id = 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: all; airlines: any
scan orders AS o: all 271 partitions
  because the filter customer_id = 'C2' cannot be pushed below LIMIT: filter inside it if you mean its input; customer_id = a.code only joins the key: compare either side with a value
  columns: customer_id
scan airlines AS a: replicated, every member has it
  columns: code
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join o: at the members over o, a, to the coordinator
  final: at the coordinator over x0
*/
----
-- what is applied too late prunes nothing: a filter above a window over a join
SELECT * FROM (SELECT o.customer_id, row_number() OVER (ORDER BY o.id) AS n FROM orders o JOIN airlines a ON a.code = o.customer_id) WHERE customer_id = 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: all; airlines: any
scan orders AS o: all 271 partitions
  because the filter customer_id = 'C2' cannot be pushed below a window that is not partitioned by customer_id: partition it by customer_id, or filter inside the subquery; customer_id = a.code only joins the key: compare either side with a value
  columns: customer_id, id
scan airlines AS a: replicated, every member has it
  columns: code
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join o: at the members over o, a, to the coordinator
  final: at the coordinator over x0
  gathered: o, a: a window is not partitioned by the partitioning key: add it to PARTITION BY
*/
----
-- what is applied too late prunes nothing: a filter above a window
SELECT * FROM (SELECT *, row_number() OVER (ORDER BY id) FROM orders) WHERE customer_id = 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because the filter customer_id = 'C2' cannot be pushed below a window that is not partitioned by customer_id: partition it by customer_id, or filter inside the subquery
  columns: customer_id, id, priority, amount, day
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- what is applied too late prunes nothing: a sample
SELECT * FROM orders USING SAMPLE 10 ROWS
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: gather (the result of SAMPLE depends on when and where it is evaluated: filter by the partitioning key to gather less)
*/
----
-- what is applied too late prunes nothing: a sampled table
SELECT * FROM orders TABLESAMPLE 10 ROWS WHERE customer_id = 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because the filter customer_id = 'C2' cannot be pushed below a sample: filter inside it if you mean its input
  columns: customer_id, id, priority, amount, day
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: gather (the result of SAMPLE depends on when and where it is evaluated: filter by the partitioning key to gather less)
*/
----
-- what is applied too late prunes nothing: a predicate in the SELECT list
SELECT customer_id = 'C2' FROM orders
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- what is applied too late prunes nothing: a column under another's name
SELECT * FROM orders AS o(id, customer_id) WHERE customer_id = 2
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
  filter: id = 2
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- what is applied too late prunes nothing: a column under another's name, qualified
SELECT * FROM orders AS o(id, x, customer_id) WHERE o.customer_id = 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
  filter: priority = 'C2'
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- what is applied too late prunes nothing: qualify
SELECT * FROM orders QUALIFY row_number() OVER (PARTITION BY customer_id ORDER BY id) = 1
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- more keys than a setting allows
-- set: combinations_per_partition = 1
SELECT * FROM few WHERE n IN (1, 2, 3)
/*
execution: distributed on 2 of 3 members
tree: few: all
scan few: all 2 partitions
  because 3 combinations of (n) exceed the limit of 2: ask for fewer keys, or raise it with SET combinations_per_partition
  primary key bounds: (1) <= key <= (3), in 3 ranges
  columns: n
  filter: n IN (1, 2, 3)
serving: yes
when distributed: two-stage
*/
