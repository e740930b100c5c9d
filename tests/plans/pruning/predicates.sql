-- What each form of predicate keeps, with constants and with parameters alike.
-- tables: shop
CREATE TABLE numbers (a INTEGER, b INTEGER, v INTEGER, PRIMARY KEY (a, b)) PARTITION BY HASH (a) PARTITIONS 1009;
CREATE TABLE pairs (a INTEGER, b INTEGER, v INTEGER, PRIMARY KEY (a, b)) PARTITION BY HASH (a, b) PARTITIONS 1009;
CREATE TABLE flags (f BOOLEAN, t TINYINT, v INTEGER, PRIMARY KEY (f, t)) PARTITION BY HASH (f) PARTITIONS 64, HASH (t) PARTITIONS 1024;
CREATE TABLE texts (b VARCHAR PRIMARY KEY, v INTEGER) PARTITION BY RANGE (b) SPLIT AT ('a', 'abc', 'abd', 'b', 'é');
CREATE TABLE codes (c INTEGER PRIMARY KEY, v INTEGER) PARTITION BY RANGE (c) (PARTITION VALUE = 1, PARTITION VALUE = 2, PARTITION 10 <= VALUES < 20);
CREATE TABLE events (ts TIMESTAMP PRIMARY KEY, v INTEGER) PARTITION BY RANGE (ts) SPLIT AT (TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-02 00:00:00', TIMESTAMP '2024-02-01 00:00:00');
CREATE TABLE days (d DATE PRIMARY KEY, v INTEGER) PARTITION BY HASH (d) PARTITIONS 1009;
----
-- integers: not equal
SELECT count(*) FROM numbers WHERE a IN (1, 2, 3) AND a <> 2
/*
execution: distributed on 2 of 3 members
tree: numbers: (p129 | p157)
scan numbers: 2 of 1009 partitions [p129, p157]
  partitioning key (a): (1), (3)
  primary key bounds: (1) <= key <= (3), in 2 ranges
  columns: a
  filter: a IN (1, 2, 3) AND a <> 2
serving: yes
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: not equal to a parameter
-- parameters: 2
SELECT count(*) FROM numbers WHERE a IN (1, 2, 3) AND a <> ?
/*
execution: distributed on 2 of 3 members
tree: numbers: ({1, 2, 3} & not $1)
scan numbers: 2 of 1009 partitions [p129, p157]
  partitioning key (a): (1), (3)
  primary key bounds: (1) <= key <= (3), in 2 ranges
  columns: a
  filter: a IN (1, 2, 3) AND a <> $1
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: not equal to NULL
-- parameters: None
SELECT count(*) FROM numbers WHERE a IN (1, 2, 3) AND a <> ?
/*
execution: none on 0 of 3 members
tree: numbers: ({1, 2, 3} & not $1)
scan numbers: 0 of 1009 partitions
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- integers: not an equality
SELECT count(*) FROM numbers WHERE a IN (1, 2, 3) AND NOT (a = 2)
/*
execution: distributed on 2 of 3 members
tree: numbers: (p129 | p157)
scan numbers: 2 of 1009 partitions [p129, p157]
  partitioning key (a): (1), (3)
  primary key bounds: (1) <= key <= (3), in 2 ranges
  columns: a
  filter: a IN (1, 2, 3) AND NOT a = 2
serving: yes
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: NOT IN
-- parameters: 3
SELECT count(*) FROM numbers WHERE a IN (1, 2, 3) AND a NOT IN (2, ?)
/*
execution: local on 1 of 3 members
tree: numbers: ({1, 2, 3} & not {2, $1})
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1)
  columns: a
  filter: a IN (1, 2, 3) AND NOT a IN (2, $1)
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- integers: NOT IN with NULL
SELECT count(*) FROM numbers WHERE a IN (1, 2, 3) AND a NOT IN (2, NULL)
/*
execution: none on 0 of 3 members
tree: numbers: none
scan numbers: 0 of 1009 partitions
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- integers: NOT IN with a parameter that is NULL
-- parameters: None
SELECT count(*) FROM numbers WHERE a IN (1, 2, 3) AND a NOT IN (2, ?)
/*
execution: none on 0 of 3 members
tree: numbers: ({1, 2, 3} & not {2, $1})
scan numbers: 0 of 1009 partitions
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- integers: NOT BETWEEN
SELECT count(*) FROM numbers WHERE a BETWEEN 1 AND 5 AND a NOT BETWEEN 2 AND 4
/*
execution: distributed on 2 of 3 members
tree: numbers: (p129 | p985)
scan numbers: 2 of 1009 partitions [p129, p985]
  primary key bounds: (1) <= key <= (5), in 2 ranges
  columns: a
  filter: a >= 1 AND NOT (a >= 2 AND a <= 4) AND a <= 5
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: NOT BETWEEN with NULL below
-- parameters: None
SELECT count(*) FROM numbers WHERE a BETWEEN 1 AND 5 AND a NOT BETWEEN ? AND 4
/*
execution: local on 1 of 3 members
tree: numbers: ([1, 5] & (4, inf) or < $1)
scan numbers: 1 of 1009 partitions [p985]
  primary key bounds: (4) < key <= (5)
  columns: a
  filter: a >= 1 AND NOT (a >= $1 AND a <= 4) AND a <= 5
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- integers: NOT BETWEEN of parameters
-- parameters: 1, 5, 3, 9
SELECT count(*) FROM numbers WHERE a BETWEEN ? AND ? AND a NOT BETWEEN ? AND ?
/*
execution: distributed on 2 of 3 members
tree: numbers: ([$1, $2] & < $3 or > $4)
scan numbers: 2 of 1009 partitions [p129, p176]
  primary key bounds: (1) <= key < (3)
  columns: a
  filter: a >= $1 AND NOT (a >= $3 AND a <= $4) AND a <= $2
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: not not equal
SELECT count(*) FROM numbers WHERE a IN (1, 2) AND NOT (a <> 1)
/*
execution: local on 1 of 3 members
tree: numbers: (p129)
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1)
  columns: a
  filter: NOT a <> 1
serving: yes
*/
----
-- integers: IS NOT DISTINCT FROM
SELECT count(*) FROM numbers WHERE a IS NOT DISTINCT FROM 5
/*
execution: local on 1 of 3 members
tree: numbers: (p985)
scan numbers: 1 of 1009 partitions [p985]
  partitioning key (a): (5)
  primary key bounds: (5)
  columns: a
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- integers: IS NOT DISTINCT FROM NULL
-- parameters: None
SELECT count(*) FROM numbers WHERE a IS NOT DISTINCT FROM ?
/*
execution: none on 0 of 3 members
tree: numbers: ($1)
scan numbers: 0 of 1009 partitions
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- integers: IS DISTINCT FROM
-- parameters: 2
SELECT count(*) FROM numbers WHERE a IN (1, 2) AND a IS DISTINCT FROM ?
/*
execution: local on 1 of 3 members
tree: numbers: ({1, 2} & not $1)
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1)
  columns: a
  filter: a IN (1, 2) AND a IS DISTINCT FROM $1
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- integers: IS DISTINCT FROM NULL
-- parameters: None
SELECT count(*) FROM numbers WHERE a IN (1, 2) AND a IS DISTINCT FROM ?
/*
execution: distributed on 2 of 3 members
tree: numbers: ({1, 2} & not $1)
scan numbers: 2 of 1009 partitions [p129, p176]
  partitioning key (a): (1), (2)
  primary key bounds: (1) <= key <= (2), in 2 ranges
  columns: a
  filter: a IN (1, 2) AND a IS DISTINCT FROM $1
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: IS NULL
SELECT count(*) FROM numbers WHERE a IS NULL
/*
execution: none on 0 of 3 members
tree: numbers: none
scan numbers: 0 of 1009 partitions
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- integers: IS NOT NULL
SELECT count(*) FROM numbers WHERE a = 1 AND a IS NOT NULL
/*
execution: local on 1 of 3 members
tree: numbers: (p129)
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1)
  columns: a
  filter: a IS NOT NULL
serving: yes
*/
----
-- integers: IS TRUE
SELECT count(*) FROM numbers WHERE (a = 1) IS TRUE
/*
execution: local on 1 of 3 members
tree: numbers: (p129)
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1)
  columns: a
  filter: (a = 1) IS NOT DISTINCT FROM true
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- integers: IS FALSE
SELECT count(*) FROM numbers WHERE (a <> 1) IS FALSE
/*
execution: local on 1 of 3 members
tree: numbers: (p129)
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1)
  columns: a
  filter: (a <> 1) IS NOT DISTINCT FROM false
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- integers: IS NOT TRUE
SELECT count(*) FROM numbers WHERE (a <> 1) IS NOT TRUE
/*
execution: local on 1 of 3 members
tree: numbers: (p129)
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1)
  columns: a
  filter: (a <> 1) IS DISTINCT FROM true
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- integers: IS NOT FALSE
SELECT count(*) FROM numbers WHERE (a = 1 OR a = 2) IS NOT FALSE
/*
execution: distributed on 2 of 3 members
tree: numbers: (p129 | p176)
scan numbers: 2 of 1009 partitions [p129, p176]
  partitioning key (a): (1), (2)
  primary key bounds: (1) <= key <= (2), in 2 ranges
  columns: a
  filter: (a = 1 OR a = 2) IS DISTINCT FROM false
serving: no, its expressions, types or clauses need a kernel over whole columns
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: a predicate that is never NULL
SELECT count(*) FROM numbers WHERE (a = 1) IS NULL
/*
execution: none on 0 of 3 members
tree: numbers: none
scan numbers: 0 of 1009 partitions
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- integers: compared with TRUE
SELECT count(*) FROM numbers WHERE (a = 1) = TRUE
/*
execution: local on 1 of 3 members
tree: numbers: (p129)
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1)
  columns: a
  filter: (a = 1) = true
serving: yes
*/
----
-- integers: compared with FALSE
SELECT count(*) FROM numbers WHERE FALSE = (a <> 1)
/*
execution: local on 1 of 3 members
tree: numbers: (p129)
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1)
  columns: a
  filter: false = (a <> 1)
serving: yes
*/
----
-- integers: not FALSE
SELECT count(*) FROM numbers WHERE (a IN (1, 2)) <> FALSE
/*
execution: distributed on 2 of 3 members
tree: numbers: (p129 | p176)
scan numbers: 2 of 1009 partitions [p129, p176]
  partitioning key (a): (1), (2)
  primary key bounds: (1) <= key <= (2), in 2 ranges
  columns: a
  filter: (a IN (1, 2)) <> false
serving: yes
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: shifted
SELECT count(*) FROM numbers WHERE a + 1 = 5
/*
execution: local on 1 of 3 members
tree: numbers: (p940)
scan numbers: 1 of 1009 partitions [p940]
  partitioning key (a): (4)
  primary key bounds: (4)
  columns: a
  filter: a + 1 = 5
serving: yes
*/
----
-- integers: shifted down
-- parameters: 5
SELECT count(*) FROM numbers WHERE a - 2 IN (1, ?)
/*
execution: distributed on 2 of 3 members
tree: numbers: (key - 2 IN 1, $1)
scan numbers: 2 of 1009 partitions [p157, p555]
  partitioning key (a): (3), (7)
  primary key bounds: (3) <= key <= (7), in 2 ranges
  columns: a
  filter: a - 2 IN (1, $1)
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: negated
SELECT count(*) FROM numbers WHERE -a BETWEEN 1 AND 2
/*
execution: distributed on 2 of 3 members
tree: numbers: (p208 | p906)
scan numbers: 2 of 1009 partitions [p208, p906]
  primary key bounds: (-2) <= key <= (-1)
  columns: a
  filter: -a >= 1 AND -a <= 2
serving: no, it reads a range of keys of numbers, for which the native executor alone has a program
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: mirrored
SELECT count(*) FROM numbers WHERE 10 - a > 7 AND a >= 0
/*
execution: distributed on 3 of 3 members
tree: numbers: (p37 | p129 | p176)
scan numbers: 3 of 1009 partitions [p37, p129, p176]
  primary key bounds: (0) <= key < (3)
  columns: a
  filter: 10 - a > 7
serving: no, it reads a range of keys of numbers, for which the native executor alone has a program
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: shifted, and compared with a fraction
SELECT count(*) FROM numbers WHERE a + 1 = 1.5
/*
execution: distributed on 3 of 3 members
tree: numbers: all
scan numbers: all 1009 partitions
  because a is a INTEGER, and a + 1 = 1.5 would cast it: write '1.5' as a INTEGER
  columns: a
  filter: a + 1 = 1.5
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
when distributed: two-stage
*/
----
-- integers: widened
SELECT count(*) FROM numbers WHERE CAST(a AS BIGINT) = 5
/*
execution: local on 1 of 3 members
tree: numbers: (p985)
scan numbers: 1 of 1009 partitions [p985]
  partitioning key (a): (5)
  primary key bounds: (5)
  columns: a
serving: yes
*/
----
-- integers: widened beyond its type
-- parameters: 7
SELECT count(*) FROM numbers WHERE a::BIGINT IN (?, 3000000000)
/*
execution: local on 1 of 3 members
tree: numbers: ($1)
scan numbers: 1 of 1009 partitions [p555]
  partitioning key (a): (7)
  primary key bounds: (7)
  columns: a
  filter: a IN ($1, 3000000000)
serving: yes
*/
----
-- integers: cast to text
SELECT count(*) FROM numbers WHERE CAST(a AS VARCHAR) = '5'
/*
execution: local on 1 of 3 members
tree: numbers: (p985)
scan numbers: 1 of 1009 partitions [p985]
  partitioning key (a): (5)
  primary key bounds: (5)
  columns: a
  filter: CAST(a AS VARCHAR) = '5'
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- integers: narrowed
SELECT count(*) FROM numbers WHERE CAST(a AS SMALLINT) = 5
/*
execution: distributed on 3 of 3 members
tree: numbers: all
scan numbers: all 1009 partitions
  because a is cast in CAST(a AS SMALLINT) = 5: compare the bare column with a INTEGER
  columns: a
  filter: CAST(a AS SMALLINT) = 5
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
when distributed: two-stage
*/
----
-- integers: not one to one
SELECT count(*) FROM numbers WHERE a % 2 = 1
/*
execution: distributed on 3 of 3 members
tree: numbers: all
scan numbers: all 1009 partitions
  because a is part of an expression in a % 2 = 1: compare the bare column
  columns: a
  filter: a % 2 = 1
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
when distributed: two-stage
*/
----
-- integers: a row
SELECT count(*) FROM numbers WHERE (a, b) = (1, 2)
/*
execution: local on 1 of 3 members
tree: numbers: (p129)
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1, 2)
  columns: a, b
  filter: (a, b) = (1, 2)
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- integers: a row on the right
SELECT count(*) FROM numbers WHERE (1, 2) = (a, b)
/*
execution: local on 1 of 3 members
tree: numbers: (p129)
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1, 2)
  columns: a, b
  filter: (1, 2) = (a, b)
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- integers: rows with a column that is no key
SELECT count(*) FROM numbers WHERE row(a, v) IN ((1, 2), (3, 4))
/*
execution: distributed on 2 of 3 members
tree: numbers: (p129 | p157)
scan numbers: 2 of 1009 partitions [p129, p157]
  partitioning key (a): (1), (3)
  primary key bounds: (1) <= key <= (3), in 2 ranges
  columns: a, v
  filter: (a, v) IN ((1, 2), (3, 4))
serving: no, its expressions, types or clauses need a kernel over whole columns
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: rows in order
SELECT count(*) FROM numbers WHERE a >= 0 AND (a, b) < (2, 5)
/*
execution: distributed on 3 of 3 members
tree: numbers: (p37 | p129 | p176)
scan numbers: 3 of 1009 partitions [p37, p129, p176]
  primary key bounds: (0) <= key < (2, 5)
  columns: a, b
  filter: a >= 0 AND (a, b) < (2, 5)
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: rows of parameters in order
-- parameters: 2, 5
SELECT count(*) FROM numbers WHERE a >= 0 AND (a, b) <= (?, ?)
/*
execution: distributed on 3 of 3 members
tree: numbers: ([0, inf) & < $1 or $1)
scan numbers: 3 of 1009 partitions [p37, p129, p176]
  primary key bounds: (0) <= key <= (2, 5)
  columns: a, b
  filter: a >= 0 AND (a, b) <= ($1, $2)
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: between rows
SELECT count(*) FROM numbers WHERE (a, b) BETWEEN (1, 9) AND (3, 0)
/*
execution: distributed on 3 of 3 members
tree: numbers: (p129 | p157 | p176)
scan numbers: 3 of 1009 partitions [p129, p157, p176]
  primary key bounds: (1, 9) <= key <= (3, 0)
  columns: a, b
  filter: (a, b) >= (1, 9) AND (a, b) <= (3, 0)
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: a row with a text
SELECT count(*) FROM numbers WHERE (a, b) = ('1', 2)
/*
execution: local on 1 of 3 members
tree: numbers: (p129)
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1, 2)
  columns: a, b
  filter: (CAST(a AS VARCHAR), b) = ('1', 2)
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- integers: a row with a parameter that is a text
-- parameters: '1', 2
SELECT count(*) FROM numbers WHERE (a, b) = (?, ?)
/*
execution: local on 1 of 3 members
tree: numbers: (CAST(key AS VARCHAR) = $1)
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1, 2)
  columns: a, b
  filter: (CAST(a AS VARCHAR), b) = ($1, $2)
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- integers: NULL is the greatest field
-- parameters: None
SELECT count(*) FROM numbers WHERE (a, b) < (?, 2)
/*
execution: distributed on 3 of 3 members
tree: numbers: (< CAST($1 AS INTEGER) or CAST($1 AS INTEGER))
scan numbers: all 1009 partitions
  because a is a INTEGER, and comparing it with NULL would cast it: pass a INTEGER
  columns: a, b
  filter: (a, b) < (CAST($1 AS INTEGER), 2)
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
when distributed: two-stage
*/
----
-- integers: NULL equals no key
SELECT count(*) FROM numbers WHERE (a, b) = (NULL, 2)
/*
execution: none on 0 of 3 members
tree: numbers: none
scan numbers: 0 of 1009 partitions
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- integers: a NULL among the rows
SELECT count(*) FROM numbers WHERE (a, b) IN ((1, 2), NULL)
/*
execution: local on 1 of 3 members
tree: numbers: (p129)
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1, 2)
  columns: a, b
  filter: (a, b) IN ((1, 2), NULL)
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- integers: itself
SELECT count(*) FROM numbers WHERE a = a AND a = 1
/*
execution: local on 1 of 3 members
tree: numbers: (p129)
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1)
  columns: a
serving: yes
*/
----
-- integers: not itself
SELECT count(*) FROM numbers WHERE a <> a
/*
execution: none on 0 of 3 members
tree: numbers: none
scan numbers: 0 of 1009 partitions
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- rows: constants
SELECT count(*) FROM pairs WHERE (a, b) IN ((1, 2), (3, 4))
/*
execution: distributed on 2 of 3 members
tree: pairs: (p163 | p273)
scan pairs: 2 of 1009 partitions [p163, p273]
  partitioning key (a, b): (1, 2), (3, 4)
  primary key bounds: (1, 2) <= key <= (3, 4), in 2 ranges
  columns: a, b
  filter: (a, b) IN ((1, 2), (3, 4))
serving: no, it does not search pairs by its key: compare the first columns of (a, b) with values
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- rows: a row of parameters
-- parameters: 1, 2
SELECT count(*) FROM pairs WHERE (a, b) IN ((?, ?), (3, 4))
/*
execution: distributed on 2 of 3 members
tree: pairs: (p273 | ($1, $2))
scan pairs: 2 of 1009 partitions [p163, p273]
  partitioning key (a, b): (1, 2), (3, 4)
  primary key bounds: (1, 2) <= key <= (3, 4), in 2 ranges
  columns: a, b
  filter: (a, b) IN (($1, $2), (3, 4))
serving: no, it does not search pairs by its key: compare the first columns of (a, b) with values
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- rows: in another order
SELECT count(*) FROM pairs WHERE (b, a) = (2, 1)
/*
execution: local on 1 of 3 members
tree: pairs: (p163)
scan pairs: 1 of 1009 partitions [p163]
  partitioning key (a, b): (1, 2)
  primary key bounds: (1, 2)
  columns: a, b
  filter: (b, a) = (2, 1)
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- rows: NOT IN
SELECT count(*) FROM pairs WHERE (a, b) IN ((1, 2), (3, 4)) AND (a, b) NOT IN ((1, 2))
/*
execution: local on 1 of 3 members
tree: pairs: (p273)
scan pairs: 1 of 1009 partitions [p273]
  partitioning key (a, b): (3, 4)
  primary key bounds: (3, 4)
  columns: a, b
  filter: (a, b) IN ((1, 2), (3, 4)) AND NOT (a, b) IN ((1, 2))
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- rows: not a row
-- parameters: 3, 4
SELECT count(*) FROM pairs WHERE (a, b) IN ((1, 2), (3, 4)) AND (a, b) <> (?, ?)
/*
execution: local on 1 of 3 members
tree: pairs: ((1 & not $1, 2) | (1, 2 & not $2) | (3 & not $1, 4) | (3, 4 & not $2))
scan pairs: 1 of 1009 partitions [p163]
  partitioning key (a, b): (1, 2)
  primary key bounds: (1, 2)
  columns: a, b
  filter: (a, b) IN ((1, 2), (3, 4)) AND (a, b) <> ($1, $2)
serving: no, it does not search pairs by its key: compare the first columns of (a, b) with values
*/
----
-- rows: bounds
SELECT count(*) FROM pairs WHERE (a, b) >= (1, 1) AND (a, b) <= (1, 3)
/*
execution: distributed on 3 of 3 members
tree: pairs: (p163 | p503 | p582)
scan pairs: 3 of 1009 partitions [p163, p503, p582]
  partitioning key (a, b): (1, [1, 3])
  primary key bounds: (1, 1) <= key <= (1, 3)
  columns: a, b
  filter: (a, b) >= (1, 1) AND (a, b) <= (1, 3)
serving: no, it reads a range of keys of pairs, for which the native executor alone has a program
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- rows: a bound over lists
SELECT count(*) FROM pairs WHERE a IN (1, 2) AND b IN (1, 2) AND (a, b) > (1, 2)
/*
execution: distributed on 2 of 3 members
tree: pairs: (p273 | p967)
scan pairs: 2 of 1009 partitions [p273, p967]
  partitioning key (a, b): (2, 1), (2, 2)
  primary key bounds: (2, 1) <= key <= (2, 2), in 2 ranges
  columns: a, b
  filter: a IN (1, 2) AND b IN (1, 2) AND (a, b) > (1, 2)
serving: no, its expressions, types or clauses need a kernel over whole columns
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- rows: a text in another row is a text for all
SELECT count(*) FROM pairs WHERE (a, b) IN ((1, 2), ('3', 4))
/*
execution: distributed on 3 of 3 members
tree: pairs: all
scan pairs: all 1009 partitions
  because partition key is (a, b) but only b is bound: compare a with values as well; a is part of a row value in (CAST(a AS VARCHAR), b) IN ((1, 2), ('3', 4)) that may be NULL, or that is not compared with constants: compare each column by itself
  columns: a, b
  filter: (CAST(a AS VARCHAR), b) IN ((1, 2), ('3', 4))
serving: no, it does not search pairs by its key: compare the first columns of (a, b) with values
when distributed: two-stage
*/
----
-- rows: as is a parameter
-- parameters: '3'
SELECT count(*) FROM pairs WHERE (a, b) IN ((1, 2), (?, 4))
/*
execution: distributed on 3 of 3 members
tree: pairs: all
scan pairs: all 1009 partitions
  because partition key is (a, b) but only b is bound: compare a with values as well; a is part of a row value in (CAST(a AS VARCHAR), b) IN ((1, 2), ($1, 4)) that may be NULL, or that is not compared with constants: compare each column by itself
  columns: a, b
  filter: (CAST(a AS VARCHAR), b) IN ((1, 2), ($1, 4))
serving: no, it does not search pairs by its key: compare the first columns of (a, b) with values
when distributed: two-stage
*/
----
-- few values: a bare column
SELECT count(*) FROM flags WHERE f
/*
execution: distributed on 3 of 3 members
tree: flags: (p41984 | p41985 | p41986 | p41987 | p41988 | p41989 | p41990 | p41991 | p41992 | p41993 | p41994 | p41995 | p41996 | p41997 | p41998 | 1009 more)
scan flags: 1024 of 65536 partitions [p41984, p41985, p41986, p41987, p41988, p41989, p41990, p41991, p41992, p41993, p41994, p41995, p41996, p41997, p41998, p41999, 1008 more]
  partitioning key (f, t): (true, *)
  primary key bounds: (true)
  columns: f
  filter: f
serving: yes
when distributed: two-stage
*/
----
-- few values: NOT
SELECT count(*) FROM flags WHERE NOT f
/*
execution: distributed on 3 of 3 members
tree: flags: (p52224 | p52225 | p52226 | p52227 | p52228 | p52229 | p52230 | p52231 | p52232 | p52233 | p52234 | p52235 | p52236 | p52237 | p52238 | 1009 more)
scan flags: 1024 of 65536 partitions [p52224, p52225, p52226, p52227, p52228, p52229, p52230, p52231, p52232, p52233, p52234, p52235, p52236, p52237, p52238, p52239, 1008 more]
  partitioning key (f, t): (false, *)
  primary key bounds: (false)
  columns: f
  filter: NOT f
serving: yes
when distributed: two-stage
*/
----
-- few values: not equal
SELECT count(*) FROM flags WHERE f <> true
/*
execution: distributed on 3 of 3 members
tree: flags: (p52224 | p52225 | p52226 | p52227 | p52228 | p52229 | p52230 | p52231 | p52232 | p52233 | p52234 | p52235 | p52236 | p52237 | p52238 | 1009 more)
scan flags: 1024 of 65536 partitions [p52224, p52225, p52226, p52227, p52228, p52229, p52230, p52231, p52232, p52233, p52234, p52235, p52236, p52237, p52238, p52239, 1008 more]
  partitioning key (f, t): (false, *)
  primary key bounds: (false)
  columns: f
  filter: f <> true
serving: yes
when distributed: two-stage
*/
----
-- few values: not equal to a parameter
-- parameters: False
SELECT count(*) FROM flags WHERE f <> ?
/*
execution: distributed on 3 of 3 members
tree: flags: ((not $1, *))
scan flags: 1024 of 65536 partitions [p41984, p41985, p41986, p41987, p41988, p41989, p41990, p41991, p41992, p41993, p41994, p41995, p41996, p41997, p41998, p41999, 1008 more]
  primary key bounds: key, in 2 ranges
  columns: f
  filter: f <> $1
serving: no, it does not search flags by its key: compare the first columns of (f, t) with values
when distributed: two-stage
*/
----
-- few values: IS TRUE
SELECT count(*) FROM flags WHERE f IS TRUE
/*
execution: distributed on 3 of 3 members
tree: flags: (p41984 | p41985 | p41986 | p41987 | p41988 | p41989 | p41990 | p41991 | p41992 | p41993 | p41994 | p41995 | p41996 | p41997 | p41998 | 1009 more)
scan flags: 1024 of 65536 partitions [p41984, p41985, p41986, p41987, p41988, p41989, p41990, p41991, p41992, p41993, p41994, p41995, p41996, p41997, p41998, p41999, 1008 more]
  partitioning key (f, t): (true, *)
  primary key bounds: (true)
  columns: f
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: two-stage
*/
----
-- few values: IS NOT TRUE
SELECT count(*) FROM flags WHERE f IS NOT TRUE
/*
execution: distributed on 3 of 3 members
tree: flags: (p52224 | p52225 | p52226 | p52227 | p52228 | p52229 | p52230 | p52231 | p52232 | p52233 | p52234 | p52235 | p52236 | p52237 | p52238 | 1009 more)
scan flags: 1024 of 65536 partitions [p52224, p52225, p52226, p52227, p52228, p52229, p52230, p52231, p52232, p52233, p52234, p52235, p52236, p52237, p52238, p52239, 1008 more]
  partitioning key (f, t): (false, *)
  primary key bounds: (false)
  columns: f
  filter: f IS DISTINCT FROM true
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: two-stage
*/
----
-- few values: equal
SELECT count(*) FROM flags WHERE f = false
/*
execution: distributed on 3 of 3 members
tree: flags: (p52224 | p52225 | p52226 | p52227 | p52228 | p52229 | p52230 | p52231 | p52232 | p52233 | p52234 | p52235 | p52236 | p52237 | p52238 | 1009 more)
scan flags: 1024 of 65536 partitions [p52224, p52225, p52226, p52227, p52228, p52229, p52230, p52231, p52232, p52233, p52234, p52235, p52236, p52237, p52238, p52239, 1008 more]
  partitioning key (f, t): (false, *)
  primary key bounds: (false)
  columns: f
serving: yes
when distributed: two-stage
*/
----
-- few values: in order
SELECT count(*) FROM flags WHERE f > false
/*
execution: distributed on 3 of 3 members
tree: flags: (p41984 | p41985 | p41986 | p41987 | p41988 | p41989 | p41990 | p41991 | p41992 | p41993 | p41994 | p41995 | p41996 | p41997 | p41998 | 1009 more)
scan flags: 1024 of 65536 partitions [p41984, p41985, p41986, p41987, p41988, p41989, p41990, p41991, p41992, p41993, p41994, p41995, p41996, p41997, p41998, p41999, 1008 more]
  primary key bounds: (false) < key
  columns: f
serving: no, it reads a range of keys of flags, for which the native executor alone has a program
when distributed: two-stage
*/
----
-- few values: a contradiction
SELECT count(*) FROM flags WHERE f AND NOT f
/*
execution: none on 0 of 3 members
tree: flags: none
scan flags: 0 of 65536 partitions
serving: no, it does not search flags by its key: compare the first columns of (f, t) with values
*/
----
-- few values: the last values of a type
SELECT count(*) FROM flags WHERE f AND t > 125
/*
execution: distributed on 2 of 3 members
tree: flags: (p42393 | p42884)
scan flags: 2 of 65536 partitions [p42393, p42884]
  partitioning key (f, t): (true, (125, inf))
  primary key bounds: (true, 125) < key <= (true)
  columns: f, t
  filter: f
serving: no, it reads a range of keys of flags, for which the native executor alone has a program
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- few values: the first value of a type
SELECT count(*) FROM flags WHERE t + 1 = -127
/*
execution: distributed on 3 of 3 members
tree: flags: (p430 | p1454 | p2478 | p3502 | p4526 | p5550 | p6574 | p7598 | p8622 | p9646 | p10670 | p11694 | p12718 | p13742 | p14766 | 49 more)
scan flags: 64 of 65536 partitions [p430, p1454, p2478, p3502, p4526, p5550, p6574, p7598, p8622, p9646, p10670, p11694, p12718, p13742, p14766, p15790, 48 more]
  partitioning key (f, t): (*, -128)
  columns: t
  filter: t + 1 = -127
serving: no, it does not search flags by its key: compare the first columns of (f, t) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- texts: a prefix
SELECT count(*) FROM texts WHERE b LIKE 'abc%'
/*
execution: local on 1 of 3 members
tree: texts: (p2)
scan texts: 1 of 6 partitions [p2]
  primary key bounds: ('abc') <= key < ('abd')
  columns: b
  filter: b LIKE 'abc%'
serving: no, it reads a range of keys of texts, for which the native executor alone has a program
*/
----
-- texts: a prefix that is a parameter
-- parameters: 'abc%'
SELECT count(*) FROM texts WHERE b LIKE ?
/*
execution: local on 1 of 3 members
tree: texts: (LIKE $1)
scan texts: 1 of 6 partitions [p2]
  primary key bounds: ('abc') <= key < ('abd')
  columns: b
  filter: b LIKE $1
serving: no, it does not search texts by its key: compare the first columns of (b) with values
*/
----
-- texts: NULL
-- parameters: None
SELECT count(*) FROM texts WHERE b LIKE ?
/*
execution: none on 0 of 3 members
tree: texts: (LIKE $1)
scan texts: 0 of 6 partitions
serving: no, it does not search texts by its key: compare the first columns of (b) with values
*/
----
-- texts: a pattern with a prefix
SELECT count(*) FROM texts WHERE b LIKE 'abc_d%'
/*
execution: local on 1 of 3 members
tree: texts: (p2)
scan texts: 1 of 6 partitions [p2]
  primary key bounds: ('abc') <= key < ('abd')
  columns: b
  filter: b LIKE 'abc_d%'
serving: no, it reads a range of keys of texts, for which the native executor alone has a program
*/
----
-- texts: a pattern without wildcards
SELECT count(*) FROM texts WHERE b LIKE 'abcd'
/*
execution: local on 1 of 3 members
tree: texts: (p2)
scan texts: 1 of 6 partitions [p2]
  partitioning key (b): ('abcd')
  primary key bounds: ('abcd')
  columns: b
  filter: b LIKE 'abcd'
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- texts: an escaped wildcard
SELECT count(*) FROM texts WHERE b LIKE 'a!%%' ESCAPE '!'
/*
execution: local on 1 of 3 members
tree: texts: (p1)
scan texts: 1 of 6 partitions [p1]
  primary key bounds: ('a%') <= key < ('a&')
  columns: b
  filter: like_escape(b, 'a!%%', '!')
serving: no, it reads a range of keys of texts, for which the native executor alone has a program
*/
----
-- texts: not a prefix
SELECT count(*) FROM texts WHERE b NOT LIKE 'a%'
/*
execution: distributed on 3 of 3 members
tree: texts: (p0 | p4 | p5)
scan texts: 3 of 6 partitions [p0, p4, p5]
  primary key bounds: key, in 2 ranges
  columns: b
  filter: b NOT LIKE 'a%'
serving: no, it does not search texts by its key: compare the first columns of (b) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- texts: not a prefix that is a parameter
-- parameters: 'a%'
SELECT count(*) FROM texts WHERE NOT b LIKE ?
/*
execution: distributed on 3 of 3 members
tree: texts: (NOT LIKE $1)
scan texts: 3 of 6 partitions [p0, p4, p5]
  primary key bounds: key, in 2 ranges
  columns: b
  filter: NOT b LIKE $1
serving: no, it does not search texts by its key: compare the first columns of (b) with values
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- texts: not a pattern
SELECT count(*) FROM texts WHERE b NOT LIKE 'a%b'
/*
execution: distributed on 3 of 3 members
tree: texts: all
scan texts: all 6 partitions
  because NOT LIKE excludes values of b: name the values to keep, with = or IN; b is matched by a pattern that does not bound it: compare it with values, or with LIKE 'prefix%'
  columns: b
  filter: b NOT LIKE 'a%b'
serving: no, it does not search texts by its key: compare the first columns of (b) with values
when distributed: two-stage
*/
----
-- texts: a wildcard first
SELECT count(*) FROM texts WHERE b LIKE '%c'
/*
execution: distributed on 3 of 3 members
tree: texts: all
scan texts: all 6 partitions
  because the pattern of b LIKE '%c' begins with a wildcard: begin it with the first characters of b
  columns: b
  filter: b LIKE '%c'
serving: no, it does not search texts by its key: compare the first columns of (b) with values
when distributed: two-stage
*/
----
-- texts: starts_with
SELECT count(*) FROM texts WHERE starts_with(b, 'abc')
/*
execution: local on 1 of 3 members
tree: texts: (p2)
scan texts: 1 of 6 partitions [p2]
  primary key bounds: ('abc') <= key < ('abd')
  columns: b
  filter: starts_with(b, 'abc')
serving: no, it reads a range of keys of texts, for which the native executor alone has a program
*/
----
-- texts: the operator
-- parameters: 'abc'
SELECT count(*) FROM texts WHERE b ^@ ?
/*
execution: local on 1 of 3 members
tree: texts: ($1...)
scan texts: 1 of 6 partitions [p2]
  primary key bounds: ('abc') <= key < ('abd')
  columns: b
  filter: b ^@ $1
serving: no, it does not search texts by its key: compare the first columns of (b) with values
*/
----
-- texts: not prefix
SELECT count(*) FROM texts WHERE NOT prefix(b, 'a')
/*
execution: distributed on 3 of 3 members
tree: texts: (p0 | p4 | p5)
scan texts: 3 of 6 partitions [p0, p4, p5]
  primary key bounds: key, in 2 ranges
  columns: b
  filter: NOT prefix(b, 'a')
serving: no, it does not search texts by its key: compare the first columns of (b) with values
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- texts: ILIKE
SELECT count(*) FROM texts WHERE b ILIKE 'abc%'
/*
execution: distributed on 3 of 3 members
tree: texts: (p0 | p1 | p2)
scan texts: 3 of 6 partitions [p0, p1, p2]
  primary key bounds: ('ABC') <= key < ('abd'), in 8 ranges
  columns: b
  filter: b ILIKE 'abc%'
serving: no, it does not search texts by its key: compare the first columns of (b) with values
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- texts: a character of two bytes
SELECT count(*) FROM texts WHERE b LIKE 'é%'
/*
execution: local on 1 of 3 members
tree: texts: (p5)
scan texts: 1 of 6 partitions [p5]
  primary key bounds: ('é') <= key < ('ê')
  columns: b
  filter: b LIKE 'é%'
serving: no, it reads a range of keys of texts, for which the native executor alone has a program
*/
----
-- texts: nothing is left
SELECT count(*) FROM texts WHERE b <> 'a' AND b >= 'a' AND b <= 'a'
/*
execution: none on 0 of 3 members
tree: texts: none
scan texts: 0 of 6 partitions
serving: no, it does not search texts by its key: compare the first columns of (b) with values
*/
----
-- texts: another collation
SELECT count(*) FROM texts WHERE b COLLATE NOCASE = 'ABC'
/*
execution: distributed on 3 of 3 members
tree: texts: all
scan texts: all 6 partitions
  because b is wrapped in lower(): compare the bare column
  columns: b
  filter: lower(b) = lower('ABC')
serving: no, it does not search texts by its key: compare the first columns of (b) with values
when distributed: gather (a collation decides which texts are equal, and stages do not exchange it: leave out COLLATE)
*/
----
-- single values: not the value of a partition
SELECT count(*) FROM codes WHERE c <> 1
/*
execution: distributed on 2 of 3 members
tree: codes: (p1 | p2)
scan codes: 2 of 3 partitions [p1, p2]
  primary key bounds: key, in 2 ranges
  columns: c
  filter: c <> 1
serving: no, it does not search codes by its key: compare the first columns of (c) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- single values: a parameter
-- parameters: 2
SELECT count(*) FROM codes WHERE c <> ?
/*
execution: distributed on 2 of 3 members
tree: codes: (not $1)
scan codes: 2 of 3 partitions [p0, p2]
  primary key bounds: key, in 2 ranges
  columns: c
  filter: c <> $1
serving: no, it does not search codes by its key: compare the first columns of (c) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- single values: NOT IN
SELECT count(*) FROM codes WHERE c NOT IN (1, 2)
/*
execution: local on 1 of 3 members
tree: codes: (p2)
scan codes: 1 of 3 partitions [p2]
  primary key bounds: key, in 3 ranges
  columns: c
  filter: NOT c IN (1, 2)
serving: no, it does not search codes by its key: compare the first columns of (c) with values
*/
----
-- single values: NOT BETWEEN
SELECT count(*) FROM codes WHERE c NOT BETWEEN 1 AND 19
/*
execution: none on 0 of 3 members
tree: codes: none
scan codes: 0 of 3 partitions
serving: no, it does not search codes by its key: compare the first columns of (c) with values
*/
----
-- single values: a value beside
SELECT count(*) FROM codes WHERE c NOT BETWEEN 2 AND 18
/*
execution: distributed on 2 of 3 members
tree: codes: (p0 | p2)
scan codes: 2 of 3 partitions [p0, p2]
  primary key bounds: key, in 2 ranges
  columns: c
  filter: NOT (c >= 2 AND c <= 18)
serving: no, it does not search codes by its key: compare the first columns of (c) with values
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- single values: with an order
SELECT count(*) FROM codes WHERE c < 10 AND c <> 1
/*
execution: local on 1 of 3 members
tree: codes: (p1)
scan codes: 1 of 3 partitions [p1]
  primary key bounds: key < (10), in 2 ranges
  columns: c
  filter: c < 10 AND c <> 1
serving: no, it does not search codes by its key: compare the first columns of (c) with values
*/
----
-- instants: a day
SELECT count(*) FROM events WHERE CAST(ts AS DATE) = DATE '2024-01-01'
/*
execution: local on 1 of 3 members
tree: events: (p1)
scan events: 1 of 4 partitions [p1]
  primary key bounds: ('2024-01-01 00:00:00') <= key < ('2024-01-02 00:00:00')
  columns: ts
  filter: CAST(ts AS DATE) = '2024-01-01'
serving: no, it reads a range of keys of events, for which the native executor alone has a program
*/
----
-- instants: a day that is a parameter
-- parameters: date(2024, 1, 1)
SELECT count(*) FROM events WHERE ts::DATE = ?
/*
execution: local on 1 of 3 members
tree: events: (CAST(key AS DATE) = $1)
scan events: 1 of 4 partitions [p1]
  primary key bounds: ('2024-01-01 00:00:00') <= key < ('2024-01-02 00:00:00')
  columns: ts
  filter: CAST(ts AS DATE) = $1
serving: no, it does not search events by its key: compare the first columns of (ts) with values
*/
----
-- instants: up to a day
SELECT count(*) FROM events WHERE CAST(ts AS DATE) <= DATE '2023-12-31'
/*
execution: local on 1 of 3 members
tree: events: (p0)
scan events: 1 of 4 partitions [p0]
  primary key bounds: key < ('2024-01-01 00:00:00')
  columns: ts
  filter: CAST(ts AS DATE) <= '2023-12-31'
serving: no, it reads a range of keys of events, for which the native executor alone has a program
*/
----
-- instants: not a day
SELECT count(*) FROM events WHERE CAST(ts AS DATE) <> DATE '2024-01-01'
/*
execution: distributed on 2 of 3 members
tree: events: (p0 | p2 | p3)
scan events: 3 of 4 partitions [p0, p2, p3]
  primary key bounds: key, in 2 ranges
  columns: ts
  filter: CAST(ts AS DATE) <> '2024-01-01'
serving: no, it does not search events by its key: compare the first columns of (ts) with values
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- instants: truncated
SELECT count(*) FROM events WHERE date_trunc('day', ts) = TIMESTAMP '2024-01-01 00:00:00'
/*
execution: local on 1 of 3 members
tree: events: (p1)
scan events: 1 of 4 partitions [p1]
  primary key bounds: ('2024-01-01 00:00:00') <= key < ('2024-01-02 00:00:00')
  columns: ts
  filter: date_trunc('day', ts) = '2024-01-01 00:00:00'
serving: no, it reads a range of keys of events, for which the native executor alone has a program
*/
----
-- instants: a month
-- parameters: datetime(2024, 1, 1, 0, 0)
SELECT count(*) FROM events WHERE date_trunc('month', ts) = ?
/*
execution: distributed on 2 of 3 members
tree: events: (date_trunc(month, key) = $1)
scan events: 2 of 4 partitions [p1, p2]
  primary key bounds: ('2024-01-01 00:00:00') <= key < ('2024-02-01 00:00:00')
  columns: ts
  filter: date_trunc('month', ts) = $1
serving: no, it does not search events by its key: compare the first columns of (ts) with values
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- instants: no day starts at noon
SELECT count(*) FROM events WHERE date_trunc('day', ts) = TIMESTAMP '2024-01-01 12:00:00'
/*
execution: none on 0 of 3 members
tree: events: none
scan events: 0 of 4 partitions
serving: no, it does not search events by its key: compare the first columns of (ts) with values
*/
----
-- instants: another unit
SELECT count(*) FROM events WHERE date_trunc('decade', ts) = TIMESTAMP '2020-01-01 00:00:00'
/*
execution: distributed on 3 of 3 members
tree: events: all
scan events: all 4 partitions
  because ts is wrapped in date_trunc(): compare the bare column
  columns: ts
  filter: date_trunc('decade', ts) = '2020-01-01 00:00:00'
serving: no, it does not search events by its key: compare the first columns of (ts) with values
when distributed: two-stage
*/
----
-- days: the day before
SELECT count(*) FROM days WHERE d + 1 = DATE '2024-01-03'
/*
execution: local on 1 of 3 members
tree: days: (p606)
scan days: 1 of 1009 partitions [p606]
  partitioning key (d): ('2024-01-02')
  primary key bounds: ('2024-01-02')
  columns: d
  filter: d + 1 = '2024-01-03'
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- days: a week
-- parameters: datetime(2024, 1, 1, 0, 0)
SELECT count(*) FROM days WHERE date_trunc('week', d) = ?
/*
execution: distributed on 3 of 3 members
tree: days: (date_trunc(week, key) = $1)
scan days: 7 of 1009 partitions [p12, p91, p107, p398, p515, p606, p820]
  primary key bounds: ('2024-01-01') <= key < ('2024-01-08')
  columns: d
  filter: date_trunc('week', d) = $1
serving: no, it does not search days by its key: compare the first columns of (d) with values
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- what may hold for rows of an outer join: IS NULL
SELECT count(*) FROM orders o LEFT JOIN numbers n ON o.id = n.a WHERE n.a IS NULL
/*
execution: distributed on 3 of 3 members
tree: orders: all; numbers: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id
scan numbers AS n: all 1009 partitions
  because a IS NULL can hold for rows that the LEFT JOIN fills with NULLs: use an inner join, or a condition that NULL does not satisfy; o.id = a only joins the key: compare either side with a value
  columns: a
serving: no, it does not find the rows that it joins by their keys
when distributed: in 3 stages
  x0 scan n: at the members over n, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- what may hold for rows of an outer join: IS NOT DISTINCT FROM NULL
SELECT count(*) FROM orders o LEFT JOIN numbers n ON o.id = n.a WHERE n.a IS NOT DISTINCT FROM NULL
/*
execution: distributed on 3 of 3 members
tree: orders: all; numbers: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id
scan numbers AS n: all 1009 partitions
  because a IS NOT DISTINCT FROM NULL can hold for rows that the LEFT JOIN fills with NULLs: use an inner join, or a condition that NULL does not satisfy; o.id = a only joins the key: compare either side with a value
  columns: a
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan n: at the members over n, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- what may hold for rows of an outer join: IS DISTINCT FROM
SELECT count(*) FROM orders o LEFT JOIN numbers n ON o.id = n.a WHERE n.a IS DISTINCT FROM 5
/*
execution: distributed on 3 of 3 members
tree: orders: all; numbers: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id
scan numbers AS n: all 1009 partitions
  because a IS DISTINCT FROM 5 can hold for rows that the LEFT JOIN fills with NULLs: use an inner join, or a condition that NULL does not satisfy; o.id = a only joins the key: compare either side with a value
  columns: a
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan n: at the members over n, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- what may hold for rows of an outer join: IS NOT TRUE
SELECT count(*) FROM orders o LEFT JOIN numbers n ON o.id = n.a WHERE (n.a = 5) IS NOT TRUE
/*
execution: distributed on 3 of 3 members
tree: orders: all; numbers: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id
scan numbers AS n: all 1009 partitions
  because (a = 5) IS DISTINCT FROM true can hold for rows that the LEFT JOIN fills with NULLs: use an inner join, or a condition that NULL does not satisfy; o.id = a only joins the key: compare either side with a value
  columns: a
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan n: at the members over n, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- what may hold for rows of an outer join: a predicate that is NULL
SELECT count(*) FROM orders o LEFT JOIN numbers n ON o.id = n.a WHERE (n.a = 5) IS NULL
/*
execution: distributed on 3 of 3 members
tree: orders: all; numbers: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id
scan numbers AS n: all 1009 partitions
  because (a = 5) IS NULL can hold for rows that the LEFT JOIN fills with NULLs: use an inner join, or a condition that NULL does not satisfy; o.id = a only joins the key: compare either side with a value
  columns: a
serving: no, it does not find the rows that it joins by their keys
when distributed: in 3 stages
  x0 scan n: at the members over n, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- what may hold for rows of an outer join: a row that differs
SELECT count(*) FROM orders o LEFT JOIN numbers n ON o.id = n.a WHERE (n.a, n.b) <> (1, 2)
/*
execution: distributed on 3 of 3 members
tree: orders: all; numbers: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id
scan numbers AS n: all 1009 partitions
  because (a, b) <> (1, 2) can hold for rows that the LEFT JOIN fills with NULLs: use an inner join, or a condition that NULL does not satisfy; o.id = a only joins the key: compare either side with a value
  columns: a, b
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan n: at the members over n, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- what may hold for rows of an outer join: a row that is greater, as NULL is
SELECT count(*) FROM orders o LEFT JOIN numbers n ON o.id = n.a WHERE (n.a, n.b) > (1, 2)
/*
execution: distributed on 3 of 3 members
tree: orders: all; numbers: all
scan orders AS o: all 271 partitions
  because no predicate on the partition key customer_id: compare it with values
  columns: id
scan numbers AS n: all 1009 partitions
  because (a, b) > (1, 2) can hold for rows that the LEFT JOIN fills with NULLs: use an inner join, or a condition that NULL does not satisfy; o.id = a only joins the key: compare either side with a value
  columns: a, b
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan n: at the members over n, to every member
  x1 join o: at the members over o, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- integers: a multiple
SELECT count(*) FROM numbers WHERE a * 2 = 4
/*
execution: local on 1 of 3 members
tree: numbers: (p176)
scan numbers: 1 of 1009 partitions [p176]
  partitioning key (a): (2)
  primary key bounds: (2)
  columns: a
  filter: a * 2 = 4
serving: yes
*/
----
-- integers: no multiple
SELECT count(*) FROM numbers WHERE 3 * a - 1 = 4
/*
execution: none on 0 of 3 members
tree: numbers: none
scan numbers: 0 of 1009 partitions
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- integers: bounds of a multiple, whose order is the other one
SELECT count(*) FROM numbers WHERE -2 * a BETWEEN -7 AND -3
/*
execution: distributed on 2 of 3 members
tree: numbers: (p157 | p176)
scan numbers: 2 of 1009 partitions [p157, p176]
  primary key bounds: (2) <= key <= (3)
  columns: a
  filter: -2 * a >= -7 AND -2 * a <= -3
serving: no, it reads a range of keys of numbers, for which the native executor alone has a program
scatter: each owner is asked once, and the client combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: a multiple is compared with a parameter
-- parameters: 4
SELECT count(*) FROM numbers WHERE a * 2 + 2 = ?
/*
execution: local on 1 of 3 members
tree: numbers: (key * 2 + 2 = $1)
scan numbers: 1 of 1009 partitions [p129]
  partitioning key (a): (1)
  primary key bounds: (1)
  columns: a
  filter: a * 2 + 2 = $1
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- integers: times 0 says nothing of the column
SELECT count(*) FROM numbers WHERE a * 0 = 0
/*
execution: distributed on 3 of 3 members
tree: numbers: all
scan numbers: all 1009 partitions
  because a is part of an expression in a * 0 = 0: compare the bare column
  columns: a
  filter: a * 0 = 0
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
when distributed: two-stage
*/
----
-- integers: abs
SELECT count(*) FROM numbers WHERE abs(a) = 3
/*
execution: distributed on 2 of 3 members
tree: numbers: (p157 | p993)
scan numbers: 2 of 1009 partitions [p157, p993]
  partitioning key (a): (-3), (3)
  primary key bounds: (-3) <= key <= (3), in 2 ranges
  columns: a
  filter: abs(a) = 3
serving: no, its expressions, types or clauses need a kernel over whole columns
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: abs of a parameter's value
-- parameters: 3
SELECT count(*) FROM numbers WHERE abs(a) = ?
/*
execution: distributed on 2 of 3 members
tree: numbers: (abs(key) = $1)
scan numbers: 2 of 1009 partitions [p157, p993]
  partitioning key (a): (-3), (3)
  primary key bounds: (-3) <= key <= (3), in 2 ranges
  columns: a
  filter: abs(a) = $1
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: abs is never negative
SELECT count(*) FROM numbers WHERE abs(a) = -3
/*
execution: none on 0 of 3 members
tree: numbers: none
scan numbers: 0 of 1009 partitions
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
*/
----
-- integers: cast to DOUBLE
SELECT count(*) FROM numbers WHERE a::DOUBLE IN (3, 4.5::DOUBLE)
/*
execution: local on 1 of 3 members
tree: numbers: (p157)
scan numbers: 1 of 1009 partitions [p157]
  partitioning key (a): (3)
  primary key bounds: (3)
  columns: a
  filter: CAST(a AS DOUBLE) IN (3, 4.5)
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- integers: an expression of another column whose value is known
SELECT count(*) FROM numbers WHERE a = v + 1 AND v = 3
/*
execution: local on 1 of 3 members
tree: numbers: (p940)
scan numbers: 1 of 1009 partitions [p940]
  partitioning key (a): (4)
  primary key bounds: (4)
  columns: a, v
  filter: a = v + 1 AND v = 3
serving: yes
*/
----
-- integers: the same of a parameter
-- parameters: 3
SELECT count(*) FROM numbers WHERE v + 1 = a AND v = ?
/*
execution: local on 1 of 3 members
tree: numbers: ($1 + 1)
scan numbers: 1 of 1009 partitions [p940]
  partitioning key (a): (4)
  primary key bounds: (4)
  columns: a, v
  filter: v + 1 = a AND v = $1
serving: yes
*/
----
-- integers: in one branch of an OR
SELECT count(*) FROM numbers WHERE (a IN (v, v * 2) OR a = 9) AND v = 3
/*
execution: distributed on 2 of 3 members
tree: numbers: (p157 | p594 | p939)
scan numbers: 3 of 1009 partitions [p157, p594, p939]
  partitioning key (a): (3), (6), (9)
  primary key bounds: (3) <= key <= (9), in 3 ranges
  columns: a, v
  filter: (a IN (v, v * 2) OR a = 9) AND v = 3
serving: no, its expressions, types or clauses need a kernel over whole columns
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- integers: the value of the other column is not known
SELECT count(*) FROM numbers WHERE a = v + 1 AND (v = 3 OR b = 1)
/*
execution: distributed on 3 of 3 members
tree: numbers: all
scan numbers: all 1009 partitions
  because a is compared with v + 1, which is neither a constant nor a parameter: pass its value as a parameter
  columns: a, b, v
  filter: a = v + 1 AND (v = 3 OR b = 1)
serving: no, it does not search numbers by its key: compare the first columns of (a, b) with values
when distributed: two-stage
*/
----
-- texts: a regular expression without regard to case
SELECT count(*) FROM texts WHERE regexp_full_match(b, 'ab', 'i')
/*
execution: distributed on 2 of 3 members
tree: texts: (p0 | p1)
scan texts: 2 of 6 partitions [p0, p1]
  partitioning key (b): ('AB'), ('Ab'), ('aB'), ('ab')
  primary key bounds: ('AB') <= key <= ('ab'), in 4 ranges
  columns: b
  filter: regexp_full_match(b, 'ab', 'i')
serving: no, its expressions, types or clauses need a kernel over whole columns
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
----
-- texts: options of a regular expression, 3
SELECT count(*) FROM texts WHERE regexp_full_match(b, 'ab', 'il')
/*
execution: distributed on 2 of 3 members
tree: texts: (p0 | p1)
scan texts: 2 of 6 partitions [p0, p1]
  partitioning key (b): ('AB'), ('Ab'), ('aB'), ('ab')
  primary key bounds: ('AB') <= key <= ('ab'), in 4 ranges
  columns: b
  filter: regexp_full_match(b, 'ab', 'il')
serving: no, its expressions, types or clauses need a kernel over whole columns
scatter: each owner is asked once, and one combines their rows; no job, unless they are many
when distributed: two-stage
*/
