-- Queries as analysts write them, one a paragraph, over the shop, the clinic and the flights of analyst_tables.py.
-- test_queries.py compares each with plain DuckDB. "-- waits: why" before a query: it is refused so far; its test
-- fails as soon as it is answered.

-- percent of total
SELECT carrier, COUNT(*) AS flights, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS pct FROM flights GROUP BY carrier ORDER BY flights DESC

SELECT origin, carrier, COUNT(*) AS n, 1.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY origin) AS share_of_origin FROM flights GROUP BY origin, carrier

SELECT c.country, SUM(o.amount) AS revenue, 100.0 * SUM(o.amount) / SUM(SUM(o.amount)) OVER () AS pct_of_revenue FROM orders o JOIN customers c ON c.customer_id = o.customer_id GROUP BY c.country

WITH by_category AS (
    SELECT p.category, SUM(i.quantity * i.price) AS revenue
    FROM items i JOIN products p ON p.product_id = i.product_id
    GROUP BY p.category
)
SELECT category, revenue, revenue / SUM(revenue) OVER () AS share FROM by_category

SELECT department, COUNT(*) AS visits, AVG(CASE WHEN no_show THEN 1.0 ELSE 0.0 END) AS no_show_rate, 100.0 * SUM(CASE WHEN no_show THEN 1 ELSE 0 END) / SUM(SUM(CASE WHEN no_show THEN 1 ELSE 0 END)) OVER () AS pct_of_no_shows FROM appointments GROUP BY department

SELECT insurance, COUNT(*) * 100.0 / (SELECT COUNT(*) FROM patients) AS pct FROM patients GROUP BY insurance

SELECT COUNT(*) FILTER (WHERE dep_delay > 15) * 1.0 / COUNT(*) AS late_share, COUNT(*) FILTER (WHERE dep_delay IS NULL) * 1.0 / COUNT(*) AS cancelled_share FROM flights

SELECT channel, status, COUNT(*) AS n, ROUND(COUNT(*) * 100.0 / SUM(COUNT(*)) OVER (PARTITION BY channel), 1) AS pct FROM orders GROUP BY channel, status

-- running totals and moving averages
SELECT month, COUNT(*) AS flights, SUM(COUNT(*)) OVER (ORDER BY month) AS so_far FROM flights GROUP BY month ORDER BY month

SELECT date_trunc('month', placed) AS m, SUM(amount) AS revenue, SUM(SUM(amount)) OVER (ORDER BY date_trunc('month', placed)) AS cumulative FROM orders WHERE placed < DATE '2024-01-01' GROUP BY m

SELECT date_trunc('month', placed) AS m, SUM(amount) AS revenue, AVG(SUM(amount)) OVER (ORDER BY date_trunc('month', placed) ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS three_months FROM orders GROUP BY 1

WITH daily AS (SELECT dayofweek(flown) AS d, COUNT(*) AS n FROM flights GROUP BY d) SELECT d, n, SUM(n) OVER (ORDER BY d ROWS UNBOUNDED PRECEDING) AS running, n - AVG(n) OVER () AS above_average FROM daily

WITH m AS (SELECT year(placed) AS y, month(placed) AS m, SUM(amount) AS revenue FROM orders GROUP BY y, m) SELECT y, m, revenue, SUM(revenue) OVER (PARTITION BY y ORDER BY m) AS year_to_date, revenue * 1.0 / SUM(revenue) OVER (PARTITION BY y) AS share_of_year FROM m

SELECT hour, COUNT(*) AS n, COUNT(*) * 1.0 / MAX(COUNT(*)) OVER () AS of_peak FROM flights GROUP BY hour

-- month over month, year over year
WITH monthly AS (SELECT date_trunc('month', placed) AS m, COUNT(*) AS orders FROM orders GROUP BY m) SELECT m, orders, orders - LAG(orders) OVER (ORDER BY m) AS change, ROUND(100.0 * (orders - LAG(orders) OVER (ORDER BY m)) / LAG(orders) OVER (ORDER BY m), 1) AS pct_change FROM monthly

SELECT month, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*), 1) OVER (ORDER BY month) AS mom, LEAD(COUNT(*)) OVER (ORDER BY month) AS next FROM flights GROUP BY month

WITH a AS (SELECT month(placed) AS m, SUM(amount) AS revenue FROM orders WHERE year(placed) = 2022 GROUP BY m), b AS (SELECT month(placed) AS m, SUM(amount) AS revenue FROM orders WHERE year(placed) = 2023 GROUP BY m) SELECT COALESCE(a.m, b.m) AS month, a.revenue AS y2022, b.revenue AS y2023, b.revenue - a.revenue AS change FROM a FULL OUTER JOIN b ON a.m = b.m ORDER BY month

WITH q AS (SELECT year(placed) AS y, quarter(placed) AS q, COUNT(*) AS n FROM orders GROUP BY 1, 2) SELECT cur.y, cur.q, cur.n, prev.n AS last_year, 1.0 * cur.n / prev.n - 1 AS growth FROM q cur JOIN q prev ON cur.q = prev.q AND cur.y = prev.y + 1

SELECT m, SUM(CASE WHEN y = 2022 THEN n END) AS y2022, SUM(CASE WHEN y = 2023 THEN n END) AS y2023 FROM (SELECT year(placed) AS y, month(placed) AS m, COUNT(*) AS n FROM orders WHERE placed BETWEEN '2022-01-01' AND '2023-12-31' GROUP BY ALL) GROUP BY m

WITH v AS (SELECT year(day) AS y, department, COUNT(*) AS n FROM appointments GROUP BY y, department) SELECT department, FIRST_VALUE(n) OVER (PARTITION BY department ORDER BY y) AS first_year, n, n - LAG(n) OVER (PARTITION BY department ORDER BY y) AS change FROM v QUALIFY ROW_NUMBER() OVER (PARTITION BY department ORDER BY y DESC) = 1

-- cohorts and retention
WITH first_orders AS (SELECT customer_id, MIN(placed) AS first FROM orders GROUP BY customer_id) SELECT date_trunc('month', first) AS cohort, COUNT(*) AS customers FROM first_orders GROUP BY cohort ORDER BY cohort

SELECT date_trunc('quarter', signup) AS cohort, COUNT(*) AS customers, AVG(n) AS orders_each FROM (SELECT c.customer_id, c.signup, COUNT(o.order_id) AS n FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id GROUP BY c.customer_id, c.signup) GROUP BY cohort

WITH f AS (SELECT customer_id, MIN(placed) AS first FROM orders GROUP BY customer_id) SELECT year(f.first) AS cohort, COUNT(DISTINCT o.customer_id) AS active_in_2023 FROM f JOIN orders o ON o.customer_id = f.customer_id WHERE year(o.placed) = 2023 GROUP BY cohort HAVING COUNT(DISTINCT o.customer_id) > 0.5

WITH f AS (SELECT patient_id, MIN(day) AS first FROM appointments GROUP BY patient_id), r AS (SELECT a.patient_id, COUNT(*) FILTER (WHERE a.day > f.first AND a.day <= f.first + INTERVAL 90 DAY) AS again FROM appointments a JOIN f ON f.patient_id = a.patient_id GROUP BY a.patient_id) SELECT COUNT(*) AS patients, COUNT(*) FILTER (WHERE again > 0) AS returned, COUNT(*) FILTER (WHERE again > 0) * 1.0 / COUNT(*) AS retention FROM r

WITH first_month AS (SELECT customer_id, date_trunc('month', MIN(placed)) AS cohort FROM orders GROUP BY customer_id), sizes AS (SELECT cohort, COUNT(*) AS customers FROM first_month GROUP BY cohort), later AS (SELECT f.cohort, COUNT(DISTINCT o.customer_id) AS returned FROM first_month f JOIN orders o USING (customer_id) WHERE date_trunc('month', o.placed) > f.cohort GROUP BY f.cohort) SELECT s.cohort, s.customers, l.returned, ROUND(100.0 * l.returned / s.customers, 1) AS pct FROM sizes s LEFT JOIN later l ON l.cohort = s.cohort WHERE s.customers > 20 ORDER BY s.cohort

-- funnels
SELECT COUNT(DISTINCT customer_id) AS ordered, COUNT(DISTINCT CASE WHEN status <> 'placed' THEN customer_id END) AS paid, COUNT(DISTINCT CASE WHEN status IN ('shipped', 'returned') THEN customer_id END) AS shipped FROM orders

WITH f AS (SELECT (SELECT COUNT(*) FROM customers) AS signed_up, (SELECT COUNT(DISTINCT customer_id) FROM orders) AS ordered, (SELECT COUNT(DISTINCT customer_id) FROM orders WHERE status = 'returned') AS returned) SELECT signed_up, ordered, returned, 1.0 * ordered / signed_up AS to_order, 1.0 * returned / ordered AS to_return FROM f

SELECT 'signed up' AS step, COUNT(*) AS n FROM customers UNION ALL SELECT 'ordered', COUNT(DISTINCT customer_id) FROM orders UNION ALL SELECT 'shipped', COUNT(DISTINCT customer_id) FROM orders WHERE status = 'shipped'

WITH steps AS (SELECT status, COUNT(*) AS n FROM orders GROUP BY status) SELECT status, n, n * 1.0 / FIRST_VALUE(n) OVER (ORDER BY n DESC) AS of_most FROM steps

SELECT channel, COUNT(*) AS orders, SUM(CASE WHEN status = 'returned' THEN 1 ELSE 0 END) AS returns, ROUND(100.0 * SUM(CASE WHEN status = 'returned' THEN 1 ELSE 0 END) / COUNT(*), 2) AS return_rate FROM orders GROUP BY channel HAVING COUNT(*) > 100 ORDER BY return_rate DESC

-- grouped subqueries joined
SELECT d.department, d.budget, v.n, 1.0 * d.budget / v.n AS per_visit FROM departments d JOIN (SELECT department, COUNT(*) AS n FROM appointments GROUP BY department) v USING (department) ORDER BY per_visit

SELECT t.country, t.target, r.revenue, r.revenue - t.target AS over FROM targets t LEFT JOIN (SELECT c.country, SUM(o.amount) AS revenue FROM customers c JOIN orders o USING (customer_id) GROUP BY c.country) r ON r.country = t.country

WITH delays AS (SELECT carrier, AVG(dep_delay) AS dep, AVG(arr_delay) AS arr FROM flights GROUP BY carrier), counts AS (SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier) SELECT a.name, n, dep, arr, arr - dep AS made_up FROM delays JOIN counts USING (carrier) JOIN airlines a USING (carrier) ORDER BY n DESC

WITH o AS (SELECT country, COUNT(*) AS orders FROM orders JOIN customers USING (customer_id) GROUP BY country), c AS (SELECT country, COUNT(*) AS customers FROM customers GROUP BY country) SELECT region, SUM(orders) * 1.0 / SUM(customers) AS orders_per_customer FROM o JOIN c USING (country) JOIN targets USING (country) GROUP BY region

SELECT a.coast, SUM(f.n) AS flights FROM airports a JOIN (SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest) f ON f.dest = a.faa GROUP BY a.coast

WITH smokers AS (SELECT sex, AVG(bmi) AS bmi FROM patients WHERE smoker GROUP BY sex), others AS (SELECT sex, AVG(bmi) AS bmi FROM patients WHERE NOT smoker GROUP BY sex) SELECT s.sex, s.bmi AS smokers, o.bmi AS others, s.bmi - o.bmi AS gap FROM smokers s, others o WHERE s.sex = o.sex

-- compared with an average
SELECT carrier, AVG(arr_delay) AS delay, AVG(arr_delay) - (SELECT AVG(arr_delay) FROM flights) AS above FROM flights GROUP BY carrier HAVING COUNT(*) > 500

SELECT country, COUNT(*) AS n FROM customers GROUP BY country HAVING COUNT(*) > (SELECT AVG(n) FROM (SELECT country, COUNT(*) AS n FROM customers GROUP BY country))

SELECT COUNT(*) AS big_orders FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)

SELECT channel, COUNT(*) AS n FROM orders WHERE amount > 1.5 * (SELECT AVG(amount) FROM orders) GROUP BY channel

SELECT o.channel, COUNT(*) AS above_own_channel FROM orders o JOIN (SELECT channel, AVG(amount) AS mean FROM orders GROUP BY channel) m ON m.channel = o.channel WHERE o.amount > m.mean GROUP BY o.channel

SELECT sex, COUNT(*) AS n FROM patients WHERE age > (SELECT AVG(age) FROM patients WHERE smoker) GROUP BY sex

WITH d AS (SELECT department, AVG(cost) AS cost FROM appointments GROUP BY department) SELECT department, cost, CASE WHEN cost > (SELECT AVG(cost) FROM d) THEN 'above' ELSE 'below' END AS side FROM d

SELECT origin, AVG(dep_delay) AS delay, RANK() OVER (ORDER BY AVG(dep_delay) DESC) AS place FROM flights WHERE dep_delay IS NOT NULL GROUP BY origin

-- top n, overall and in groups
SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest ORDER BY n DESC LIMIT 3

SELECT origin, dest, n FROM (SELECT origin, dest, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY origin ORDER BY COUNT(*) DESC) AS place FROM flights GROUP BY origin, dest) WHERE place <= 2

SELECT country, segment, SUM(amount) AS revenue FROM orders JOIN customers USING (customer_id) GROUP BY country, segment QUALIFY RANK() OVER (PARTITION BY country ORDER BY SUM(amount) DESC) = 1

WITH p AS (SELECT product_id, SUM(quantity) AS sold FROM items GROUP BY product_id) SELECT name, sold FROM p JOIN products USING (product_id) ORDER BY sold DESC LIMIT 5

WITH p AS (SELECT product_id, SUM(quantity) AS sold FROM items GROUP BY product_id) SELECT category, name, sold FROM p JOIN products USING (product_id) QUALIFY ROW_NUMBER() OVER (PARTITION BY category ORDER BY sold DESC) = 1

SELECT COUNT(*) AS n FROM flights WHERE dest IN (SELECT dest FROM flights GROUP BY dest ORDER BY COUNT(*) DESC LIMIT 2)

SELECT carrier, n, SUM(n) OVER (ORDER BY n DESC) * 1.0 / SUM(n) OVER () AS pareto FROM (SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier) ORDER BY n DESC

-- one row a person, then statistics over people
SELECT AVG(n) AS orders_each, MAX(n) AS most FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id)

SELECT n AS orders, COUNT(*) AS customers FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) GROUP BY n HAVING COUNT(*) > 0.5 ORDER BY n

SELECT CASE WHEN spent < 200 THEN 'small' WHEN spent < 1000 THEN 'medium' ELSE 'large' END AS size, COUNT(*) AS customers, AVG(spent) AS spent FROM (SELECT customer_id, SUM(amount) AS spent FROM orders GROUP BY customer_id) GROUP BY size

SELECT COUNT(*) AS loyal FROM (SELECT customer_id FROM orders GROUP BY customer_id HAVING COUNT(*) >= 5)

SELECT sex, AVG(visits) AS visits_each FROM (SELECT p.patient_id, p.sex, COUNT(a.day) AS visits FROM patients p LEFT JOIN appointments a ON a.patient_id = p.patient_id GROUP BY p.patient_id, p.sex) GROUP BY sex

SELECT segment, COUNT(*) AS never_ordered FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id) GROUP BY segment

SELECT country, COUNT(*) AS returned_something FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND o.status = 'returned') GROUP BY country

SELECT department, AVG(spent) AS spent_by_patient, COUNT(*) AS patients FROM (SELECT patient_id, department, SUM(cost) AS spent FROM appointments GROUP BY patient_id, department) GROUP BY department

SELECT date_diff('day', first, last) // 90 AS quarters, COUNT(*) AS n FROM (SELECT customer_id, MIN(placed) AS first, MAX(placed) AS last FROM orders GROUP BY customer_id) WHERE last > first AND date_diff('day', first, last) < 450 GROUP BY quarters HAVING COUNT(*) > 0.5

-- pivots
SELECT * FROM (SELECT origin, carrier, COUNT(*) AS n FROM flights GROUP BY ALL) PIVOT (SUM(n) FOR carrier IN ('AA', 'DL', 'UA')) ORDER BY origin

SELECT channel, COUNT(*) FILTER (WHERE status = 'placed') AS placed, COUNT(*) FILTER (WHERE status = 'paid') AS paid, COUNT(*) FILTER (WHERE status = 'shipped') AS shipped, COUNT(*) FILTER (WHERE status = 'returned') AS returned FROM orders GROUP BY channel

SELECT segment, SUM(CASE WHEN newsletter THEN 1 ELSE 0 END) AS subscribed, SUM(CASE WHEN NOT newsletter THEN 1 ELSE 0 END) AS not_subscribed, AVG(CASE WHEN newsletter THEN 1.0 ELSE 0 END) AS share FROM customers GROUP BY segment

SELECT * FROM (SELECT department, year(day) AS y, COUNT(*) AS n FROM appointments GROUP BY ALL) PIVOT (SUM(n) FOR y IN (2023, 2024))

SELECT what, n FROM (SELECT COUNT(*) FILTER (WHERE dep_delay > 60) AS very_late, COUNT(*) FILTER (WHERE dep_delay BETWEEN 16 AND 60) AS late, COUNT(*) FILTER (WHERE dep_delay <= 15) AS on_time FROM flights) UNPIVOT (n FOR what IN (very_late, late, on_time))

-- histograms and segments
SELECT distance // 500 * 500 AS bucket, COUNT(*) AS n FROM flights GROUP BY bucket ORDER BY bucket

SELECT FLOOR(amount / 100.0) * 100 AS from_amount, COUNT(*) AS n, REPEAT('*', CAST(COUNT(*) / 100 AS INTEGER)) AS bar FROM orders GROUP BY 1 HAVING COUNT(*) > 0.5 ORDER BY 1

SELECT CASE WHEN age < 18 THEN '0-17' WHEN age < 40 THEN '18-39' WHEN age < 65 THEN '40-64' ELSE '65+' END AS age_group, COUNT(*) AS n, AVG(bmi) AS bmi FROM patients GROUP BY 1 ORDER BY 1

SELECT (2024 - birth_year) // 10 * 10 AS decade, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY (2024 - birth_year) // 10 * 10) AS up_to FROM customers GROUP BY decade

SELECT carrier, NTILE(3) OVER (ORDER BY AVG(arr_delay)) AS tercile, AVG(arr_delay) AS delay FROM flights GROUP BY carrier

SELECT tier, COUNT(*) AS countries, SUM(revenue) AS revenue FROM (SELECT country, SUM(amount) AS revenue, NTILE(2) OVER (ORDER BY SUM(amount) DESC) AS tier FROM orders JOIN customers USING (customer_id) GROUP BY country) GROUP BY tier

SELECT hour // 6 AS part_of_day, COUNT(*) AS n, AVG(dep_delay) AS delay, MEDIAN(dep_delay) AS median_delay FROM flights WHERE dep_delay IS NOT NULL GROUP BY ALL ORDER BY ALL

-- statistics
SELECT carrier, AVG(arr_delay) AS m, STDDEV_SAMP(arr_delay) AS sd, STDDEV_SAMP(arr_delay) / SQRT(COUNT(arr_delay)) AS standard_error FROM flights GROUP BY carrier

SELECT CORR(dep_delay, arr_delay) AS r, REGR_SLOPE(arr_delay, dep_delay) AS slope FROM flights

SELECT department, QUANTILE_CONT(minutes, 0.5) AS median, QUANTILE_CONT(minutes, 0.9) AS p90 FROM appointments GROUP BY department

SELECT sex, COUNT(*) AS n, SUM(CASE WHEN smoker THEN 1 ELSE 0 END) AS smokers, SUM(CASE WHEN smoker THEN 1 ELSE 0 END) * 1.0 / COUNT(*) / ((SELECT COUNT(*) FROM patients WHERE smoker) * 1.0 / (SELECT COUNT(*) FROM patients)) AS index_to_all FROM patients GROUP BY sex

WITH s AS (SELECT COUNT(*) AS n, AVG(age) AS m, VAR_SAMP(age) AS v FROM patients WHERE smoker), t AS (SELECT COUNT(*) AS n, AVG(age) AS m, VAR_SAMP(age) AS v FROM patients WHERE NOT smoker) SELECT s.m - t.m AS difference, SQRT(s.v / s.n + t.v / t.n) AS standard_error FROM s, t

-- everything at once
WITH monthly AS (
    SELECT date_trunc('month', o.placed) AS m, c.country, SUM(o.amount) AS revenue, COUNT(DISTINCT o.customer_id) AS buyers
    FROM orders o JOIN customers c ON o.customer_id = c.customer_id
    WHERE o.status <> 'returned' AND o.placed >= DATE '2023-01-01' AND o.placed < DATE '2024-01-01'
    GROUP BY 1, 2
), ranked AS (
    SELECT *, RANK() OVER (PARTITION BY m ORDER BY revenue DESC) AS place, revenue * 1.0 / NULLIF(buyers, 0) AS per_buyer FROM monthly
)
SELECT m, country, revenue, per_buyer FROM ranked WHERE place = 1 ORDER BY m

WITH base AS (SELECT origin, month, COUNT(*) AS n, AVG(dep_delay) AS delay FROM flights GROUP BY origin, month)
SELECT origin, arg_max(month, delay) AS worst_month, MAX(delay) AS worst, arg_min(month, delay) AS best_month, SUM(n * delay) / SUM(n) AS year
FROM base GROUP BY origin

SELECT name, n FROM (SELECT carrier, COUNT(*) AS n FROM flights WHERE month IN (6, 7, 8) GROUP BY carrier EXCEPT SELECT carrier, COUNT(*) AS n FROM flights WHERE month = 0 GROUP BY carrier) JOIN airlines USING (carrier)

SELECT string_agg(country, ', ' ORDER BY n DESC) AS by_size FROM (SELECT country, COUNT(*) AS n FROM customers GROUP BY country)

SELECT s.country, s.n, (SELECT COUNT(*) FROM (SELECT country, COUNT(*) AS n FROM customers GROUP BY country) x WHERE x.n > s.n) AS larger FROM (SELECT country, COUNT(*) AS n FROM customers GROUP BY country) s

-- what other work under way will answer
-- waits: windows within one person
SELECT department, COUNT(*) AS first_visits FROM (SELECT department, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day, department, cost, minutes) AS visit FROM appointments) WHERE visit = 1 GROUP BY department

-- waits: windows within one person
SELECT AVG(gap) AS days_between FROM (SELECT day - LAG(day) OVER (PARTITION BY patient_id ORDER BY day) AS gap FROM appointments) WHERE gap BETWEEN 0 AND 365

-- waits: windows within one person
SELECT channel, COUNT(*) AS last_orders FROM (SELECT channel FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY placed DESC, order_id) = 1) GROUP BY channel

-- waits: windows within one person
WITH o AS (SELECT customer_id, channel, LEAD(channel) OVER (PARTITION BY customer_id ORDER BY placed, order_id) AS next FROM orders) SELECT channel, next, COUNT(*) AS n FROM o WHERE next IN ('web', 'app', 'store') GROUP BY channel, next

-- waits: windows within one person
WITH o AS (SELECT amount, SUM(amount) OVER (PARTITION BY customer_id ORDER BY placed, order_id) AS so_far FROM orders) SELECT COUNT(*) AS orders_past_1000 FROM o WHERE so_far > 1000

-- waits: a public table on the left of a LEFT JOIN
SELECT d.department, COUNT(a.day) AS visits FROM departments d LEFT JOIN appointments a ON a.department = d.department GROUP BY d.department

-- waits: a public table on the left of a LEFT JOIN
SELECT t.region, SUM(o.amount) AS revenue FROM targets t LEFT JOIN customers c ON c.country = t.country LEFT JOIN orders o ON o.customer_id = c.customer_id GROUP BY t.region

-- waits: NATURAL joins
SELECT country, COUNT(*) AS n FROM customers NATURAL JOIN orders GROUP BY country

SELECT c.country, COUNT(*) AS n FROM items i LEFT JOIN orders o ON o.order_id = i.order_id JOIN customers c ON c.customer_id = o.customer_id GROUP BY c.country

SELECT f.carrier, a.name, COUNT(*) AS n FROM flights f JOIN airlines a ON a.carrier = f.carrier GROUP BY f.carrier, a.name HAVING COUNT(*) > 0.5

-- waits: schema.table
SELECT COUNT(*) AS n FROM main.flights WHERE dest = 'BOS'

-- waits: SUM(DISTINCT x)
SELECT SUM(DISTINCT price) AS s FROM items

-- waits: histograms as a function
SELECT histogram(quantity) AS h FROM items

SELECT m.month, COALESCE(n, 0) AS n FROM generate_series(1, 12) m(month) LEFT JOIN (SELECT month, COUNT(*) AS n FROM flights GROUP BY month) f ON f.month = m.month
