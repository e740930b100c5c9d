-- Predicates on columns that are no part of the key, where they contradict each other.
CREATE TABLE numbers (a INTEGER, b INTEGER, v INTEGER, w INTEGER, n INTEGER NOT NULL, f BOOLEAN, PRIMARY KEY (a, b)) PARTITION BY HASH (a) PARTITIONS 1009;
----
-- two values of one column
SELECT count(*) FROM numbers WHERE v = 1 AND v = 2
/*
execution: none on 0 of 3 members
tree: numbers: none
scan numbers: 0 of 1009 partitions
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- no integer is between two
SELECT count(*) FROM numbers WHERE v > 1 AND v < 2
/*
execution: none on 0 of 3 members
tree: numbers: none
scan numbers: 0 of 1009 partitions
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- a value and NULL
SELECT count(*) FROM numbers WHERE v IS NULL AND v > 0
/*
execution: none on 0 of 3 members
tree: numbers: none
scan numbers: 0 of 1009 partitions
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- NULL and not NULL
SELECT count(*) FROM numbers WHERE v IS NULL AND v IS NOT NULL
/*
execution: none on 0 of 3 members
tree: numbers: none
scan numbers: 0 of 1009 partitions
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- the branch that is left names the key
SELECT count(*) FROM numbers WHERE (a = 1 AND v IS NULL OR a = 2 AND v = 3) AND v > 1
/*
execution: local on 1 of 3 members
tree: numbers: (p176)
scan numbers: 1 of 1009 partitions [p176]
  partitioning key (a): (2)
  primary key bounds: (1) <= key <= (2), in 2 ranges
  columns: a, v
  filter: (a = 1 AND v IS NULL OR a = 2 AND v = 3) AND v > 1
serving: yes
*/
----
-- not, over a comparison that is NULL for NULL
SELECT count(*) FROM numbers WHERE (a = 1 AND v <> 1 OR a = 2 AND v IS NOT DISTINCT FROM 1) AND v = 1
/*
execution: local on 1 of 3 members
tree: numbers: (p176)
scan numbers: 1 of 1009 partitions [p176]
  partitioning key (a): (2)
  primary key bounds: (1) <= key <= (2), in 2 ranges
  columns: a, v
  filter: (a = 1 AND v <> 1 OR a = 2 AND v IS NOT DISTINCT FROM 1) AND v = 1
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- NULL is distinct from a value
SELECT count(*) FROM numbers WHERE (a = 1 AND v IS DISTINCT FROM 1 OR a = 2 AND v = 1) AND v IS NULL
/*
execution: local on 1 of 3 members
tree: numbers: (p129)
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1) <= key <= (2), in 2 ranges
  columns: a, v
  filter: (a = 1 AND v IS DISTINCT FROM 1 OR a = 2 AND v = 1) AND v IS NULL
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- a boolean column
SELECT count(*) FROM numbers WHERE (a = 1 AND f OR a = 2 AND NOT f OR a = 3 AND f IS NULL) AND f IS NOT TRUE
/*
execution: distributed on 2 of 3 members
tree: numbers: (p157 | p176)
scan numbers: 2 of 1009 partitions [p157, p176]
  partitioning key (a): (2), (3)
  primary key bounds: (1) <= key <= (3), in 3 ranges
  columns: a, f
  filter: (a = 1 AND f OR a = 2 AND NOT f OR a = 3 AND f IS NULL) AND f IS DISTINCT FROM true
serving: no, its expressions, types or clauses need a kernel over whole columns
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- equal columns
SELECT count(*) FROM numbers WHERE v = w AND v = 1 AND w = 2
/*
execution: none on 0 of 3 members
tree: numbers: none
scan numbers: 0 of 1009 partitions
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- a column that is never NULL
SELECT count(*) FROM numbers WHERE (a = 1 AND n IS NULL OR a = 2 AND n = 1) AND n < 5
/*
execution: local on 1 of 3 members
tree: numbers: (p176)
scan numbers: 1 of 1009 partitions [p176]
  partitioning key (a): (2)
  primary key bounds: (2)
  columns: a, n
  filter: (a = 1 AND n IS NULL OR a = 2 AND n = 1) AND n < 5
serving: yes
*/
----
-- no contradiction: a comparison that is NULL
SELECT count(*) FROM numbers WHERE (v = 1) IS NULL AND v IS NULL
/*
execution: distributed on 3 of 3 members
tree: numbers: all
scan numbers: all 1009 partitions
  because no predicate on the partition key a: compare it with values
  columns: v
  filter: (v = 1) IS NULL AND v IS NULL
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
when distributed: two-stage
*/
----
-- no contradiction: a list with NULL and a row without a value
SELECT count(*) FROM numbers WHERE (v IN [1, NULL]) IS NULL AND v IS NULL
/*
execution: distributed on 3 of 3 members
tree: numbers: all
scan numbers: all 1009 partitions
  because no predicate on the partition key a: compare it with values
  columns: v
  filter: (v IN [1, NULL]) IS NULL AND v IS NULL
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
when distributed: two-stage
*/
----
-- no contradiction: parameters
SELECT count(*) FROM numbers WHERE v = ? AND v = 2
/*
execution: distributed on 3 of 3 members
tree: numbers: all
scan numbers: all 1009 partitions
  because no predicate on the partition key a: compare it with values
  columns: v
  filter: v = $1 AND v = 2
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
when distributed: two-stage
*/
