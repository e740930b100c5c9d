-- What a predicate on one column says about the columns that are equal to it.
CREATE TABLE pairs (a INTEGER, b INTEGER, s SMALLINT, x INTEGER, y INTEGER, t VARCHAR, d DOUBLE, PRIMARY KEY (a, b, s)) PARTITION BY HASH (a) PARTITIONS 101, HASH (b, s) PARTITIONS 103;
CREATE TABLE wide (tenant BIGINT, bucket BIGINT, id BIGINT, PRIMARY KEY (tenant, bucket, id)) PARTITION BY HASH (bucket) PARTITIONS 16;
----
-- what is said of one holds for its equals: another key column
SELECT count(*) FROM pairs WHERE a = b AND b = 5
/*
execution: distributed on 3 of 3 members
tree: pairs: (p412 | p413 | p414 | p415 | p416 | p417 | p418 | p419 | p420 | p421 | p422 | p423 | p424 | p425 | p426 | 88 more)
scan pairs: 103 of 10403 partitions [p412, p413, p414, p415, p416, p417, p418, p419, p420, p421, p422, p423, p424, p425, p426, p427, 87 more]
  partitioning key (a, b, s): (5, 5, *)
  primary key bounds: (5, 5)
  columns: a, b
  filter: a = b
serving: yes
when distributed: two-stage
*/
----
-- what is said of one holds for its equals: a column that is no key
SELECT count(*) FROM pairs WHERE a = x AND x = 5
/*
execution: distributed on 3 of 3 members
tree: pairs: (p412 | p413 | p414 | p415 | p416 | p417 | p418 | p419 | p420 | p421 | p422 | p423 | p424 | p425 | p426 | 88 more)
scan pairs: 103 of 10403 partitions [p412, p413, p414, p415, p416, p417, p418, p419, p420, p421, p422, p423, p424, p425, p426, p427, 87 more]
  partitioning key (a, b, s): (5, *, *)
  primary key bounds: (5)
  columns: a, x
  filter: a = x AND x = 5
serving: yes
when distributed: two-stage
*/
----
-- what is said of one holds for its equals: in any order
SELECT count(*) FROM pairs WHERE x = 5 AND x = a
/*
execution: distributed on 3 of 3 members
tree: pairs: (p412 | p413 | p414 | p415 | p416 | p417 | p418 | p419 | p420 | p421 | p422 | p423 | p424 | p425 | p426 | 88 more)
scan pairs: 103 of 10403 partitions [p412, p413, p414, p415, p416, p417, p418, p419, p420, p421, p422, p423, p424, p425, p426, p427, 87 more]
  partitioning key (a, b, s): (5, *, *)
  primary key bounds: (5)
  columns: a, x
  filter: x = 5 AND x = a
serving: yes
when distributed: two-stage
*/
----
-- what is said of one holds for its equals: a chain
SELECT count(*) FROM pairs WHERE a = x AND x = y AND y IN (5, 6)
/*
execution: distributed on 3 of 3 members
tree: pairs: (p412 | p413 | p414 | p415 | p416 | p417 | p418 | p419 | p420 | p421 | p422 | p423 | p424 | p425 | p426 | 191 more)
scan pairs: 206 of 10403 partitions [p412, p413, p414, p415, p416, p417, p418, p419, p420, p421, p422, p423, p424, p425, p426, p427, 190 more]
  partitioning key (a, b, s): (5, *, *), (6, *, *)
  primary key bounds: (5) <= key <= (6), in 2 ranges
  columns: a, x, y
  filter: a = x AND x = y AND y IN (5, 6)
serving: yes
when distributed: two-stage
*/
----
-- what is said of one holds for its equals: a range
SELECT count(*) FROM pairs WHERE a = x AND x BETWEEN 5 AND 7
/*
execution: distributed on 3 of 3 members
tree: pairs: (p412 | p413 | p414 | p415 | p416 | p417 | p418 | p419 | p420 | p421 | p422 | p423 | p424 | p425 | p426 | 294 more)
scan pairs: 309 of 10403 partitions [p412, p413, p414, p415, p416, p417, p418, p419, p420, p421, p422, p423, p424, p425, p426, p427, 293 more]
  primary key bounds: (5) <= key <= (7)
  columns: a, x
  filter: a = x AND x >= 5 AND x <= 7
serving: no, it reads a range of keys of pairs, for which the native executor alone has a program
when distributed: two-stage
*/
----
-- what is said of one holds for its equals: integers of another width
SELECT count(*) FROM pairs WHERE a = s AND s = 5
/*
execution: distributed on 3 of 3 members
tree: pairs: (p412 | p413 | p414 | p415 | p416 | p417 | p418 | p419 | p420 | p421 | p422 | p423 | p424 | p425 | p426 | 88 more)
scan pairs: 103 of 10403 partitions [p412, p413, p414, p415, p416, p417, p418, p419, p420, p421, p422, p423, p424, p425, p426, p427, 87 more]
  partitioning key (a, b, s): (5, *, 5)
  primary key bounds: (5)
  columns: a, s
  filter: a = s AND s = 5
serving: no, it does not search pairs by its key: compare the first columns of (a, b, s) with values
when distributed: two-stage
*/
----
-- what is said of one holds for its equals: a parameter
-- parameters: 5
SELECT count(*) FROM pairs WHERE a = x AND x = ?
/*
execution: distributed on 3 of 3 members
tree: pairs: (($1, *, *))
scan pairs: 103 of 10403 partitions [p412, p413, p414, p415, p416, p417, p418, p419, p420, p421, p422, p423, p424, p425, p426, p427, 87 more]
  partitioning key (a, b, s): (5, *, *)
  primary key bounds: (5)
  columns: a, x
  filter: a = x AND x = $1
serving: yes
when distributed: two-stage
*/
----
-- what is said of one holds for its equals: a parameter and constants
-- parameters: 6
SELECT count(*) FROM pairs WHERE a = x AND x = ? AND a IN (5, 6)
/*
execution: distributed on 3 of 3 members
tree: pairs: (({5, 6} & $1, *, *))
scan pairs: 103 of 10403 partitions [p3708, p3709, p3710, p3711, p3712, p3713, p3714, p3715, p3716, p3717, p3718, p3719, p3720, p3721, p3722, p3723, 87 more]
  partitioning key (a, b, s): (6, *, *)
  primary key bounds: (6)
  columns: a, x
  filter: a = x AND x = $1 AND a IN (5, 6)
serving: yes
when distributed: two-stage
*/
----
-- what is said of one holds for its equals: what both say
SELECT count(*) FROM pairs WHERE a = x AND x > 5 AND a IN (5, 6, 7)
/*
execution: distributed on 3 of 3 members
tree: pairs: (p3708 | p3709 | p3710 | p3711 | p3712 | p3713 | p3714 | p3715 | p3716 | p3717 | p3718 | p3719 | p3720 | p3721 | p3722 | 191 more)
scan pairs: 206 of 10403 partitions [p3708, p3709, p3710, p3711, p3712, p3713, p3714, p3715, p3716, p3717, p3718, p3719, p3720, p3721, p3722, p3723, 190 more]
  partitioning key (a, b, s): (6, *, *), (7, *, *)
  primary key bounds: (6) <= key <= (7), in 2 ranges
  columns: a, x
  filter: a = x AND x > 5 AND a IN (5, 6, 7)
serving: yes
when distributed: two-stage
*/
----
-- what is said of one holds for its equals: in a branch of OR
SELECT count(*) FROM pairs WHERE (a = x AND x = 5) OR a = 6
/*
execution: distributed on 3 of 3 members
tree: pairs: (p412 | p413 | p414 | p415 | p416 | p417 | p418 | p419 | p420 | p421 | p422 | p423 | p424 | p425 | p426 | 191 more)
scan pairs: 206 of 10403 partitions [p412, p413, p414, p415, p416, p417, p418, p419, p420, p421, p422, p423, p424, p425, p426, p427, 190 more]
  partitioning key (a, b, s): (5, *, *), (6, *, *)
  primary key bounds: (5) <= key <= (6), in 2 ranges
  columns: a, x
  filter: (a = x AND x = 5 OR a = 6)
serving: yes
when distributed: two-stage
*/
----
-- what is said of one holds for its equals: over branches of OR
SELECT count(*) FROM pairs WHERE a = x AND (x = 5 OR x = 6)
/*
execution: distributed on 3 of 3 members
tree: pairs: (p412 | p413 | p414 | p415 | p416 | p417 | p418 | p419 | p420 | p421 | p422 | p423 | p424 | p425 | p426 | 191 more)
scan pairs: 206 of 10403 partitions [p412, p413, p414, p415, p416, p417, p418, p419, p420, p421, p422, p423, p424, p425, p426, p427, 190 more]
  partitioning key (a, b, s): (5, *, *), (6, *, *)
  primary key bounds: (5) <= key <= (6), in 2 ranges
  columns: a, x
  filter: a = x AND (x = 5 OR x = 6)
serving: yes
when distributed: two-stage
*/
----
-- what is said of one holds for its equals: under NOT
SELECT count(*) FROM pairs WHERE NOT (a <> x OR x <> 5)
/*
execution: distributed on 3 of 3 members
tree: pairs: (p412 | p413 | p414 | p415 | p416 | p417 | p418 | p419 | p420 | p421 | p422 | p423 | p424 | p425 | p426 | 88 more)
scan pairs: 103 of 10403 partitions [p412, p413, p414, p415, p416, p417, p418, p419, p420, p421, p422, p423, p424, p425, p426, p427, 87 more]
  partitioning key (a, b, s): (5, *, *)
  primary key bounds: (5)
  columns: a, x
  filter: NOT (a <> x OR x <> 5)
serving: yes
when distributed: two-stage
*/
----
-- what is said of one holds for its equals: inside and outside of a branch
SELECT count(*) FROM pairs WHERE a = x AND (x = y AND y = 5 OR x = 6)
/*
execution: distributed on 3 of 3 members
tree: pairs: (p412 | p413 | p414 | p415 | p416 | p417 | p418 | p419 | p420 | p421 | p422 | p423 | p424 | p425 | p426 | 191 more)
scan pairs: 206 of 10403 partitions [p412, p413, p414, p415, p416, p417, p418, p419, p420, p421, p422, p423, p424, p425, p426, p427, 190 more]
  partitioning key (a, b, s): (5, *, *), (6, *, *)
  primary key bounds: (5) <= key <= (6), in 2 ranges
  columns: a, x, y
  filter: a = x AND (x = y AND y = 5 OR x = 6)
serving: yes
when distributed: two-stage
*/
----
-- what is said of one holds for its equals: itself
SELECT count(*) FROM pairs WHERE a = a AND a = 5
/*
execution: distributed on 3 of 3 members
tree: pairs: (p412 | p413 | p414 | p415 | p416 | p417 | p418 | p419 | p420 | p421 | p422 | p423 | p424 | p425 | p426 | 88 more)
scan pairs: 103 of 10403 partitions [p412, p413, p414, p415, p416, p417, p418, p419, p420, p421, p422, p423, p424, p425, p426, p427, 87 more]
  partitioning key (a, b, s): (5, *, *)
  primary key bounds: (5)
  columns: a
serving: yes
when distributed: two-stage
*/
----
-- what does not follow prunes nothing: no conjunction
SELECT count(*) FROM pairs WHERE a = x OR x = 5
/*
execution: distributed on 3 of 3 members
tree: pairs: all
scan pairs: all 10403 partitions
  because a is compared with x, which is neither a constant nor a parameter: pass its value as a parameter
  columns: a, x
  filter: (a = x OR x = 5)
serving: no, it does not search pairs by its key: compare the first columns of (a, b, s) with values
when distributed: two-stage
*/
----
-- what does not follow prunes nothing: no equality
SELECT count(*) FROM pairs WHERE a <> x AND x = 5
/*
execution: distributed on 3 of 3 members
tree: pairs: all
scan pairs: all 10403 partitions
  because partition key is (a, b, s) but only a is bound: compare b, s with values as well; a <> x excludes values of a: name the values to keep, with = or IN
  primary key bounds: key, in 2 ranges
  columns: a, x
  filter: a <> x AND x = 5
serving: no, it does not search pairs by its key: compare the first columns of (a, b, s) with values
when distributed: two-stage
*/
----
-- what does not follow prunes nothing: another type
SELECT count(*) FROM pairs WHERE a = d AND d = 5
/*
execution: distributed on 3 of 3 members
tree: pairs: all
scan pairs: all 10403 partitions
  because a is compared with d, which is neither a constant nor a parameter: pass its value as a parameter
  columns: a, d
  filter: CAST(a AS DOUBLE) = d AND d = 5
serving: no, it does not search pairs by its key: compare the first columns of (a, b, s) with values
when distributed: two-stage
*/
----
-- what does not follow prunes nothing: nothing is known
SELECT count(*) FROM pairs WHERE a = x
/*
execution: distributed on 3 of 3 members
tree: pairs: all
scan pairs: all 10403 partitions
  because a is compared with x, which is neither a constant nor a parameter: pass its value as a parameter
  columns: a, x
  filter: a = x
serving: no, it does not search pairs by its key: compare the first columns of (a, b, s) with values
when distributed: two-stage
*/
----
-- what does not follow prunes nothing: not FALSE by both
SELECT count(*) FROM pairs WHERE NOT (a = x AND x = 5)
/*
execution: distributed on 3 of 3 members
tree: pairs: all
scan pairs: all 10403 partitions
  because a is compared with x, which is neither a constant nor a parameter: pass its value as a parameter
  columns: a, x
  filter: NOT (a = x AND x = 5)
serving: no, it does not search pairs by its key: compare the first columns of (a, b, s) with values
when distributed: two-stage
*/
----
-- a contradiction between equals is never true, 1
SELECT count(*) FROM pairs WHERE a = x AND x = 5 AND a = 6
/*
execution: none on 0 of 3 members
tree: pairs: none
scan pairs: 0 of 10403 partitions
serving: no, it does not search pairs by its key: compare the first columns of (a, b, s) with values
*/
----
-- a contradiction between equals is never true, 2
SELECT count(*) FROM pairs WHERE a = s AND a = 100000
/*
execution: none on 0 of 3 members
tree: pairs: none
scan pairs: 0 of 10403 partitions
serving: no, it does not search pairs by its key: compare the first columns of (a, b, s) with values
*/
----
-- equal key columns have the values of one list together, not every pair of them
SELECT count(*) FROM pairs WHERE a = b AND a IN (5, 6) AND s = 1
/*
execution: distributed on 2 of 3 members
tree: pairs: (p425 | p3721)
scan pairs: 2 of 10403 partitions [p425, p3721]
  partitioning key (a, b, s): (5, 5, 1), (6, 6, 1)
  primary key bounds: (5, 5, 1) <= key <= (6, 6, 1), in 4 ranges
  columns: a, b, s
  filter: a = b AND a IN (5, 6) AND s = 1
serving: no, it does not search pairs by its key: compare the first columns of (a, b, s) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- equal key columns: the same of parameters
-- parameters: 5, 6
SELECT count(*) FROM pairs WHERE a = b AND a IN (?, ?) AND s = 1
/*
execution: distributed on 2 of 3 members
tree: pairs: (({$1, $2}, a, 1))
scan pairs: 2 of 10403 partitions [p425, p3721]
  partitioning key (a, b, s): (5, 5, 1), (6, 6, 1)
  primary key bounds: (5, 5, 1) <= key <= (6, 6, 1), in 4 ranges
  columns: a, b, s
  filter: a = b AND a IN ($1, $2) AND s = 1
serving: no, it does not search pairs by its key: compare the first columns of (a, b, s) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- equal key columns in one branch of an OR
SELECT count(*) FROM pairs WHERE (a = b AND a BETWEEN 5 AND 7 OR a = 1 AND b = 2) AND s = 1
/*
execution: distributed on 3 of 3 members
tree: pairs: (p425 | p3129 | p3721 | p4538)
scan pairs: 4 of 10403 partitions [p425, p3129, p3721, p4538]
  partitioning key (a, b, s): (1, 2, 1), ([5, 7], [5, 7], 1)
  primary key bounds: (1, 2, 1) <= key <= (7, 7, 1), in 10 ranges
  columns: a, b, s
  filter: (a = b AND a >= 5 AND a <= 7 OR a = 1 AND b = 2) AND s = 1
serving: no, it does not search pairs by its key: compare the first columns of (a, b, s) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- equal key columns, and a bound on one of them from elsewhere
SELECT count(*) FROM pairs WHERE (a = b AND a IN (5, 6, 7) OR a = 1 AND b = 8) AND b > 6 AND s = 1
/*
execution: local on 1 of 3 members
tree: pairs: (p3125 | p4538)
scan pairs: 2 of 10403 partitions [p3125, p4538]
  partitioning key (a, b, s): (1, 8, 1), (7, 7, 1)
  primary key bounds: (1, 8, 1) <= key <= (7, 7, 1), in 4 ranges
  columns: a, b, s
  filter: (a = b AND a IN (5, 6, 7) OR a = 1 AND b = 8) AND b > 6 AND s = 1
serving: no, it does not search pairs by its key: compare the first columns of (a, b, s) with values
*/
----
-- carried: an integer parameter into an expression
-- parameters: 35
SELECT count(*) FROM wide WHERE tenant = ? AND bucket = tenant % 16
/*
execution: local on 1 of 3 members
tree: wide: ($1 % 16)
scan wide: 1 of 16 partitions [p11]
  partitioning key (bucket): (3)
  primary key bounds: (35, 3)
  columns: tenant, bucket
  filter: bucket = tenant % 16
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- carried: not a number with a fraction, which several integers may equal
-- parameters: 35.0
SELECT count(*) FROM wide WHERE tenant = ? AND bucket = tenant % 16
/*
execution: distributed on 3 of 3 members
tree: wide: all
scan wide: all 16 partitions
  because bucket is compared with tenant % 16, which is neither a constant nor a parameter: pass its value as a parameter
  primary key bounds: (35)
  columns: tenant, bucket
  filter: CAST(tenant AS DOUBLE) = $1 AND bucket = tenant % 16
serving: no, it does not search wide by its key: compare the first columns of (tenant, bucket, id) with values
when distributed: two-stage
*/
