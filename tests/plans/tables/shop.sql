-- Orders and customers by customer, metrics by host, metric and year, and a replicated table.
CREATE TABLE orders (customer_id VARCHAR, id BIGINT, priority VARCHAR, amount DECIMAL(10,2), day DATE, PRIMARY KEY (customer_id, id))
  PARTITION BY HASH (customer_id) PARTITIONS 271;
CREATE TABLE customers (customer_id VARCHAR PRIMARY KEY, name VARCHAR, score DOUBLE) PARTITION BY HASH (customer_id) PARTITIONS 271;
CREATE TABLE metrics (host VARCHAR, metric VARCHAR, time TIMESTAMP, value DOUBLE, PRIMARY KEY (host, metric, time))
  PARTITION BY HASH (host, metric) PARTITIONS 4, RANGE (time) SPLIT AT (TIMESTAMP '2016-01-01 00:00:00');
CREATE TABLE airlines (code VARCHAR PRIMARY KEY, name VARCHAR) REPLICATED;
