-- Sixty everyday queries, each as analysts of different systems write it. A paragraph is a name, then "systems: SQL";
-- the first line is DuckDB's. "*" is for systems without a line, of their own or of the one whose SQL theirs follows
-- (FAMILY in test_everyday.py). test_everyday.py asks each in each dialect and compares with plain DuckDB.

1 count rows
duckdb: SELECT COUNT(*) AS n FROM people
*: SELECT COUNT(*) AS n FROM people

2 count with a condition
duckdb: SELECT COUNT(1) AS n FROM people WHERE age >= 18
*: SELECT COUNT(1) AS n FROM people WHERE age >= 18
clickhouse: SELECT count() AS n FROM people WHERE age >= 18

3 count by key, most first
duckdb: SELECT state, COUNT(*) AS n FROM people GROUP BY state ORDER BY n DESC
*: SELECT state, COUNT(*) AS n FROM people GROUP BY state ORDER BY n DESC
tsql: SELECT state, COUNT(*) AS n FROM people GROUP BY state ORDER BY COUNT(*) DESC

4 keys by number
duckdb: SELECT state, sex, COUNT(*) AS n FROM people GROUP BY 1, 2 ORDER BY 3 DESC
*: SELECT state, sex, COUNT(*) AS n FROM people GROUP BY 1, 2 ORDER BY 3 DESC
tsql, oracle: SELECT state, sex, COUNT(*) AS n FROM people GROUP BY state, sex ORDER BY 3 DESC

5 sum and average
duckdb: SELECT SUM(income) AS total, AVG(income) AS mean FROM people
*: SELECT SUM(income) AS total, AVG(income) AS mean FROM people

6 distinct values
duckdb: SELECT COUNT(DISTINCT age) AS ages FROM people
*: SELECT COUNT(DISTINCT age) AS ages FROM people

7 the largest two
duckdb: SELECT state, COUNT(*) AS n FROM people GROUP BY state ORDER BY n DESC LIMIT 2
*: SELECT state, COUNT(*) AS n FROM people GROUP BY state ORDER BY n DESC LIMIT 2
tsql, teradata: SELECT TOP 2 state, COUNT(*) AS n FROM people GROUP BY state ORDER BY COUNT(*) DESC
oracle: SELECT state, COUNT(*) AS n FROM people GROUP BY state ORDER BY n DESC FETCH FIRST 2 ROWS ONLY

8 the second largest
duckdb: SELECT state, COUNT(*) AS n FROM people GROUP BY state ORDER BY n DESC LIMIT 1 OFFSET 1
*: SELECT state, COUNT(*) AS n FROM people GROUP BY state ORDER BY n DESC LIMIT 1 OFFSET 1
mysql: SELECT state, COUNT(*) AS n FROM people GROUP BY state ORDER BY n DESC LIMIT 1, 1
tsql, oracle: SELECT state, COUNT(*) AS n FROM people GROUP BY state ORDER BY n DESC OFFSET 1 ROWS FETCH NEXT 1 ROWS ONLY
presto: SELECT state, COUNT(*) AS n FROM people GROUP BY state ORDER BY n DESC OFFSET 1 LIMIT 1

9 sum of cases
duckdb: SELECT SUM(CASE WHEN age >= 65 THEN 1 ELSE 0 END) AS old FROM people
*: SELECT SUM(CASE WHEN age >= 65 THEN 1 ELSE 0 END) AS old FROM people

10 buckets by CASE
duckdb: SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END AS who, COUNT(*) AS n FROM people GROUP BY who
*: SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END AS who, COUNT(*) AS n FROM people GROUP BY 1
tsql, oracle: SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END AS who, COUNT(*) AS n FROM people GROUP BY CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END

11 IN a list
duckdb: SELECT COUNT(*) AS n FROM people WHERE state IN ('CA', 'NY')
*: SELECT COUNT(*) AS n FROM people WHERE state IN ('CA', 'NY')
bigquery: SELECT COUNT(*) AS n FROM people WHERE state IN ("CA", "NY")

12 BETWEEN and not equal
duckdb: SELECT COUNT(*) AS n FROM people WHERE age BETWEEN 18 AND 64 AND state <> 'TX'
*: SELECT COUNT(*) AS n FROM people WHERE age BETWEEN 18 AND 64 AND state <> 'TX'
mysql, postgres, snowflake, tsql, bigquery: SELECT COUNT(*) AS n FROM people WHERE age BETWEEN 18 AND 64 AND state != 'TX'

13 LIKE
duckdb: SELECT COUNT(*) AS n FROM people WHERE name LIKE 'A%' OR name NOT LIKE '%n%'
*: SELECT COUNT(*) AS n FROM people WHERE name LIKE 'A%' OR name NOT LIKE '%n%'

14 IS NULL
duckdb: SELECT COUNT(*) AS n FROM people WHERE score IS NULL
*: SELECT COUNT(*) AS n FROM people WHERE score IS NULL

15 IS NOT NULL
duckdb: SELECT state, COUNT(*) AS n FROM people WHERE score IS NOT NULL AND age IS NOT NULL GROUP BY state
*: SELECT state, COUNT(*) AS n FROM people WHERE score IS NOT NULL AND age IS NOT NULL GROUP BY state

16 a value for NULL
duckdb: SELECT AVG(COALESCE(score, 0)) AS m FROM people
*: SELECT AVG(COALESCE(score, 0)) AS m FROM people
mysql, bigquery, sqlite, snowflake: SELECT AVG(IFNULL(score, 0)) AS m FROM people
tsql: SELECT AVG(ISNULL(score, 0)) AS m FROM people
oracle, redshift, spark, hive: SELECT AVG(NVL(score, 0)) AS m FROM people
clickhouse: SELECT avg(ifNull(score, 0)) AS m FROM people
teradata: SELECT AVG(ZEROIFNULL(score)) AS m FROM people

17 NULL for a value
duckdb: SELECT COUNT(NULLIF(state, 'CA')) AS n FROM people
*: SELECT COUNT(NULLIF(state, 'CA')) AS n FROM people

18 by month
duckdb: SELECT date_trunc('month', joined) AS m, COUNT(*) AS n FROM people GROUP BY m
*: SELECT date_trunc('month', joined) AS m, COUNT(*) AS n FROM people GROUP BY 1
bigquery: SELECT DATE_TRUNC(joined, MONTH) AS m, COUNT(*) AS n FROM people GROUP BY m
tsql: SELECT DATETRUNC(month, joined) AS m, COUNT(*) AS n FROM people GROUP BY DATETRUNC(month, joined)
oracle: SELECT TRUNC(joined, 'MM') AS m, COUNT(*) AS n FROM people GROUP BY TRUNC(joined, 'MM')
hive, spark: SELECT trunc(joined, 'MM') AS m, COUNT(*) AS n FROM people GROUP BY 1
clickhouse: SELECT toStartOfMonth(joined) AS m, count(*) AS n FROM people GROUP BY m
mysql: SELECT CAST(DATE_FORMAT(joined, '%Y-%m-01') AS DATE) AS m, COUNT(*) AS n FROM people GROUP BY 1
sqlite: SELECT date(joined, 'start of month') AS m, COUNT(*) AS n FROM people GROUP BY 1

19 by month, as text
duckdb: SELECT strftime(joined, '%Y-%m') AS m, COUNT(*) AS n FROM people GROUP BY m
*: SELECT strftime(joined, '%Y-%m') AS m, COUNT(*) AS n FROM people GROUP BY 1
postgres, oracle, redshift, snowflake: SELECT TO_CHAR(joined, 'YYYY-MM') AS m, COUNT(*) AS n FROM people GROUP BY TO_CHAR(joined, 'YYYY-MM')
mysql: SELECT DATE_FORMAT(joined, '%Y-%m') AS m, COUNT(*) AS n FROM people GROUP BY 1
tsql: SELECT CONVERT(VARCHAR(7), joined, 120) AS m, COUNT(*) AS n FROM people GROUP BY CONVERT(VARCHAR(7), joined, 120)
dremio: SELECT TO_CHAR(joined, 'YYYY-MM') AS m, COUNT(*) AS n FROM people GROUP BY TO_CHAR(joined, 'YYYY-MM')
drill: SELECT TO_CHAR(joined, 'yyyy-MM') AS m, COUNT(*) AS n FROM people GROUP BY TO_CHAR(joined, 'yyyy-MM')
bigquery: SELECT FORMAT_DATE('%Y-%m', joined) AS m, COUNT(*) AS n FROM people GROUP BY m
hive, spark: SELECT date_format(joined, 'yyyy-MM') AS m, COUNT(*) AS n FROM people GROUP BY 1
presto: SELECT date_format(joined, '%Y-%m') AS m, COUNT(*) AS n FROM people GROUP BY 1
clickhouse: SELECT formatDateTime(joined, '%Y-%m') AS m, count(*) AS n FROM people GROUP BY m
sqlite: SELECT strftime('%Y-%m', joined) AS m, COUNT(*) AS n FROM people GROUP BY 1

20 by year
duckdb: SELECT year(joined) AS y, COUNT(*) AS n FROM people GROUP BY y
*: SELECT EXTRACT(YEAR FROM joined) AS y, COUNT(*) AS n FROM people GROUP BY 1
mysql, snowflake, hive, spark: SELECT YEAR(joined) AS y, COUNT(*) AS n FROM people GROUP BY 1
tsql: SELECT YEAR(joined) AS y, COUNT(*) AS n FROM people GROUP BY YEAR(joined)
oracle: SELECT EXTRACT(YEAR FROM joined) AS y, COUNT(*) AS n FROM people GROUP BY EXTRACT(YEAR FROM joined)
clickhouse: SELECT toYear(joined) AS y, count(*) AS n FROM people GROUP BY y
sqlite: SELECT CAST(strftime('%Y', joined) AS INTEGER) AS y, COUNT(*) AS n FROM people GROUP BY 1

21 by month of the year
duckdb: SELECT month(joined) AS m, COUNT(*) AS n FROM people GROUP BY m
*: SELECT EXTRACT(MONTH FROM joined) AS m, COUNT(*) AS n FROM people GROUP BY 1
postgres, redshift: SELECT date_part('month', joined) AS m, COUNT(*) AS n FROM people GROUP BY 1
mysql, snowflake, presto, hive, spark: SELECT MONTH(joined) AS m, COUNT(*) AS n FROM people GROUP BY 1
tsql: SELECT DATEPART(month, joined) AS m, COUNT(*) AS n FROM people GROUP BY DATEPART(month, joined)
clickhouse: SELECT toMonth(joined) AS m, count(*) AS n FROM people GROUP BY m
sqlite: SELECT CAST(strftime('%m', joined) AS INTEGER) AS m, COUNT(*) AS n FROM people GROUP BY 1

22 by quarter
duckdb: SELECT quarter(joined) AS q, COUNT(*) AS n FROM people GROUP BY q
*: SELECT EXTRACT(QUARTER FROM joined) AS q, COUNT(*) AS n FROM people GROUP BY 1
mysql, snowflake, spark, presto: SELECT QUARTER(joined) AS q, COUNT(*) AS n FROM people GROUP BY 1
tsql: SELECT DATEPART(quarter, joined) AS q, COUNT(*) AS n FROM people GROUP BY DATEPART(quarter, joined)
clickhouse: SELECT toQuarter(joined) AS q, count(*) AS n FROM people GROUP BY q
oracle: SELECT CEIL(EXTRACT(MONTH FROM joined) / 3) AS q, COUNT(*) AS n FROM people GROUP BY CEIL(EXTRACT(MONTH FROM joined) / 3)
sqlite: SELECT (CAST(strftime('%m', joined) AS INTEGER) + 2) / 3 AS q, COUNT(*) AS n FROM people GROUP BY 1

23 since a date
duckdb: SELECT COUNT(*) AS n FROM people WHERE joined >= DATE '2021-01-01'
*: SELECT COUNT(*) AS n FROM people WHERE joined >= DATE '2021-01-01'
tsql, sqlite: SELECT COUNT(*) AS n FROM people WHERE joined >= '2021-01-01'
bigquery: SELECT COUNT(*) AS n FROM people WHERE joined >= DATE("2021-01-01")
clickhouse: SELECT count(*) AS n FROM people WHERE joined >= toDate('2021-01-01')
snowflake: SELECT COUNT(*) AS n FROM people WHERE joined >= TO_DATE('2021-01-01')
oracle: SELECT COUNT(*) AS n FROM people WHERE joined >= TO_DATE('2021-01-01', 'YYYY-MM-DD')

24 in a year
duckdb: SELECT COUNT(*) AS n FROM people WHERE joined BETWEEN '2021-01-01' AND '2021-12-31'
*: SELECT COUNT(*) AS n FROM people WHERE joined BETWEEN '2021-01-01' AND '2021-12-31'
oracle, presto, teradata: SELECT COUNT(*) AS n FROM people WHERE joined BETWEEN DATE '2021-01-01' AND DATE '2021-12-31'

25 days later
duckdb: SELECT COUNT(*) AS n FROM people WHERE joined + INTERVAL 30 DAY >= DATE '2021-06-01'
*: SELECT COUNT(*) AS n FROM people WHERE joined + INTERVAL '30' DAY >= DATE '2021-06-01'
postgres, redshift: SELECT COUNT(*) AS n FROM people WHERE joined + INTERVAL '30 days' >= DATE '2021-06-01'
mysql, bigquery: SELECT COUNT(*) AS n FROM people WHERE DATE_ADD(joined, INTERVAL 30 DAY) >= DATE '2021-06-01'
tsql: SELECT COUNT(*) AS n FROM people WHERE DATEADD(day, 30, joined) >= '2021-06-01'
snowflake, redshift: SELECT COUNT(*) AS n FROM people WHERE DATEADD(day, 30, joined) >= '2021-06-01'::date
hive, spark: SELECT COUNT(*) AS n FROM people WHERE date_add(joined, 30) >= DATE '2021-06-01'
presto: SELECT COUNT(*) AS n FROM people WHERE date_add('day', 30, joined) >= DATE '2021-06-01'
clickhouse: SELECT count(*) AS n FROM people WHERE addDays(joined, 30) >= toDate('2021-06-01')
oracle: SELECT COUNT(*) AS n FROM people WHERE joined + INTERVAL '30' DAY >= DATE '2021-06-01'
sqlite: SELECT COUNT(*) AS n FROM people WHERE date(joined, '+30 days') >= '2021-06-01'

26 days between
duckdb: SELECT AVG(date_diff('day', joined, DATE '2022-12-31')) AS days FROM people
*: SELECT AVG(DATEDIFF(DATE '2022-12-31', joined)) AS days FROM people
presto: SELECT AVG(date_diff('day', joined, DATE '2022-12-31')) AS days FROM people
postgres, oracle, teradata, exasol: SELECT AVG(DATE '2022-12-31' - joined) AS days FROM people
mysql: SELECT AVG(DATEDIFF('2022-12-31', joined)) AS days FROM people
tsql: SELECT AVG(DATEDIFF(day, joined, '2022-12-31') * 1.0) AS days FROM people
snowflake, redshift: SELECT AVG(DATEDIFF(day, joined, '2022-12-31'::date)) AS days FROM people
bigquery: SELECT AVG(DATE_DIFF(DATE '2022-12-31', joined, DAY)) AS days FROM people
hive, spark: SELECT AVG(datediff(DATE '2022-12-31', joined)) AS days FROM people
clickhouse: SELECT avg(dateDiff('day', joined, toDate('2022-12-31'))) AS days FROM people
sqlite: SELECT AVG(julianday('2022-12-31') - julianday(joined)) AS days FROM people

27 a cast
duckdb: SELECT SUM(income::DOUBLE / 4) AS s FROM people
*: SELECT SUM(CAST(income AS DOUBLE) / 4) AS s FROM people
postgres, redshift: SELECT SUM(income::double precision / 4) AS s FROM people
snowflake: SELECT SUM(income::float / 4) AS s FROM people
bigquery: SELECT SUM(CAST(income AS FLOAT64) / 4) AS s FROM people
tsql: SELECT SUM(CAST(income AS FLOAT) / 4) AS s FROM people
mysql: SELECT SUM(CAST(income AS DECIMAL(12, 2)) / 4) AS s FROM people
oracle: SELECT SUM(CAST(income AS NUMBER(12, 2)) / 4) AS s FROM people
clickhouse: SELECT sum(toFloat64(income) / 4) AS s FROM people
sqlite: SELECT SUM(CAST(income AS REAL) / 4) AS s FROM people

28 upper and lower case
duckdb: SELECT upper(sex) AS sex, COUNT(*) AS n FROM people WHERE lower(state) = 'ca' GROUP BY upper(sex)
*: SELECT UPPER(sex) AS sex, COUNT(*) AS n FROM people WHERE LOWER(state) = 'ca' GROUP BY UPPER(sex)

29 the first letter
duckdb: SELECT COUNT(*) AS n FROM people WHERE substring(name, 1, 1) = 'A'
*: SELECT COUNT(*) AS n FROM people WHERE SUBSTRING(name, 1, 1) = 'A'
postgres, mysql, tsql, snowflake: SELECT COUNT(*) AS n FROM people WHERE LEFT(name, 1) = 'A'
bigquery, oracle, sqlite: SELECT COUNT(*) AS n FROM people WHERE SUBSTR(name, 1, 1) = 'A'

30 joined texts
duckdb: SELECT state || '-' || sex AS k, COUNT(*) AS n FROM people GROUP BY k
*: SELECT state || '-' || sex AS k, COUNT(*) AS n FROM people GROUP BY state || '-' || sex
mysql, bigquery, hive, spark, clickhouse, solr: SELECT CONCAT(state, '-', sex) AS k, COUNT(*) AS n FROM people GROUP BY 1
tsql: SELECT CONCAT(state, '-', sex) AS k, COUNT(*) AS n FROM people GROUP BY CONCAT(state, '-', sex)

31 lengths
duckdb: SELECT AVG(length(name)) AS m FROM people WHERE length(name) < 9
*: SELECT AVG(LENGTH(name)) AS m FROM people WHERE LENGTH(name) < 9
mysql, postgres: SELECT AVG(CHAR_LENGTH(name)) AS m FROM people WHERE CHAR_LENGTH(name) < 9
clickhouse: SELECT avg(lengthUTF8(name)) AS m FROM people WHERE lengthUTF8(name) < 9
tsql: SELECT AVG(LEN(name) * 1.0) AS m FROM people WHERE LEN(name) < 9

32 trimmed and replaced
duckdb: SELECT COUNT(*) AS n FROM people WHERE trim(replace(name, 'n', ' ')) = 'A'
*: SELECT COUNT(*) AS n FROM people WHERE TRIM(REPLACE(name, 'n', ' ')) = 'A'
teradata: SELECT COUNT(*) AS n FROM people WHERE TRIM(OREPLACE(name, 'n', ' ')) = 'A'

33 LIKE without case
duckdb: SELECT COUNT(*) AS n FROM people WHERE name ILIKE 'a%'
*: SELECT COUNT(*) AS n FROM people WHERE LOWER(name) LIKE 'a%'
postgres, redshift, snowflake, databricks, clickhouse: SELECT COUNT(*) AS n FROM people WHERE name ILIKE 'a%'

34 a pattern
duckdb: SELECT COUNT(*) AS n FROM people WHERE regexp_matches(name, '^[AB]')
*: SELECT COUNT(*) AS n FROM people WHERE REGEXP_LIKE(name, '^[AB]')
postgres, redshift: SELECT COUNT(*) AS n FROM people WHERE name ~ '^[AB]'
mysql, sqlite: SELECT COUNT(*) AS n FROM people WHERE name REGEXP '^[AB]'
bigquery: SELECT COUNT(*) AS n FROM people WHERE REGEXP_CONTAINS(name, r'^[AB]')
snowflake, exasol: SELECT COUNT(*) AS n FROM people WHERE REGEXP_LIKE(name, '^[AB].*')
hive, spark: SELECT COUNT(*) AS n FROM people WHERE name RLIKE '^[AB]'
clickhouse: SELECT count(*) AS n FROM people WHERE match(name, '^[AB]')
teradata: SELECT COUNT(*) AS n FROM people WHERE REGEXP_SIMILAR(name, '^[AB].*') = 1
tsql: SELECT COUNT(*) AS n FROM people WHERE name LIKE 'A%' OR name LIKE 'B%'

35 HAVING
duckdb: SELECT state, COUNT(*) AS n FROM people GROUP BY state HAVING COUNT(*) > 700
*: SELECT state, COUNT(*) AS n FROM people GROUP BY state HAVING COUNT(*) > 700

36 HAVING an alias
duckdb: SELECT state, AVG(income) AS m FROM people GROUP BY state HAVING m > 100 ORDER BY m
*: SELECT state, AVG(income) AS m FROM people GROUP BY state HAVING AVG(income) > 100 ORDER BY m
mysql, snowflake, bigquery, clickhouse, hive, spark: SELECT state, AVG(income) AS m FROM people GROUP BY state HAVING m > 100 ORDER BY m

37 counts of a condition
duckdb: SELECT state, COUNT(*) FILTER (WHERE age < 30) AS young FROM people GROUP BY state
*: SELECT state, COUNT(CASE WHEN age < 30 THEN 1 END) AS young FROM people GROUP BY state
postgres, sqlite, databricks: SELECT state, COUNT(*) FILTER (WHERE age < 30) AS young FROM people GROUP BY state
bigquery: SELECT state, COUNTIF(age < 30) AS young FROM people GROUP BY state
snowflake, presto, spark: SELECT state, COUNT_IF(age < 30) AS young FROM people GROUP BY state
clickhouse: SELECT state, countIf(age < 30) AS young FROM people GROUP BY state
mysql: SELECT state, SUM(age < 30) AS young FROM people GROUP BY state

38 a public table joined
duckdb: SELECT region, COUNT(*) AS n FROM people JOIN states USING (state) GROUP BY region
*: SELECT region, COUNT(*) AS n FROM people JOIN states USING (state) GROUP BY region
tsql: SELECT s.region, COUNT(*) AS n FROM people p INNER JOIN states s ON s.state = p.state GROUP BY s.region

39 joined in WHERE
duckdb: SELECT s.region, AVG(p.income) AS m FROM people AS p, states AS s WHERE p.state = s.state GROUP BY s.region
*: SELECT s.region, AVG(p.income) AS m FROM people p, states s WHERE p.state = s.state GROUP BY s.region

40 a left join
duckdb: SELECT COALESCE(s.region, 'none') AS r, COUNT(*) AS n FROM people p LEFT JOIN states s ON p.state = s.state GROUP BY r HAVING COUNT(*) > 9
*: SELECT COALESCE(s.region, 'none') AS r, COUNT(*) AS n FROM people p LEFT JOIN states s ON p.state = s.state GROUP BY COALESCE(s.region, 'none') HAVING COUNT(*) > 9

41 an average of groups
duckdb: SELECT AVG(n) AS m, MAX(n) AS most FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state) t
*: SELECT AVG(n) AS m, MAX(n) AS most FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state) t

42 a share, by a common table expression
duckdb: WITH t AS (SELECT state, COUNT(*) AS n FROM people GROUP BY state) SELECT state, n * 100.0 / (SELECT SUM(n) FROM t) AS pct FROM t
*: WITH t AS (SELECT state, COUNT(*) AS n FROM people GROUP BY state) SELECT state, n * 100.0 / (SELECT SUM(n) FROM t) AS pct FROM t

43 a share, by a window
duckdb: SELECT state, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS pct FROM people GROUP BY state
*: SELECT state, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS pct FROM people GROUP BY state
oracle, snowflake, redshift: SELECT state, COUNT(*) AS n, 100.0 * RATIO_TO_REPORT(COUNT(*)) OVER () AS pct FROM people GROUP BY state

44 a running total
duckdb: SELECT age // 10 AS decade, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY age // 10) AS up_to FROM people GROUP BY age // 10
*: SELECT FLOOR(age / 10) AS decade, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY FLOOR(age / 10)) AS up_to FROM people GROUP BY FLOOR(age / 10)
teradata: SELECT age / 10 AS decade, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY age / 10 ROWS UNBOUNDED PRECEDING) AS up_to FROM people GROUP BY age / 10
mysql: SELECT age DIV 10 AS decade, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY age DIV 10) AS up_to FROM people GROUP BY age DIV 10
bigquery: SELECT DIV(age, 10) AS decade, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY DIV(age, 10)) AS up_to FROM people GROUP BY DIV(age, 10)
postgres, tsql, sqlite: SELECT age / 10 AS decade, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY age / 10) AS up_to FROM people GROUP BY age / 10
clickhouse: SELECT intDiv(age, 10) AS decade, count(*) AS n, sum(count(*)) OVER (ORDER BY intDiv(age, 10)) AS up_to FROM people GROUP BY intDiv(age, 10)

45 ranks
duckdb: SELECT state, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM people GROUP BY state
*: SELECT state, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM people GROUP BY state

46 the largest of each group
duckdb: SELECT sex, state, COUNT(*) AS n FROM people GROUP BY sex, state QUALIFY ROW_NUMBER() OVER (PARTITION BY sex ORDER BY COUNT(*) DESC) = 1
*: SELECT sex, state, n FROM (SELECT sex, state, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY sex ORDER BY COUNT(*) DESC) AS place FROM people GROUP BY sex, state) t WHERE place = 1
snowflake, bigquery, databricks, redshift, teradata, clickhouse: SELECT sex, state, COUNT(*) AS n FROM people GROUP BY sex, state QUALIFY ROW_NUMBER() OVER (PARTITION BY sex ORDER BY COUNT(*) DESC) = 1

47 one below the other
duckdb: SELECT 'all' AS what, COUNT(*) AS n FROM people UNION ALL SELECT 'old', COUNT(*) FROM people WHERE age >= 65
*: SELECT 'all' AS what, COUNT(*) AS n FROM people UNION ALL SELECT 'old', COUNT(*) FROM people WHERE age >= 65

48 IN a subquery
duckdb: SELECT COUNT(*) AS n FROM people WHERE state IN (SELECT state FROM states WHERE region = 'west')
*: SELECT COUNT(*) AS n FROM people WHERE state IN (SELECT state FROM states WHERE region = 'west')

49 EXISTS
duckdb: SELECT COUNT(*) AS n FROM people p WHERE EXISTS (SELECT 1 FROM states s WHERE s.state = p.state AND s.region = 'west')
*: SELECT COUNT(*) AS n FROM people p WHERE EXISTS (SELECT 1 FROM states s WHERE s.state = p.state AND s.region = 'west')

50 a median
duckdb: SELECT median(income) AS m FROM people
*: SELECT MEDIAN(income) AS m FROM people
postgres, tsql: SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY income) AS m FROM people
presto: SELECT approx_percentile(income, 0.5) AS m FROM people
bigquery: SELECT APPROX_QUANTILES(income, 2)[OFFSET(1)] AS m FROM people
hive: SELECT percentile_approx(income, 0.5) AS m FROM people

51 standard deviations
duckdb: SELECT stddev_samp(income) AS s FROM people
*: SELECT STDDEV_SAMP(income) AS s FROM people
postgres, oracle, redshift, snowflake, bigquery, presto: SELECT STDDEV(income) AS s FROM people
tsql: SELECT STDEV(income) AS s FROM people
clickhouse: SELECT stddevSamp(income) AS s FROM people

52 variances
duckdb: SELECT var_pop(income) AS v FROM people
*: SELECT VAR_POP(income) AS v FROM people
tsql: SELECT VARP(income) AS v FROM people
clickhouse: SELECT varPop(income) AS v FROM people

53 about how many values
duckdb: SELECT COUNT(DISTINCT age) AS n FROM people
*: SELECT APPROX_COUNT_DISTINCT(age) AS n FROM people
postgres, mysql, sqlite, teradata, hive: SELECT COUNT(DISTINCT age) AS n FROM people
presto: SELECT approx_distinct(age) AS n FROM people
clickhouse: SELECT uniq(age) AS n FROM people
redshift: SELECT APPROXIMATE COUNT(DISTINCT age) AS n FROM people

54 rounded
duckdb: SELECT state, ROUND(AVG(income), 1) AS m FROM people GROUP BY state
*: SELECT state, ROUND(AVG(income), 1) AS m FROM people GROUP BY state

55 even and odd
duckdb: SELECT age % 2 AS odd, COUNT(*) AS n FROM people GROUP BY odd
*: SELECT MOD(age, 2) AS odd, COUNT(*) AS n FROM people GROUP BY MOD(age, 2)
tsql, sqlite, clickhouse, postgres: SELECT age % 2 AS odd, COUNT(*) AS n FROM people GROUP BY age % 2

56 the greater of two
duckdb: SELECT SUM(GREATEST(age, 18)) AS s, SUM(LEAST(age, 65)) AS t FROM people
*: SELECT SUM(GREATEST(age, 18)) AS s, SUM(LEAST(age, 65)) AS t FROM people
sqlite: SELECT SUM(MAX(age, 18)) AS s, SUM(MIN(age, 65)) AS t FROM people

57 true and false
duckdb: SELECT COUNT(*) AS n FROM people WHERE smoker = TRUE AND NOT (smoker IS NULL)
*: SELECT COUNT(*) AS n FROM people WHERE smoker = TRUE AND smoker IS NOT NULL
postgres: SELECT COUNT(*) AS n FROM people WHERE smoker IS TRUE
tsql, sqlite, mysql, oracle, teradata: SELECT COUNT(*) AS n FROM people WHERE smoker = 1

58 IF
duckdb: SELECT IF(age >= 65, 'old', 'young') AS who, COUNT(*) AS n FROM people GROUP BY who
*: SELECT CASE WHEN age >= 65 THEN 'old' ELSE 'young' END AS who, COUNT(*) AS n FROM people GROUP BY CASE WHEN age >= 65 THEN 'old' ELSE 'young' END
mysql, bigquery, spark, presto, hive, clickhouse: SELECT IF(age >= 65, 'old', 'young') AS who, COUNT(*) AS n FROM people GROUP BY 1
snowflake: SELECT IFF(age >= 65, 'old', 'young') AS who, COUNT(*) AS n FROM people GROUP BY 1
tsql: SELECT IIF(age >= 65, 'old', 'young') AS who, COUNT(*) AS n FROM people GROUP BY IIF(age >= 65, 'old', 'young')
oracle: SELECT DECODE(SIGN(age - 65), -1, 'young', 'old') AS who, COUNT(*) AS n FROM people GROUP BY DECODE(SIGN(age - 65), -1, 'young', 'old')

59 names in quotes
duckdb: SELECT "state" AS "The State", COUNT(*) AS "n" FROM "people" GROUP BY "state"
*: SELECT "state" AS "The State", COUNT(*) AS "n" FROM "people" GROUP BY "state"
mysql, bigquery, hive, spark, clickhouse, drill, solr: SELECT `state` AS `The State`, COUNT(*) AS `n` FROM `people` GROUP BY `state`
tsql, tableau: SELECT [state] AS [The State], COUNT(*) AS [n] FROM [people] GROUP BY [state]

60 division by what may be zero
duckdb: SELECT state, COUNT(*) FILTER (WHERE smoker) * 1.0 / NULLIF(COUNT(*), 0) AS share FROM people GROUP BY state
*: SELECT state, SUM(CASE WHEN smoker THEN 1 ELSE 0 END) * 1.0 / NULLIF(COUNT(*), 0) AS share FROM people GROUP BY state
tsql, oracle, teradata: SELECT state, SUM(CASE WHEN smoker = 1 THEN 1 ELSE 0 END) * 1.0 / NULLIF(COUNT(*), 0) AS share FROM people GROUP BY state
bigquery: SELECT state, SAFE_DIVIDE(COUNTIF(smoker), COUNT(*)) AS share FROM people GROUP BY state
snowflake: SELECT state, DIV0(COUNT_IF(smoker), COUNT(*)) AS share FROM people GROUP BY state

61 hours of a timestamp
duckdb: SELECT hour(seen) AS h, COUNT(*) AS n FROM people GROUP BY h
*: SELECT EXTRACT(HOUR FROM seen) AS h, COUNT(*) AS n FROM people GROUP BY EXTRACT(HOUR FROM seen)
tsql: SELECT DATEPART(hour, seen) AS h, COUNT(*) AS n FROM people GROUP BY DATEPART(hour, seen)
mysql, snowflake, presto, spark, hive: SELECT HOUR(seen) AS h, COUNT(*) AS n FROM people GROUP BY 1
clickhouse: SELECT toHour(seen) AS h, count(*) AS n FROM people GROUP BY h
sqlite: SELECT CAST(strftime('%H', seen) AS INTEGER) AS h, COUNT(*) AS n FROM people GROUP BY 1

62 the day of a timestamp
duckdb: SELECT COUNT(*) AS n FROM people WHERE CAST(seen AS DATE) = DATE '2022-03-01'
*: SELECT COUNT(*) AS n FROM people WHERE CAST(seen AS DATE) = DATE '2022-03-01'
postgres, redshift, snowflake: SELECT COUNT(*) AS n FROM people WHERE seen::date = '2022-03-01'
bigquery, mysql: SELECT COUNT(*) AS n FROM people WHERE DATE(seen) = '2022-03-01'
clickhouse: SELECT count(*) AS n FROM people WHERE toDate(seen) = '2022-03-01'
oracle: SELECT COUNT(*) AS n FROM people WHERE TRUNC(seen) = DATE '2022-03-01'
sqlite: SELECT COUNT(*) AS n FROM people WHERE date(seen) = '2022-03-01'

63 compared with an average
duckdb: SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people)
*: SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people)

64 a comment and a semicolon
duckdb: SELECT COUNT(*) AS n FROM people -- everybody
*: SELECT COUNT(*) AS n FROM people /* everybody */ ;
