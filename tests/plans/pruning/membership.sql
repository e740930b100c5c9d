-- Lists that are parameters: IN $1, = ANY($1) and their other spellings.
-- tables: shop
----
-- each spelling prunes by the elements, 1
-- parameters: ['C1', 'C2', None]
SELECT * FROM orders WHERE customer_id = ANY($1)
/*
execution: distributed on 2 of 3 members
tree: orders: ($1[])
scan orders: 2 of 271 partitions [p128, p262]
  partitioning key (customer_id): ('C1'), ('C2')
  primary key bounds: ('C1') <= key <= ('C2'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- each spelling prunes by the elements, 2
-- parameters: None
SELECT * FROM orders WHERE customer_id = ANY($1)
/*
execution: local on 0 of 3 members
tree: orders: none
scan orders: 0 of 271 partitions
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 3
-- parameters: ['C1']
SELECT * FROM orders WHERE customer_id = ANY($1)
/*
execution: local on 1 of 3 members
tree: orders: ($1[])
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 4
-- parameters: ['C1', 'C2', None]
SELECT * FROM orders WHERE customer_id = ANY(($1))
/*
execution: distributed on 2 of 3 members
tree: orders: ($1[])
scan orders: 2 of 271 partitions [p128, p262]
  partitioning key (customer_id): ('C1'), ('C2')
  primary key bounds: ('C1') <= key <= ('C2'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- each spelling prunes by the elements, 5
-- parameters: None
SELECT * FROM orders WHERE customer_id = ANY(($1))
/*
execution: local on 0 of 3 members
tree: orders: none
scan orders: 0 of 271 partitions
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 6
-- parameters: ['C1']
SELECT * FROM orders WHERE customer_id = ANY(($1))
/*
execution: local on 1 of 3 members
tree: orders: ($1[])
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 7
-- parameters: ['C1', 'C2', None]
SELECT * FROM orders WHERE customer_id = ANY (SELECT unnest($1))
/*
execution: distributed on 2 of 3 members
tree: orders: ($1[])
scan orders: 2 of 271 partitions [p128, p262]
  partitioning key (customer_id): ('C1'), ('C2')
  primary key bounds: ('C1') <= key <= ('C2'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- each spelling prunes by the elements, 8
-- parameters: None
SELECT * FROM orders WHERE customer_id = ANY (SELECT unnest($1))
/*
execution: local on 0 of 3 members
tree: orders: none
scan orders: 0 of 271 partitions
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 9
-- parameters: ['C1']
SELECT * FROM orders WHERE customer_id = ANY (SELECT unnest($1))
/*
execution: local on 1 of 3 members
tree: orders: ($1[])
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 10
-- parameters: ['C1', 'C2', None]
SELECT * FROM orders WHERE customer_id IN $1
/*
execution: distributed on 2 of 3 members
tree: orders: ($1[])
scan orders: 2 of 271 partitions [p128, p262]
  partitioning key (customer_id): ('C1'), ('C2')
  primary key bounds: ('C1') <= key <= ('C2'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- each spelling prunes by the elements, 11
-- parameters: None
SELECT * FROM orders WHERE customer_id IN $1
/*
execution: none on 0 of 3 members
tree: orders: none
scan orders: 0 of 271 partitions
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 12
-- parameters: ['C1']
SELECT * FROM orders WHERE customer_id IN $1
/*
execution: local on 1 of 3 members
tree: orders: ($1[])
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 13
-- parameters: ['C1', 'C2', None]
SELECT * FROM orders WHERE customer_id IN (SELECT unnest($1))
/*
execution: distributed on 2 of 3 members
tree: orders: ($1[])
scan orders: 2 of 271 partitions [p128, p262]
  partitioning key (customer_id): ('C1'), ('C2')
  primary key bounds: ('C1') <= key <= ('C2'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- each spelling prunes by the elements, 14
-- parameters: None
SELECT * FROM orders WHERE customer_id IN (SELECT unnest($1))
/*
execution: local on 0 of 3 members
tree: orders: none
scan orders: 0 of 271 partitions
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 15
-- parameters: ['C1']
SELECT * FROM orders WHERE customer_id IN (SELECT unnest($1))
/*
execution: local on 1 of 3 members
tree: orders: ($1[])
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 16
-- parameters: ['C1', 'C2', None]
SELECT * FROM orders WHERE list_contains($1, customer_id)
/*
execution: distributed on 2 of 3 members
tree: orders: ($1[])
scan orders: 2 of 271 partitions [p128, p262]
  partitioning key (customer_id): ('C1'), ('C2')
  primary key bounds: ('C1') <= key <= ('C2'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- each spelling prunes by the elements, 17
-- parameters: None
SELECT * FROM orders WHERE list_contains($1, customer_id)
/*
execution: none on 0 of 3 members
tree: orders: ($1[])
scan orders: 0 of 271 partitions
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 18
-- parameters: ['C1']
SELECT * FROM orders WHERE list_contains($1, customer_id)
/*
execution: local on 1 of 3 members
tree: orders: ($1[])
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 19
-- parameters: ['C1', 'C2', None]
SELECT * FROM orders WHERE list_has($1, customer_id)
/*
execution: distributed on 2 of 3 members
tree: orders: ($1[])
scan orders: 2 of 271 partitions [p128, p262]
  partitioning key (customer_id): ('C1'), ('C2')
  primary key bounds: ('C1') <= key <= ('C2'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- each spelling prunes by the elements, 20
-- parameters: None
SELECT * FROM orders WHERE list_has($1, customer_id)
/*
execution: none on 0 of 3 members
tree: orders: ($1[])
scan orders: 0 of 271 partitions
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 21
-- parameters: ['C1']
SELECT * FROM orders WHERE list_has($1, customer_id)
/*
execution: local on 1 of 3 members
tree: orders: ($1[])
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 22
-- parameters: ['C1', 'C2', None]
SELECT * FROM orders WHERE array_contains($1, customer_id)
/*
execution: distributed on 2 of 3 members
tree: orders: ($1[])
scan orders: 2 of 271 partitions [p128, p262]
  partitioning key (customer_id): ('C1'), ('C2')
  primary key bounds: ('C1') <= key <= ('C2'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- each spelling prunes by the elements, 23
-- parameters: None
SELECT * FROM orders WHERE array_contains($1, customer_id)
/*
execution: none on 0 of 3 members
tree: orders: ($1[])
scan orders: 0 of 271 partitions
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 24
-- parameters: ['C1']
SELECT * FROM orders WHERE array_contains($1, customer_id)
/*
execution: local on 1 of 3 members
tree: orders: ($1[])
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 25
-- parameters: ['C1', 'C2', None]
SELECT * FROM orders WHERE array_has($1, customer_id)
/*
execution: distributed on 2 of 3 members
tree: orders: ($1[])
scan orders: 2 of 271 partitions [p128, p262]
  partitioning key (customer_id): ('C1'), ('C2')
  primary key bounds: ('C1') <= key <= ('C2'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- each spelling prunes by the elements, 26
-- parameters: None
SELECT * FROM orders WHERE array_has($1, customer_id)
/*
execution: none on 0 of 3 members
tree: orders: ($1[])
scan orders: 0 of 271 partitions
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 27
-- parameters: ['C1']
SELECT * FROM orders WHERE array_has($1, customer_id)
/*
execution: local on 1 of 3 members
tree: orders: ($1[])
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 28
-- parameters: ['C1', 'C2', None]
SELECT * FROM orders WHERE contains($1, customer_id)
/*
execution: distributed on 2 of 3 members
tree: orders: ($1[])
scan orders: 2 of 271 partitions [p128, p262]
  partitioning key (customer_id): ('C1'), ('C2')
  primary key bounds: ('C1') <= key <= ('C2'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- each spelling prunes by the elements, 29
-- parameters: None
SELECT * FROM orders WHERE contains($1, customer_id)
/*
execution: none on 0 of 3 members
tree: orders: none
scan orders: 0 of 271 partitions
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 30
-- parameters: ['C1']
SELECT * FROM orders WHERE contains($1, customer_id)
/*
execution: local on 1 of 3 members
tree: orders: ($1[])
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- each spelling prunes by the elements, 31
-- parameters: ['C1']
SELECT * FROM orders WHERE customer_id = SOME($1)
/*
execution: local on 1 of 3 members
tree: orders: ($1[])
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- what is no membership keeps everything: negated
-- parameters: ['C1']
SELECT * FROM orders WHERE NOT customer_id = ANY($1)
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because IS DISTINCT FROM excludes values of customer_id: name the values to keep, with = or IN
  primary key bounds: key, in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: (NOT customer_id IN $1 OR customer_id IS NULL)
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- a membership inside of a negation
-- parameters: ['C1', 'C2']
SELECT * FROM orders WHERE NOT (NOT customer_id = ANY($1) OR amount > 5)
/*
execution: distributed on 2 of 3 members
tree: orders: ($1[])
scan orders: 2 of 271 partitions [p128, p262]
  partitioning key (customer_id): ('C1'), ('C2')
  primary key bounds: ('C1') <= key <= ('C2'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: customer_id IN $1 AND NOT amount > 5
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- what is no membership keeps everything: none of
-- parameters: ['C1']
SELECT * FROM orders WHERE customer_id <> ALL($1)
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because IS DISTINCT FROM excludes values of customer_id: name the values to keep, with = or IN
  primary key bounds: key, in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: (NOT customer_id IN $1 OR customer_id IS NULL)
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- what is no membership keeps everything: a wrapped column
-- parameters: ['C1']
SELECT * FROM orders WHERE list_contains($1, lower(customer_id))
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id is wrapped in lower(): compare the bare column
  columns: customer_id, id, priority, amount, day
  filter: lower(customer_id) IN $1
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- what is no membership keeps everything: some elements
-- parameters: ['C1']
SELECT * FROM orders WHERE customer_id IN (SELECT unnest($1) LIMIT 1)
/*
execution: local on 1 of 3 members
tree: orders: ($1[])
scan orders: 1 of 271 partitions [p262]
  partitioning key (customer_id): ('C1')
  primary key bounds: ('C1')
  columns: customer_id, id, priority, amount, day
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
*/
----
-- what is no membership keeps everything: changed elements
-- parameters: ['C1']
SELECT * FROM orders WHERE customer_id IN (SELECT unnest($1) || 'x')
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id is compared with ... || 'x', which is neither a constant nor a parameter: pass its value as a parameter
  columns: customer_id, id, priority, amount, day
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- what is no membership keeps everything: another function
-- parameters: ['C1']
SELECT * FROM orders WHERE list_position($1, customer_id) > 0
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id is wrapped in list_position(): compare the bare column
  columns: customer_id, id, priority, amount, day
  filter: list_position($1, customer_id) > 0
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- a text in place of the list keeps everything because it is searched for substrings
-- parameters: 'C1,C2'
SELECT * FROM orders WHERE customer_id IN $1
/*
execution: distributed on 3 of 3 members
tree: orders: all
scan orders: all 271 partitions
  because customer_id is wrapped in contains(): compare the bare column
  columns: customer_id, id, priority, amount, day
  filter: contains($1, customer_id)
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
when distributed: two-stage
*/
----
-- explain shows the elements and says what is no list, 1
-- parameters: ['C1']
SELECT * FROM orders WHERE customer_id = ANY($1) OR customer_id = 'C9'
/*
execution: distributed on 2 of 3 members
tree: orders: (p156 | $1[])
scan orders: 2 of 271 partitions [p156, p262]
  partitioning key (customer_id): ('C1'), ('C9')
  primary key bounds: ('C1') <= key <= ('C9'), in 2 ranges
  columns: customer_id, id, priority, amount, day
  filter: (customer_id IN $1 OR customer_id = 'C9')
serving: no, it does not search orders by its key: compare the first columns of (customer_id, id) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
