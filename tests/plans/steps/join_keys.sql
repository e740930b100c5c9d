-- Keys of joins that are found first: where they are, what they prune, and when they are not worth it.
-- rows: clients 20000, distinct: id 20000, region 2000, nation 2000, rank 20000
-- rows: sales 4000000, distinct: client 20000, n 4000000, day 300, place 900
-- rows: visits 4000000, distinct: client 20000, place 100, n 4000000
-- rows: nations 2000, distinct: id 2000, name 2000
-- rows: log 4000000, distinct: id 4000000, client 20000
CREATE TABLE clients (id BIGINT PRIMARY KEY, region VARCHAR, nation INTEGER, rank INTEGER) PARTITION BY HASH (id) PARTITIONS 64;
CREATE TABLE sales (client BIGINT, n BIGINT, day DATE, place INTEGER, PRIMARY KEY (client, n)) PARTITION BY HASH (client) PARTITIONS 64;
CREATE TABLE visits (client BIGINT, place INTEGER, n BIGINT, PRIMARY KEY (client, place, n)) PARTITION BY HASH (client, place) PARTITIONS 64;
CREATE TABLE nations (id INTEGER PRIMARY KEY, name VARCHAR) REPLICATED;
CREATE TABLE log (id BIGINT PRIMARY KEY, client BIGINT) PARTITION BY HASH (id) PARTITIONS 64;
----
-- keys are found first: an inner join
SELECT * FROM clients c JOIN sales s ON s.client = c.id WHERE c.region = 'north'
/*
execution: distributed on at most 3 of 3 members
tree: clients: ($1[]); sales: ($1[])
rewrites: join_keys_first
scan clients AS c: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
scan sales AS s: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: client, n, day, place; about 4,000,000 rows
co-located: c, s
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join c: at the members over c, s, to the coordinator
  final: at the coordinator over x0
runs first, for $1[]: SELECT DISTINCT "id" FROM "clients" WHERE ("region" = 'north')
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, region; about 10 rows
    filter: region = 'north'
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- keys are found first: a comma and WHERE
SELECT * FROM clients c, sales s WHERE s.client = c.id AND c.region = 'north'
/*
execution: distributed on at most 3 of 3 members
tree: clients: ($1[]); sales: ($1[])
rewrites: join_keys_first
scan clients AS c: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
scan sales AS s: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: client, n, day, place; about 4,000,000 rows
co-located: c, s
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join c: at the members over c, s, to the coordinator
  final: at the coordinator over x0
runs first, for $1[]: SELECT DISTINCT "id" FROM "clients" WHERE ("region" = 'north')
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, region; about 10 rows
    filter: region = 'north'
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- keys are found first: the side that a left join fills with NULL
SELECT * FROM clients c LEFT JOIN sales s ON s.client = c.id WHERE c.region = 'north'
/*
execution: distributed on at most 3 of 3 members
tree: clients: all; sales: ($1[])
rewrites: join_keys_first
scan clients AS c: all 64 partitions
  because no predicate on the partition key id: compare it with values
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
scan sales AS s: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: client, n, day, place; about 4,000,000 rows
co-located: c, s
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join c: at the members over c, s, to the coordinator
  final: at the coordinator over x0
runs first, for $1[]: SELECT DISTINCT "id" FROM "clients" WHERE ("region" = 'north')
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, region; about 10 rows
    filter: region = 'north'
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- keys are found first: a right join
SELECT * FROM sales s RIGHT JOIN clients c ON s.client = c.id WHERE c.region = 'north'
/*
execution: distributed on at most 3 of 3 members
tree: sales: ($1[]); clients: all
rewrites: join_keys_first
scan sales AS s: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: client, n, day, place; about 4,000,000 rows
scan clients AS c: all 64 partitions
  because no predicate on the partition key id: compare it with values
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
co-located: s, c
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join c: at the members over c, s, to the coordinator
  final: at the coordinator over x0
runs first, for $1[]: SELECT DISTINCT "id" FROM "clients" WHERE ("region" = 'north')
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, region; about 10 rows
    filter: region = 'north'
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- keys are found first: a semi join
SELECT * FROM sales s SEMI JOIN clients c ON s.client = c.id AND c.region = 'north'
/*
execution: distributed on at most 3 of 3 members
tree: sales: ($1[]); clients: ($1[])
rewrites: join_keys_first
scan sales AS s: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: client, n, day, place; about 4,000,000 rows
scan clients AS c: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
co-located: s, c
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join s: at the members over s, c, to the coordinator
  final: at the coordinator over x0
runs first, for $1[]: SELECT DISTINCT "id" FROM "clients" WHERE ("region" = 'north')
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, region; about 10 rows
    filter: region = 'north'
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- keys are found first: the right side of an anti join
SELECT * FROM clients c ANTI JOIN sales s ON s.client = c.id WHERE c.region = 'north'
/*
execution: distributed on at most 3 of 3 members
tree: clients: all; sales: ($1[])
rewrites: join_keys_first
scan clients AS c: all 64 partitions
  because no predicate on the partition key id: compare it with values
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
scan sales AS s: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: client, n, day, place; about 4,000,000 rows
co-located: c, s
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join c: at the members over c, s, to the coordinator
  final: at the coordinator over x0
runs first, for $1[]: SELECT DISTINCT "id" FROM "clients" WHERE ("region" = 'north')
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, region; about 10 rows
    filter: region = 'north'
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- keys are found first: EXISTS
SELECT * FROM sales s WHERE EXISTS (SELECT 1 FROM clients c WHERE c.id = s.client AND c.region = 'north')
/*
execution: distributed on at most 3 of 3 members
tree: sales: ($1[]); clients: ($1[])
rewrites: join_keys_first
scan sales AS s: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: client, n, day, place; about 4,000,000 rows
scan clients AS c: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: id, region; about 10 rows
  filter: region = 'north'
co-located: s, c
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join s: at the members over s, c, to the coordinator
  final: at the coordinator over x0
runs first, for $1[]: SELECT DISTINCT "id" FROM "clients" WHERE ("region" = 'north')
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, region; about 10 rows
    filter: region = 'north'
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- keys are found first: a correlated scalar subquery
SELECT c.id, (SELECT max(day) FROM sales s WHERE s.client = c.id) FROM clients c WHERE c.region = 'north'
/*
execution: distributed on at most 3 of 3 members
tree: sales: ($1[]); clients: all
rewrites: join_keys_first
scan sales AS s: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: client, day; about 4,000,000 rows
scan clients AS c: all 64 partitions
  because no predicate on the partition key id: compare it with values
  columns: id, region; about 10 rows
  filter: region = 'north'
co-located: s, c
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join c: at the members over c, s, to the coordinator
  final: at the coordinator over x0
runs first, for $1[]: SELECT DISTINCT "id" FROM "clients" WHERE ("region" = 'north')
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, region; about 10 rows
    filter: region = 'north'
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- keys are found first: a common table expression
WITH c AS (SELECT id FROM clients WHERE region = 'north') SELECT * FROM c JOIN sales s ON s.client = c.id
/*
execution: distributed on at most 3 of 3 members
tree: clients: ($1[]); sales: ($1[])
rewrites: join_keys_first
scan clients: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: id, region; about 10 rows
  filter: region = 'north'
scan sales AS s: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: client, n, day, place; about 4,000,000 rows
co-located: clients, s
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join clients: at the members over clients, s, to the coordinator
  final: at the coordinator over x0
runs first, for $1[]: SELECT DISTINCT "id" FROM "clients" WHERE ("region" = 'north')
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, region; about 10 rows
    filter: region = 'north'
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- keys are found first: above GROUP BY
SELECT * FROM (SELECT client, count(*) FROM sales GROUP BY client) s JOIN clients c ON s.client = c.id WHERE c.region = 'north'
/*
execution: distributed on at most 3 of 3 members
tree: sales: ($1[]); clients: ($1[])
rewrites: join_keys_first
scan sales: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: client; about 4,000,000 rows
scan clients AS c: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
co-located: sales, c
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join sales: at the members over sales, c, to the coordinator
  final: at the coordinator over x0
runs first, for $1[]: SELECT DISTINCT "id" FROM "clients" WHERE ("region" = 'north')
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, region; about 10 rows
    filter: region = 'north'
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- keys are found first: a row value IN a subquery
SELECT * FROM sales s WHERE (s.client, s.place) IN (SELECT id, nation FROM clients WHERE region = 'north')
/*
execution: distributed on at most 3 of 3 members
tree: sales: ($1[]); clients: ($1[])
rewrites: join_keys_first
scan sales AS s: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: client, n, day, place; about 4,000,000 rows
scan clients: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: id, region, nation; about 10 rows
  filter: region = 'north'
co-located: s, clients
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join s: at the members over s, clients, to the coordinator
  final: at the coordinator over x0
runs first, for $1[]: SELECT DISTINCT "id" FROM "clients" WHERE ("region" = 'north')
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, region; about 10 rows
    filter: region = 'north'
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- keys are found first: a key of two columns
SELECT * FROM visits v JOIN clients c ON v.client = c.id AND v.place = c.rank WHERE c.region = 'north'
/*
execution: distributed on at most 3 of 3 members
tree: visits: (($1[], $2[])); clients: ($1[])
rewrites: join_keys_first
scan visits AS v: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of (($1[], $2[])) they select
  columns: client, place, n; about 4,000,000 rows
scan clients AS c: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
serving: no, queries run first whose values prune it
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join v: at the members over v, x0, to the coordinator
  final: at the coordinator over x1
runs first, for $1[], $2[]: SELECT DISTINCT "id", "rank" FROM "clients" WHERE ("region" = 'north')
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, region, rank; about 10 rows
    filter: region = 'north'
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- keys are found first: no further than the keys are few
SELECT * FROM clients c JOIN sales s ON s.client = c.id JOIN log l ON l.id = s.n WHERE c.region = 'north'
/*
execution: distributed on at most 3 of 3 members
tree: clients: ($1[]); sales: ($1[]); log: all
rewrites: join_keys_first
scan clients AS c: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
scan sales AS s: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: client, n, day, place; about 4,000,000 rows
scan log AS l: all 64 partitions
  because s.n = id only joins the key: compare either side with a value
  columns: id, client; about 4,000,000 rows
co-located: c, s
serving: no, queries run first whose values prune it
when distributed: in 3 stages
  x0 join c: at the members over c, s, to every member
  x1 join l: at the members over l, x0, to the coordinator
  final: at the coordinator over x1
runs first, for $1[]: SELECT DISTINCT "id" FROM "clients" WHERE ("region" = 'north')
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, region; about 10 rows
    filter: region = 'north'
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- keys are found first: a chain
SELECT * FROM nations n, clients c, sales s WHERE n.name = 'é' AND c.nation = n.id AND s.client = c.id
/*
execution: distributed on at most 3 of 3 members
tree: nations: any; clients: ($2[]); sales: ($2[])
rewrites: join_keys_first
scan nations AS n: replicated, every member has it
  columns: id, name; about 1 row
  filter: name = 'é'
scan clients AS c: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($2[]) they select
  columns: id, region, nation, rank; about 20,000 rows
scan sales AS s: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($2[]) they select
  columns: client, n, day, place; about 4,000,000 rows
co-located: c, s
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join n: at the members over n, c, s, to the coordinator
  final: at the coordinator over x0
runs first, for $1[]: SELECT DISTINCT "id" FROM "nations" WHERE ("name" = 'é')
  join keys: about 1 expected; with more than 256, the statement runs without them
  execution: local on 1 of 3 members
  tree: nations: any
  scan nations: replicated, every member has it
    columns: id, name; about 1 row
    filter: name = 'é'
  serving: no, it does not search nations by its key: compare the first columns of (id) with values
runs first, for $2[]: SELECT DISTINCT "id" FROM "clients" WHERE "nation" IN (SELECT unnest($1))
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, nation; about 10,000 rows
    filter: nation IN $1
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- it runs at once: no condition
SELECT * FROM clients c JOIN sales s ON s.client = c.id
/*
execution: distributed on 3 of 3 members
tree: clients: all; sales: all
scan clients AS c: all 64 partitions
  because id = s.client only joins the key: compare either side with a value
  columns: id, region, nation, rank; about 20,000 rows
scan sales AS s: all 64 partitions
  because c.id = client only joins the key: compare either side with a value
  columns: client, n, day, place; about 4,000,000 rows
co-located: c, s
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join c: at the members over c, s, to the coordinator
  final: at the coordinator over x0
*/
----
-- it runs at once: too many keys
SELECT * FROM clients c JOIN sales s ON s.client = c.id WHERE c.region > 'north'
/*
execution: distributed on 3 of 3 members
tree: clients: all; sales: all
scan clients AS c: all 64 partitions
  because id = s.client only joins the key: compare either side with a value
  columns: id, region, nation, rank; about 6,667 rows
  filter: region > 'north'
scan sales AS s: all 64 partitions
  because c.id = client only joins the key: compare either side with a value
  columns: client, n, day, place; about 4,000,000 rows
co-located: c, s
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join c: at the members over c, s, to the coordinator
  final: at the coordinator over x0
*/
----
-- it runs at once: the key is bound already
SELECT * FROM clients c JOIN sales s ON s.client = c.id WHERE c.id = 7
/*
execution: local on 1 of 3 members
tree: clients: (p49); sales: (p49)
scan clients AS c: 1 of 64 partitions [p49]
  partitioning key (id): (7)
  primary key bounds: (7)
  columns: id, region, nation, rank; about 1 row
scan sales AS s: 1 of 64 partitions [p49]
  partitioning key (client): (7)
  primary key bounds: (7)
  columns: client, n, day, place; about 4,000,000 rows
co-located: c, s
serving: yes
*/
----
-- it runs at once: the preserved side
SELECT * FROM sales s LEFT JOIN clients c ON s.client = c.id AND c.region = 'north'
/*
execution: distributed on 3 of 3 members
tree: sales: all; clients: all
scan sales AS s: all 64 partitions
  because no predicate on the partition key client: compare it with values
  columns: client, n, day, place; about 4,000,000 rows
scan clients AS c: all 64 partitions
  because s.client = id only joins the key: compare either side with a value
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
co-located: s, c
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join s: at the members over s, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- it runs at once: a full join
SELECT * FROM clients c FULL JOIN sales s ON s.client = c.id AND c.region = 'north'
/*
execution: distributed on 3 of 3 members
tree: clients: all; sales: all
scan clients AS c: all 64 partitions
  because no predicate on the partition key id: compare it with values
  columns: id, region, nation, rank; about 20,000 rows
scan sales AS s: all 64 partitions
  because no predicate on the partition key client: compare it with values
  columns: client, n, day, place; about 4,000,000 rows
co-located: c, s
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join c: at the members over c, s, to the coordinator
  final: at the coordinator over x0
*/
----
-- it runs at once: the left side of an anti join
SELECT * FROM sales s ANTI JOIN clients c ON s.client = c.id AND c.region = 'north'
/*
execution: distributed on 3 of 3 members
tree: sales: all; clients: all
scan sales AS s: all 64 partitions
  because no predicate on the partition key client: compare it with values
  columns: client, n, day, place; about 4,000,000 rows
scan clients AS c: all 64 partitions
  because s.client = id only joins the key: compare either side with a value
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
co-located: s, c
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join s: at the members over s, c, to the coordinator
  final: at the coordinator over x0
*/
----
-- it runs at once: not a key of the other side
SELECT * FROM clients c JOIN log l ON l.client = c.id WHERE c.region = 'north'
/*
execution: distributed on 3 of 3 members
tree: clients: all; log: all
scan clients AS c: all 64 partitions
  because id = l.client only joins the key: compare either side with a value
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
scan log AS l: all 64 partitions
  because no predicate on the partition key id: compare it with values
  columns: id, client; about 4,000,000 rows
serving: no, it does not find the rows that it joins by their keys
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join l: at the members over l, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- it runs at once: small tables
SELECT * FROM clients c JOIN clients d ON c.id = d.id WHERE c.region = 'north'
/*
execution: distributed on 3 of 3 members
tree: clients: all; clients: all
scan clients AS c: all 64 partitions
  because id = d.id only joins the key: compare either side with a value
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
scan clients AS d: all 64 partitions
  because c.id = id only joins the key: compare either side with a value
  columns: id, region, nation, rank; about 20,000 rows
co-located: c, d
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join c: at the members over c, d, to the coordinator
  final: at the coordinator over x0
*/
----
-- it runs at once: NULLs are equal
SELECT * FROM clients c JOIN sales s ON s.client IS NOT DISTINCT FROM c.id WHERE c.region = 'north'
/*
execution: distributed on at most 3 of 3 members
tree: clients: ($1[]); sales: ($1[])
rewrites: join_keys_first
scan clients AS c: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
scan sales AS s: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: client, n, day, place; about 4,000,000 rows
co-located: c, s
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join c: at the members over c, s, to the coordinator
  final: at the coordinator over x0
runs first, for $1[]: SELECT DISTINCT "id" FROM "clients" WHERE ("region" = 'north')
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, region; about 10 rows
    filter: region = 'north'
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- it runs at once: an expression
SELECT * FROM clients c JOIN sales s ON s.client = c.id + 0 WHERE c.region = 'north'
/*
execution: distributed on 3 of 3 members
tree: clients: all; sales: all
scan clients AS c: all 64 partitions
  because id is compared with s.client, which is neither a constant nor a parameter: pass its value as a parameter
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
scan sales AS s: all 64 partitions
  because client is compared with c.id + 0, which is neither a constant nor a parameter: pass its value as a parameter
  columns: client, n, day, place; about 4,000,000 rows
serving: no, it does not find the rows that it joins by their keys
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join s: at the members over s, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- it runs at once: another type
SELECT * FROM clients c JOIN sales s ON s.client = c.id::DOUBLE WHERE c.region = 'north'
/*
execution: distributed on 3 of 3 members
tree: clients: all; sales: all
scan clients AS c: all 64 partitions
  because id is compared with CAST(s.client AS DOUBLE), which is neither a constant nor a parameter: pass its value as a parameter
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
scan sales AS s: all 64 partitions
  because client is compared with CAST(c.id AS DOUBLE), which is neither a constant nor a parameter: pass its value as a parameter
  columns: client, n, day, place; about 4,000,000 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join s: at the members over s, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- it runs at once: not repeatable
SELECT * FROM clients c JOIN sales s ON s.client = c.id WHERE c.region = 'north' AND random() < 2
/*
execution: distributed on 3 of 3 members
tree: clients: all; sales: all
scan clients AS c: all 64 partitions
  because id = s.client only joins the key: compare either side with a value
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
scan sales AS s: all 64 partitions
  because c.id = client only joins the key: compare either side with a value
  columns: client, n, day, place; about 4,000,000 rows
co-located: c, s
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 2 stages
  x0 join c: at the members over c, s, to the coordinator
  final: at the coordinator over x0
*/
----
-- it runs at once: OR
SELECT * FROM clients c JOIN sales s ON s.client = c.id OR c.region = 'north'
/*
execution: distributed on 3 of 3 members
tree: clients: all; sales: all
scan clients AS c: all 64 partitions
  because id is compared with s.client, which is neither a constant nor a parameter: pass its value as a parameter
  columns: id, region, nation, rank; about 20,000 rows
scan sales AS s: all 64 partitions
  because client is compared with c.id, which is neither a constant nor a parameter: pass its value as a parameter
  columns: client, n, day, place; about 4,000,000 rows
serving: no, its expressions, types or clauses need a kernel over whole columns
when distributed: in 3 stages
  x0 scan c: at the members over c, to every member
  x1 join s: at the members over s, x0, to the coordinator
  final: at the coordinator over x1
*/
----
-- parameters are those of the statement
-- parameters: None, 'north'
SELECT * FROM clients c JOIN sales s ON s.client = c.id WHERE s.day > ? AND c.region = ?
/*
execution: distributed on at most 3 of 3 members
tree: clients: ($3[]); sales: ($3[])
rewrites: join_keys_first
scan clients AS c: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($3[]) they select
  columns: id, region, nation, rank; about 10 rows
  filter: region = $2
scan sales AS s: the partitions that the parameters select, of 64
  because the keys of the join are known only at run time: EXPLAIN ANALYZE shows which partitions of ($3[]) they select
  columns: client, n, day, place; about 1,333,333 rows
  filter: day > $1
co-located: c, s
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join c: at the members over c, s, to the coordinator
  final: at the coordinator over x0
runs first, for $3[]: SELECT DISTINCT "id" FROM "clients" WHERE ("region" = $2)
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, region; about 10 rows
    filter: region = $2
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- a subquery that runs first and keys behind it
SELECT * FROM clients c JOIN sales s ON s.client = c.id JOIN visits v ON v.client = s.n AND v.place = 4 WHERE c.region = 'north' AND s.n IN (SELECT id FROM log WHERE client = 5)
/*
execution: distributed on at most 3 of 3 members
tree: clients: ($2[]); sales: ($2[]); visits: (($1[], 4))
rewrites: materialize_subquery, join_keys_first
scan clients AS c: the partitions that the parameters select, of 64
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($2[]) they select
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
scan sales AS s: the partitions that the parameters select, of 64
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($2[]) they select
  columns: client, n, day, place; about 2,000,000 rows
  filter: n IN $1
scan visits AS v: the partitions that the parameters select, of 64
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of (($1[], 4)) they select
  columns: client, place, n; about 40,000 rows
  filter: place = 4
co-located: c, s
serving: no, queries run first whose values prune it
when distributed: in 3 stages
  x0 join c: at the members over c, s, to every member
  x1 join v: at the members over v, x0, to the coordinator
  final: at the coordinator over x1
runs first, for $1[]: SELECT id FROM log WHERE client = 5
  execution: distributed on 3 of 3 members
  tree: log: all
  scan log: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, client; about 200 rows
    filter: client = 5
  serving: no, it does not search log by its key: compare the first columns of (id) with values
  when distributed: two-stage
runs first, for $2[]: SELECT DISTINCT "id" FROM "clients" WHERE ("region" = 'north')
  join keys: about 10 expected; with more than 256, the statement runs without them
  execution: distributed on 3 of 3 members
  tree: clients: all
  scan clients: all 64 partitions
    because no predicate on the partition key id: compare it with values
    columns: id, region; about 10 rows
    filter: region = 'north'
  serving: no, it does not search clients by its key: compare the first columns of (id) with values
  when distributed: two-stage
*/
----
-- lists that are there need no keys
SELECT * FROM clients c JOIN sales s ON s.client = c.id WHERE c.region = 'north' AND c.id IN (SELECT client FROM log WHERE id < 5)
/*
execution: distributed on at most 3 of 3 members
tree: clients: ($1[]); sales: ($1[])
rewrites: materialize_subquery
scan clients AS c: the partitions that the parameters select, of 64
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: id, region, nation, rank; about 5 rows
  filter: region = 'north' AND id IN $1
scan sales AS s: the partitions that the parameters select, of 64
  because the values of the subquery are known only at run time: EXPLAIN ANALYZE shows which partitions of ($1[]) they select
  columns: client, n, day, place; about 4,000,000 rows
co-located: c, s
serving: no, queries run first whose values prune it
scatter: each owner is asked once where at most 64 partitions are left, and one combines their rows; no job, unless they are many
when distributed: in 2 stages
  x0 join c: at the members over c, s, to the coordinator
  final: at the coordinator over x0
runs first, for $1[]: SELECT client FROM log WHERE id < 5
  execution: distributed on 3 of 3 members
  tree: log: all
  scan log: all 64 partitions
    because the range of (id) has more values than the limit of 512, or values that cannot be counted: compare with = or IN, or with a narrower range
    primary key bounds: key < (5)
    columns: id, client; about 1,333,333 rows
  serving: no, it reads a range of keys of log, for which the native executor alone has a program
  when distributed: two-stage
*/
----
-- the rule has a switch
-- set: disabled_rules = join_keys_first
SELECT * FROM clients c JOIN sales s ON s.client = c.id WHERE c.region = 'north'
/*
execution: distributed on 3 of 3 members
tree: clients: all; sales: all
scan clients AS c: all 64 partitions
  because id = s.client only joins the key: compare either side with a value
  columns: id, region, nation, rank; about 10 rows
  filter: region = 'north'
scan sales AS s: all 64 partitions
  because c.id = client only joins the key: compare either side with a value
  columns: client, n, day, place; about 4,000,000 rows
co-located: c, s
serving: no, it does not find the rows that it joins by their keys
when distributed: in 2 stages
  x0 join c: at the members over c, s, to the coordinator
  final: at the coordinator over x0
*/
