-- What EXPLAIN says of searches in an index.
-- tables: shop
CREATE INDEX i0 ON orders (amount);
CREATE INDEX i1 ON orders (day, priority);
----
-- the index that is searched, 1
SELECT * FROM orders WHERE amount = 5
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  index i0: amount = ('5.00')
  columns: customer_id, id, priority, amount, day
  filter: amount = 5
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- the index that is searched, 2
SELECT * FROM orders WHERE id > 3 AND amount BETWEEN 5 AND 7
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  index i0: ('5.00') <= amount <= ('7.00')
  columns: customer_id, id, priority, amount, day
  filter: id > 3 AND amount >= 5 AND amount <= 7
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- the index that is searched, 3
SELECT * FROM orders WHERE day > DATE '2024-01-01'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  index i1: ('2024-01-01') < day
  columns: customer_id, id, priority, amount, day
  filter: day > '2024-01-01'
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- the index that is searched, 4
SELECT * FROM orders WHERE amount > 1 AND day = DATE '2024-01-01'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  index i1: day = ('2024-01-01')
  columns: customer_id, id, priority, amount, day
  filter: amount > 1 AND day = '2024-01-01'
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- the index that is searched, 5
SELECT * FROM orders WHERE amount IN (1, 2)
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  index i0: ('1.00') <= amount <= ('2.00'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: amount IN (1, 2)
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- the index that is searched, 6
SELECT * FROM orders WHERE amount = 1 OR amount IS NULL
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
  filter: (amount = 1 OR amount IS NULL)
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- the index that is searched, 7
SELECT * FROM orders WHERE amount = 1 OR priority = 'x'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
  filter: (amount = 1 OR priority = 'x')
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- the index that is searched, 8
SELECT * FROM orders WHERE NOT amount = 1
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  index i0: amount, in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: NOT amount = 1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- the index that is searched, 9
SELECT * FROM orders WHERE amount = 1 AND customer_id = 'C1'
/*
execution: local on 1 of 3 members
tree: orders: (p262)
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount, day
  filter: amount = 1
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- the index that is searched, 10
SELECT * FROM orders WHERE priority = 'x'
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: customer_id, id, priority, amount, day
  filter: priority = 'x'
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
