-- What predicates say about the primary key, as bounds: a slice of each sorted partition instead of a scan.
CREATE TABLE plan_clicks (user_id BIGINT, target_id BIGINT, click_id BIGINT, page VARCHAR, PRIMARY KEY (user_id, target_id, click_id)) PARTITION BY RANGE (user_id, target_id) SPLIT AT ((1000, 1000));
CREATE TABLE plan_readings (device VARCHAR, time TIMESTAMP, value DOUBLE, PRIMARY KEY (device, time)) PARTITION BY HASH (device) PARTITIONS 16;
INSERT INTO plan_clicks VALUES (500, 499, 1, 'a'), (500, 500, 1, 'b'), (500, 749, 9, 'c'), (500, 750, 1, 'd'), (999, 5, 5, 'e'), (1000, 499, 1, 'f'), (1000, 999, 2, 'g'), (1000, 1000, 3, 'h'), (2000, 1, 1, 'i');
INSERT INTO plan_readings VALUES ('d1', '2024-01-01 00:00:00', 1), ('d1', '2024-01-01 23:59:59', 2), ('d1', '2024-01-02 00:00:00', 3), ('d2', '2024-01-01 12:00:00', 4)
----
-- bounds on row values are lifted into predicates and pushed back
-- partitions=1 members=1 execution=local
SELECT page FROM plan_clicks WHERE (user_id, target_id) >= (500, 500) AND (user_id, target_id, click_id) < (500, 750, 0)
/*
tree: plan_clicks: (p0)
scan plan_clicks: 1 of 2 partitions [p0]
  partitioning key (user_id, target_id): (500, [500, 750])
  primary key bounds: (500, 500) <= key < (500, 750, 0)
  columns: user_id, target_id, click_id, page; about 1 row
  filter: (user_id, target_id) >= (500, 500) AND (user_id, target_id, click_id) < (500, 750, 0)
serving: no, it does not search plan_clicks by its key: compare the first columns of (user_id, target_id, click_id) with values
*/
----
-- an equality and a span behind it
-- partitions=1 members=1 execution=local
SELECT page FROM plan_clicks WHERE user_id = 500 AND target_id < 700
/*
tree: plan_clicks: (p0)
scan plan_clicks: 1 of 2 partitions [p0]
  partitioning key (user_id, target_id): (500, (-inf, 700))
  primary key bounds: (500) <= key < (500, 700)
  columns: user_id, target_id, page; about 2 rows
serving: no, it reads a range of keys of plan_clicks, for which the native executor alone has a program
*/
----
-- an upper bound on a prefix takes in what extends it
SELECT count(*) FROM plan_clicks WHERE user_id <= 1000
/*
tree: plan_clicks: (p0 | p1)
scan plan_clicks: all 2 partitions
  because the predicates on user_id reach every range of RANGE (user_id, target_id): ask for a narrower range
  primary key bounds: key <= (1000)
  columns: user_id; about 3 rows
serving: no, it reads a range of keys of plan_clicks, for which the native executor alone has a program
when distributed: two-stage
*/
----
-- one device and one day
-- partitions=1 members=1 execution=local
SELECT sum(value) FROM plan_readings WHERE device = 'd1' AND time >= TIMESTAMP '2024-01-01 00:00:00' AND time < TIMESTAMP '2024-01-02 00:00:00'
/*
tree: plan_readings: (p8)
scan plan_readings: 1 of 16 partitions [p8]
  partitioning key (device): ('d1')
  primary key bounds: ('d1', '2024-01-01 00:00:00') <= key < ('d1', '2024-01-02 00:00:00')
  columns: device, time, value; about 2 rows
serving: no, it reads a range of keys of plan_readings, for which the native executor alone has a program
*/
----
-- one day of every device has no bounds, because the device comes first
SELECT count(*) FROM plan_readings WHERE time < TIMESTAMP '2024-01-02 00:00:00'
/*
tree: plan_readings: all
scan plan_readings: all 16 partitions
  because no predicate on the partition key device: compare it with values
  columns: time; about 4 rows
  filter: time < '2024-01-02 00:00:00'
serving: no, it does not search plan_readings by its key: compare the first columns of (device, time) with values
when distributed: two-stage
*/
----
-- branches of an OR are ranges of their own
SELECT count(*) FROM plan_clicks WHERE user_id = 999 OR (user_id = 1000 AND target_id BETWEEN 500 AND 999) OR user_id > 1500
/*
tree: plan_clicks: (p0 | p1)
scan plan_clicks: all 2 partitions
  because the predicates on user_id reach every range of RANGE (user_id, target_id): ask for a narrower range
  primary key bounds: (999) <= key, in 3 ranges
  columns: user_id, target_id; about 6 rows
  filter: (user_id = 999 OR user_id = 1000 AND target_id >= 500 AND target_id <= 999 OR user_id > 1500)
serving: no, it does not search plan_clicks by its key: compare the first columns of (user_id, target_id, click_id) with values
when distributed: two-stage
*/
----
-- few values that can be counted are searched for one by one
SELECT count(*) FROM plan_clicks WHERE user_id BETWEEN 998 AND 1000 AND target_id = 5
/*
tree: plan_clicks: (p0)
scan plan_clicks: 1 of 2 partitions [p0]
  partitioning key (user_id, target_id): ([998, 1000], 5)
  primary key bounds: (998, 5) <= key <= (1000, 5), in 3 ranges
  columns: user_id, target_id; about 0 rows
  filter: user_id >= 998 AND target_id = 5 AND user_id <= 1000
serving: no, it does not search plan_clicks by its key: compare the first columns of (user_id, target_id, click_id) with values
*/
----
-- what the partitions do not hold costs a search in each
SELECT page FROM plan_clicks WHERE user_id > 5000
/*
tree: plan_clicks: (p1)
scan plan_clicks: 1 of 2 partitions [p1]
  primary key bounds: (5000) < key
  columns: user_id, page; about 2 rows
serving: no, it reads a range of keys of plan_clicks, for which the native executor alone has a program
*/
----
-- a contradiction behind the partitioning key needs no partition
-- partitions=0 members=0 execution=none
SELECT value FROM plan_readings WHERE time < TIMESTAMP '2024-01-01 00:00:00' AND time > TIMESTAMP '2024-01-01 00:00:00'
/*
tree: plan_readings: none
scan plan_readings: 0 of 16 partitions
serving: no, it does not search plan_readings by its key: compare the first columns of (device, time) with values
*/
