-- What predicates say about the primary key, as EXPLAIN shows it.
-- tables: shop
----
-- bounds, 1
SELECT * FROM orders WHERE customer_id = 'C2' AND id = 7
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2', 7)
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- bounds, 2
-- parameters: 'C2', 7
SELECT * FROM orders WHERE customer_id = ? AND id < ?
/*
execution: local on 1 of 3 members
tree: orders: ($1)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2') <= key < ('C2', 7)
  columns: customer_id, id, priority, amount, day
serving: no, it reads a range of keys of orders, for which the native executor alone has a program
*/
----
-- bounds, 3
SELECT * FROM orders WHERE customer_id >= 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because the predicates on customer_id bound a range, but customer_id is hashed: compare customer_id with = or IN
  primary key bounds: ('C2') <= key
  columns: customer_id, id, priority, amount, day
serving: no, it reads a range of keys of orders, for which the native executor alone has a program
when distributed: two-stage
*/
----
-- bounds, 4
SELECT * FROM orders WHERE customer_id < 'C2'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because the predicates on customer_id bound a range, but customer_id is hashed: compare customer_id with = or IN
  primary key bounds: key < ('C2')
  columns: customer_id, id, priority, amount, day
serving: no, it reads a range of keys of orders, for which the native executor alone has a program
when distributed: two-stage
*/
----
-- bounds, 5
SELECT * FROM orders WHERE customer_id IN ('C5', 'C2', 'C3')
/*
execution: distributed on 2 of 3 members
tree: orders: (p22 | p128 | p187)
scan orders: 3 of 271 partitions [p22, p128, p187]
  partitioning key (customer_id): ('C2'), ('C3'), ('C5')
  primary key bounds: ('C2') <= key <= ('C5'), in 3 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN ('C5', 'C2', 'C3')
serving: yes
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- bounds, 6
-- parameters: 'C2', None
SELECT * FROM orders WHERE customer_id = ? AND id > ?
/*
execution: local on 1 of 3 members
tree: orders: ($1)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: no key
  columns: customer_id, id, priority, amount, day
serving: no, it reads a range of keys of orders, for which the native executor alone has a program
*/
----
-- bounds, 7
SELECT * FROM orders WHERE id = 7
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
  filter: id = 7
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- bounds, 8
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
-- bounds, 9
SELECT * FROM orders WHERE customer_id = 'C2' AND id = ?
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- bounds, 10
SELECT * FROM orders WHERE customer_id = 'C2' AND priority = ?
/*
execution: local on 1 of 3 members
tree: orders: (p128)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
  filter: priority = $1
serving: yes
*/
----
-- values that match no key of the partition leave none
-- parameters: 'C2', 5, 3
SELECT * FROM orders WHERE customer_id = ? AND id > ? AND id < ?
/*
execution: local on 1 of 3 members
tree: orders: ($1)
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: no key
  columns: customer_id, id, priority, amount, day
serving: no, it reads a range of keys of orders, for which the native executor alone has a program
*/
----
-- a scan that cannot be pruned has bounds all the same
SELECT * FROM metrics WHERE host = 'h1'
/*
execution: distributed on 3 of 3 members
tree: metrics: all
scan metrics: all 8 partitions
  because partition key is (host, metric, time) but only host is bound: compare metric, time with values as well
  primary key bounds: ('h1')
  columns: host, metric, time, value
serving: yes
when distributed: two-stage
*/
----
-- a replicated table is searched too
SELECT * FROM airlines WHERE code = 'LH'
/*
execution: local on 1 of 3 members
tree: airlines: any
scan airlines: replicated, every member has it
  primary key bounds: ('LH')
  columns: code, name
serving: yes
*/
----
-- pruning switched off searches nothing
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
