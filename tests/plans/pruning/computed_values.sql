-- Keys that are computed of parameters.
-- tables: shop
CREATE TABLE days (day DATE, n INTEGER, PRIMARY KEY (day, n)) PARTITION BY HASH (day) PARTITIONS 97;
CREATE TABLE numbers (n BIGINT PRIMARY KEY) PARTITION BY HASH (n) PARTITIONS 97;
----
-- text keys, 1
-- parameters: 'c2'
SELECT * FROM orders WHERE customer_id = upper(?)
/*
execution: local on 1 of 3 members
tree: orders: (upper($1))
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- text keys, 2
-- parameters: 'C'
SELECT * FROM orders WHERE customer_id = ? || '2'
/*
execution: local on 1 of 3 members
tree: orders: ($1 || '2')
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- text keys, 3
-- parameters: 2
SELECT * FROM orders WHERE customer_id = concat('C', ?)
/*
execution: local on 1 of 3 members
tree: orders: (concat('C', CAST($1 AS VARCHAR)))
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- text keys, 4
-- parameters: 7
SELECT * FROM orders WHERE customer_id = CAST(? AS VARCHAR)
/*
execution: local on 1 of 3 members
tree: orders: (CAST($1 AS VARCHAR))
scan orders: 1 of 271 partitions [p261]
  partitioning key (customer_id): ('7')
  primary key bounds: ('7')
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- text keys, 5
-- parameters: 7
SELECT * FROM orders WHERE customer_id = ?::VARCHAR
/*
execution: local on 1 of 3 members
tree: orders: (CAST($1 AS VARCHAR))
scan orders: 1 of 271 partitions [p261]
  partitioning key (customer_id): ('7')
  primary key bounds: ('7')
  columns: customer_id, id, priority, amount, day
serving: yes
*/
----
-- text keys, 6
-- parameters: ' C2 '
SELECT * FROM orders WHERE customer_id = trim(lower(?))
/*
execution: local on 1 of 3 members
tree: orders: (trim(lower($1)))
scan orders: 1 of 271 partitions [p192]
  partitioning key (customer_id): ('c2')
  primary key bounds: ('c2')
  columns: customer_id, id, priority, amount, day
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- text keys, 7
-- parameters: 'xC2y'
SELECT * FROM orders WHERE customer_id = substring(? FROM 2 FOR 2)
/*
execution: local on 1 of 3 members
tree: orders: (substring($1, 2, 2))
scan orders: 1 of 271 partitions [p128]
  partitioning key (customer_id): ('C2')
  primary key bounds: ('C2')
  columns: customer_id, id, priority, amount, day
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- text keys, 8
-- parameters: 42
SELECT * FROM orders WHERE customer_id = 'C' || lpad(CAST(? AS VARCHAR), 5, '0')
/*
execution: local on 1 of 3 members
tree: orders: ('C' || lpad(CAST($1 AS VARCHAR), 5, '0'))
scan orders: 1 of 271 partitions [p3]
  partitioning key (customer_id): ('C00042')
  primary key bounds: ('C00042')
  columns: customer_id, id, priority, amount, day
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- text keys, 9
-- parameters: None
SELECT * FROM orders WHERE customer_id = coalesce(?, 'nobody')
/*
execution: local on 1 of 3 members
tree: orders: (coalesce($1, 'nobody'))
scan orders: 1 of 271 partitions [p157]
  partitioning key (customer_id): ('nobody')
  primary key bounds: ('nobody')
  columns: customer_id, id, priority, amount, day
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- dates, 1
-- parameters: '2024-02-29'
SELECT * FROM days WHERE day = CAST(? AS DATE)
/*
execution: local on 1 of 3 members
tree: days: (CAST($1 AS DATE))
scan days: 1 of 97 partitions [p5]
  partitioning key (day): ('2024-02-29')
  primary key bounds: ('2024-02-29')
  columns: day, n
serving: yes
*/
----
-- dates, 2
-- parameters: datetime(2024, 2, 29, 12, 0)
SELECT * FROM days WHERE day = ?::DATE
/*
execution: local on 1 of 3 members
tree: days: (CAST($1 AS DATE))
scan days: 1 of 97 partitions [p5]
  partitioning key (day): ('2024-02-29')
  primary key bounds: ('2024-02-29')
  columns: day, n
serving: yes
*/
----
-- dates, 3
-- parameters: '2024-01-31'
SELECT * FROM days WHERE day = CAST(? AS DATE) + INTERVAL 1 MONTH
/*
execution: local on 1 of 3 members
tree: days: (CAST($1 AS DATE) + INTERVAL '1 month')
scan days: 1 of 97 partitions [p5]
  partitioning key (day): ('2024-02-29')
  primary key bounds: ('2024-02-29')
  columns: day, n
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- dates, 4
-- parameters: date(2024, 3, 2)
SELECT * FROM days WHERE day = ? - INTERVAL '2 days'
/*
execution: local on 1 of 3 members
tree: days: ($1 - INTERVAL '2 days')
scan days: 1 of 97 partitions [p5]
  partitioning key (day): ('2024-02-29')
  primary key bounds: ('2024-02-29')
  columns: day, n
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- dates, 5
-- parameters: 1
SELECT * FROM days WHERE day = DATE '2024-02-28' + ?
/*
execution: local on 1 of 3 members
tree: days: ('2024-02-28' + $1)
scan days: 1 of 97 partitions [p5]
  partitioning key (day): ('2024-02-29')
  primary key bounds: ('2024-02-29')
  columns: day, n
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- dates, 6
-- parameters: date(2024, 2, 29)
SELECT * FROM days WHERE day = date_trunc('month', ?)
/*
execution: local on 1 of 3 members
tree: days: (date_trunc('month', $1))
scan days: 1 of 97 partitions [p64]
  partitioning key (day): ('2024-02-01')
  primary key bounds: ('2024-02-01')
  columns: day, n
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- numbers, 1
-- parameters: 4
SELECT * FROM numbers WHERE n = ? + 1
/*
execution: local on 1 of 3 members
tree: numbers: ($1 + 1)
scan numbers: 1 of 97 partitions [p1]
  partitioning key (n): (5)
  primary key bounds: (5)
  columns: n
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- numbers, 2
-- parameters: '5'
SELECT * FROM numbers WHERE n = CAST(? AS BIGINT)
/*
execution: local on 1 of 3 members
tree: numbers: (CAST($1 AS BIGINT))
scan numbers: 1 of 97 partitions [p1]
  partitioning key (n): (5)
  primary key bounds: (5)
  columns: n
serving: yes
*/
----
-- numbers, 3
-- parameters: 4
SELECT * FROM numbers WHERE n = -(?) * 2
/*
execution: local on 1 of 3 members
tree: numbers: (-$1 * 2)
scan numbers: 1 of 97 partitions [p63]
  partitioning key (n): (-8)
  primary key bounds: (-8)
  columns: n
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- numbers, 4
-- parameters: -5
SELECT * FROM numbers WHERE n = abs(?)
/*
execution: local on 1 of 3 members
tree: numbers: (abs($1))
scan numbers: 1 of 97 partitions [p1]
  partitioning key (n): (5)
  primary key bounds: (5)
  columns: n
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- numbers, 5
-- parameters: 25
SELECT * FROM numbers WHERE n = ? % 10
/*
execution: local on 1 of 3 members
tree: numbers: ($1 % 10)
scan numbers: 1 of 97 partitions [p1]
  partitioning key (n): (5)
  primary key bounds: (5)
  columns: n
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- numbers, 6
-- parameters: 'abcde'
SELECT * FROM numbers WHERE n = length(?)
/*
execution: local on 1 of 3 members
tree: numbers: (length($1))
scan numbers: 1 of 97 partitions [p1]
  partitioning key (n): (5)
  primary key bounds: (5)
  columns: n
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- numbers, 7
-- parameters: 5
SELECT * FROM numbers WHERE n = nullif(?, 0)
/*
execution: local on 1 of 3 members
tree: numbers: (nullif($1, 0))
scan numbers: 1 of 97 partitions [p1]
  partitioning key (n): (5)
  primary key bounds: (5)
  columns: n
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
----
-- explain says what the value would have to be, 1
-- parameters: 'straße'
SELECT * FROM orders WHERE customer_id = upper(?)
/*
execution: local on 1 of 3 members
tree: orders: (upper($1))
scan orders: 1 of 271 partitions [p215]
  primary key bounds: ('STRAẞE')
  columns: customer_id, id, priority, amount, day
serving: no, its expressions, types or clauses need a kernel over whole columns
*/
