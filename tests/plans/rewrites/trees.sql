-- Each rule alone: the relations of a statement after it.
-- tables: shop
----
-- derived table
-- rule: derived_table_to_join
SELECT o.id FROM orders o, (SELECT * FROM customers WHERE name = 'Ada') c WHERE o.customer_id = c.customer_id
/*
applied: derived_table_to_join
project id
  filter customer_id = customer_id
    inner join
      scan orders AS o
      project customer_id, name, score
        filter name = 'Ada'
          scan customers
*/
----
-- IN over a primary key is an inner join
-- rule: in_pull_out
SELECT id FROM orders o WHERE customer_id IN (SELECT customer_id FROM customers WHERE name = 'Ada')
/*
applied: in_pull_out
project id
  filter customer_id IN (SELECT customer_id FROM s1 AS "customers" WHERE name = 'Ada')
    inner join customer_id = customer_id
      scan orders AS o
      project customer_id
        filter name = 'Ada'
          scan customers
*/
----
-- IN over values that repeat is a semi-join
-- rule: in_pull_out
SELECT name FROM customers WHERE customer_id IN (SELECT customer_id FROM orders)
/*
applied: in_pull_out
project name
  filter customer_id IN (SELECT customer_id FROM s1 AS "orders")
    semi join customer_id = customer_id
      scan customers
      project customer_id
        scan orders
*/
----
-- IN over groups
-- rule: in_group_by_to_join
SELECT name FROM customers WHERE customer_id IN (SELECT customer_id FROM orders GROUP BY customer_id HAVING count(*) > 10)
/*
applied: in_group_by_to_join
project name
  filter customer_id IN (SELECT customer_id FROM s1 AS "orders" GROUP BY customer_id HAVING COUNT(*) > 10)
    inner join customer_id = customer_id
      scan customers
      project customer_id
        filter COUNT(*) > 10
          aggregate customer_id
            scan orders
*/
----
-- correlated IN
-- rule: in_to_exists
SELECT name FROM customers c WHERE customer_id IN (SELECT customer_id FROM orders o WHERE o.id > c.score)
/*
applied: in_to_exists
project name
  filter customer_id IN (SELECT customer_id FROM s1 AS o WHERE o.id > c.score)
    apply exists
      scan customers AS c
      filter customer_id = customer_id
        project customer_id
          filter id > score
            scan orders AS o
*/
----
-- NOT IN of keys
-- rule: in_to_exists
SELECT name FROM customers c WHERE customer_id NOT IN (SELECT customer_id FROM orders)
/*
applied: in_to_exists
project name
  filter NOT customer_id IN (SELECT customer_id FROM s1 AS "orders")
    apply not exists
      scan customers AS c
      filter customer_id = customer_id
        project customer_id
          scan orders
*/
----
-- NOT IN of what may be NULL stays
-- rule: in_to_exists
SELECT name FROM customers c WHERE customer_id NOT IN (SELECT priority FROM orders)
/*
applied: nothing
project name
  filter NOT customer_id IN (SELECT priority FROM s1 AS "orders")
    apply not in
      scan customers AS c
      project priority
        scan orders
*/
----
-- EXISTS
-- rule: exists_to_semi_join
SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND id > 3)
/*
applied: exists_to_semi_join
project name
  filter EXISTS(SELECT 1 FROM s1 AS o WHERE o.customer_id = c.customer_id AND id > 3)
    semi join
      scan customers AS c
      project 1
        filter customer_id = customer_id AND id > 3
          scan orders AS o
*/
----
-- NOT EXISTS
-- rule: exists_to_semi_join
SELECT name FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id)
/*
applied: exists_to_semi_join
project name
  filter NOT EXISTS(SELECT 1 FROM s1 AS o WHERE o.customer_id = c.customer_id)
    anti join
      scan customers AS c
      project 1
        filter customer_id = customer_id
          scan orders AS o
*/
----
-- EXISTS without correlation stays
-- rule: exists_to_semi_join
SELECT name FROM customers WHERE EXISTS (SELECT 1 FROM orders)
/*
applied: nothing
project name
  filter EXISTS(SELECT 1 FROM s1 AS "orders")
    apply exists
      scan customers
      project 1
        scan orders
*/
----
-- scalar subquery: a left join, not the inner join of the seed
-- rule: scalar_subquery_to_left_join
SELECT id, (SELECT name FROM customers c WHERE c.customer_id = o.customer_id) FROM orders o
/*
applied: scalar_subquery_to_left_join
project id
  left join
    scan orders AS o
    project name
      filter customer_id = customer_id
        scan customers AS c
*/
----
-- a scalar subquery of its own stays
-- rule: scalar_subquery_to_left_join
SELECT id, (SELECT max(name) FROM customers) FROM orders
/*
applied: nothing
project id
  apply value
    scan orders
    project
      aggregate
        scan customers
*/
----
-- a constant for two columns
-- rule: constant_propagation
SELECT id FROM orders WHERE customer_id = priority AND priority = 'C2'
/*
applied: constant_propagation
project id
  filter customer_id = priority AND priority = 'C2' AND customer_id = 'C2'
    scan orders
*/
----
-- nothing is known of either column
-- rule: constant_propagation
SELECT id FROM orders WHERE customer_id = priority AND amount = 5
/*
applied: nothing
project id
  filter customer_id = priority AND amount = 5
    scan orders
*/
----
-- an aggregate of a grouping column is the column
-- rule: aggregate_of_group_key
SELECT customer_id, count(*) FROM orders GROUP BY customer_id HAVING min(customer_id) = 'C1' AND max(id) > 3
/*
applied: aggregate_of_group_key
project *, customer_id
  filter customer_id = 'C1' AND MAX(id) > 3
    aggregate customer_id
      scan orders
*/
----
-- an aggregate of a grouping column over some of its rows is not
-- rule: aggregate_of_group_key
SELECT customer_id FROM orders GROUP BY customer_id HAVING min(customer_id) FILTER (WHERE id > 3) = 'C1' AND max(id) > 3
/*
applied: nothing
project customer_id
  filter MIN(customer_id) FILTER(WHERE id > 3) = 'C1' AND MAX(id) > 3
    aggregate customer_id
      scan orders
*/
----
-- a column that some grouping sets leave out is none of the group
-- rule: aggregate_of_group_key
SELECT customer_id FROM orders GROUP BY ROLLUP (customer_id) HAVING min(customer_id) = 'C1'
/*
applied: nothing
project customer_id
  filter MIN(customer_id) = 'C1'
    aggregate
      scan orders
*/
----
-- a join around a left join whose NULLs it rejects
-- rule: outer_join_reduction
SELECT o.id FROM (orders o LEFT JOIN customers c ON o.priority = c.name AND c.score > 1) JOIN customers d ON d.customer_id = c.customer_id
/*
applied: outer_join_reduction
project id
  inner join customer_id = customer_id
    inner join priority = name AND score > 1
      scan orders AS o
      scan customers AS c
    scan customers AS d
*/
----
-- a comparison of two tables in all branches of an OR
-- rule: common_conjunct
SELECT o.id FROM orders o JOIN customers c ON (o.customer_id = c.customer_id AND o.priority = 'high') OR (c.score > 3 AND c.customer_id = o.customer_id)
/*
applied: common_conjunct
project id
  inner join (customer_id = customer_id AND priority = 'high') OR (score > 3 AND customer_id = customer_id) AND customer_id = customer_id
    scan orders AS o
    scan customers AS c
*/
----
-- a comparison with the greatest of some values
-- rule: scalar_subquery_bounds
SELECT id FROM orders WHERE customer_id >= (SELECT max(customer_id) FROM customers WHERE customer_id BETWEEN 'C1' AND 'C7')
/*
applied: scalar_subquery_bounds
project id
  filter customer_id >= (SELECT MAX(customer_id) FROM s1 AS "customers" WHERE customer_id BETWEEN 'C1' AND 'C7')
    apply value
      filter customer_id >= 'C1'
        scan orders
      project
        aggregate
          filter customer_id BETWEEN 'C1' AND 'C7'
            scan customers
*/
----
-- row values on both sides of IN
-- rule: in_pull_out
SELECT id FROM orders WHERE (customer_id, priority) IN (SELECT (customer_id, name) FROM customers)
/*
applied: in_pull_out
project id
  filter (customer_id, priority) IN (SELECT (customer_id, name) FROM s1 AS "customers")
    semi join customer_id = customer_id
      scan orders
      project customer_id, name
        scan customers
*/
