"""The 22 questions of TPC-H: as they are asked of privsql, and as TPC-H writes them where the form differs.

`original` is run by plain DuckDB to check the answer; it shows the columns that `asked` shows, in their order. Questions in
two steps put what the first answered into the second at {first}.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tpch:
    number: int
    question: str
    asked: str
    original: str = ""  # "": the same text
    first: str = ""  # a question asked before, whose noisy answer becomes constants of this one
    code: str = ""  # of the refusal
    why: str = ""
    loses: str = ""  # what bounding may lose under dataset.POLICY


REVENUE = "l_extendedprice * (1 - l_discount)"
QUESTIONS = (
    Tpch(
        1,
        "sums and averages of lineitems by flag and status",
        f"""SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS qty, SUM(l_extendedprice) AS price, SUM({REVENUE}) AS disc,
            SUM({REVENUE} * (1 + l_tax)) AS charge, AVG(l_quantity) AS avg_qty, AVG(l_extendedprice) AS avg_price,
            AVG(l_discount) AS avg_disc, COUNT(*) AS n
            FROM lineitem WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL 90 DAY
            GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
        loses="items past 60 a customer and cell; of a customer in all four cells, one cell",
    ),
    Tpch(
        2,
        "the cheapest European supplier of each small brass part",
        """WITH offers AS (
                SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, ps_supplycost FROM part JOIN partsupp
                ON p_partkey = ps_partkey
                JOIN supplier ON s_suppkey = ps_suppkey JOIN nation ON s_nationkey = n_nationkey
                JOIN region ON n_regionkey = r_regionkey WHERE p_size <= 15 AND p_type LIKE '%BRASS' AND r_name = 'EUROPE')
            SELECT s_acctbal, s_name, n_name, offers.p_partkey, p_mfgr FROM offers
            JOIN (SELECT p_partkey, MIN(ps_supplycost) AS least FROM offers GROUP BY p_partkey) AS best
            ON offers.p_partkey = best.p_partkey AND ps_supplycost = least
            ORDER BY s_acctbal DESC, n_name, s_name, offers.p_partkey LIMIT 100""",
        """SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr FROM part, supplier, partsupp, nation, region
            WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size <= 15 AND p_type LIKE '%BRASS'
            AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE' AND ps_supplycost = (
                SELECT MIN(ps_supplycost) FROM partsupp, supplier, nation, region WHERE p_partkey = ps_partkey
                AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE')
            ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100""",
    ),
    Tpch(
        3,
        "the ten unshipped orders of highest value",
        f"""SELECT l_orderkey, SUM({REVENUE}) AS revenue, o_orderdate, o_shippriority FROM customer
            JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
            WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
            GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 10""",
        code="refused-rows",
        why="an order is one customer's: a list of orders names people",
    ),
    Tpch(
        4,
        "orders with a late lineitem, by priority",
        """SELECT o_orderpriority, COUNT(*) AS n FROM orders WHERE o_orderdate >= DATE '1993-07-01'
            AND o_orderdate < DATE '1993-10-01'
            AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
            GROUP BY o_orderpriority ORDER BY o_orderpriority""",
        loses="orders of a customer in a fourth priority",
    ),
    Tpch(
        5,
        "revenue by nation where customer and supplier are of the same one",
        f"""SELECT n_name, SUM({REVENUE}) AS revenue FROM customer JOIN orders ON c_custkey = o_custkey
            JOIN lineitem ON l_orderkey = o_orderkey JOIN supplier ON l_suppkey = s_suppkey AND c_nationkey = s_nationkey
            JOIN (SELECT * FROM nation WHERE n_regionkey IN (SELECT r_regionkey FROM region WHERE r_name = 'ASIA')) AS asian
            ON c_nationkey = n_nationkey
            WHERE o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1996-01-01' GROUP BY n_name ORDER BY revenue DESC""",
        f"""SELECT n_name, SUM({REVENUE}) FROM customer, orders, lineitem, supplier, nation, region
            WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
            AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
            AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1996-01-01' GROUP BY n_name""",
        loses="nothing here: one nation a customer, few items",
    ),
    Tpch(
        6,
        "what a change of discounts would have brought",
        """SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate >= DATE '1994-01-01'
            AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
        loses="items past 60 a customer: nobody has so many in one year",
    ),
    Tpch(
        7,
        "shipped between France and Germany, by year",
        f"""SELECT supp_nation, cust_nation, l_year, SUM(volume) AS revenue FROM (
                SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, extract(year
                FROM l_shipdate) AS l_year, {REVENUE} AS volume
                FROM lineitem JOIN supplier ON s_suppkey = l_suppkey JOIN orders ON o_orderkey = l_orderkey
                JOIN customer ON c_custkey = o_custkey JOIN nation n1 ON s_nationkey = n1.n_nationkey
                JOIN nation n2 ON c_nationkey = n2.n_nationkey
                WHERE ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
                AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31') AS shipping
            GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year""",
        loses="nothing: no customer is in more than two cells",
    ),
    Tpch(
        8,
        "Brazil's share of steel sold in America, by year",
        f"""SELECT o_year, SUM(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / SUM(volume) AS mkt_share FROM (
                SELECT extract(year FROM o_orderdate) AS o_year, {REVENUE} AS volume, n2.n_name AS nation
                FROM part JOIN lineitem ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey
                JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey
                JOIN nation n1 ON c_nationkey = n1.n_nationkey JOIN region ON n1.n_regionkey = r_regionkey
                JOIN nation n2 ON s_nationkey = n2.n_nationkey WHERE r_name = 'AMERICA'
                AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31' AND p_type LIKE '%STEEL') AS all_nations
            GROUP BY o_year ORDER BY o_year""",
        loses="nothing here: two years, few items of one kind",
    ),
    Tpch(
        9,
        "profit on green parts by nation and year",
        f"""SELECT nation, o_year, SUM(amount) AS sum_profit FROM (
                SELECT n_name AS nation, extract(year FROM o_orderdate) AS o_year,
                {REVENUE} - ps_supplycost * l_quantity AS amount
                FROM part JOIN lineitem ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey
                JOIN partsupp ON ps_suppkey = l_suppkey AND ps_partkey = l_partkey JOIN orders ON o_orderkey = l_orderkey
                JOIN nation ON s_nationkey = n_nationkey WHERE p_name LIKE '%green%') AS profit
            GROUP BY nation, o_year ORDER BY nation, o_year DESC""",
        loses="all but 3 of a customer's cells, which are nearly as many as green items; raise max_groups",
    ),
    Tpch(
        10,
        "the twenty customers who returned most",
        f"""SELECT c_custkey, c_name, SUM({REVENUE}) AS revenue, c_acctbal, n_name FROM customer
            JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey JOIN nation ON c_nationkey = n_nationkey
            WHERE o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R'
            GROUP BY c_custkey, c_name, c_acctbal, n_name ORDER BY revenue DESC LIMIT 20""",
        code="refused-rows",
        why="a list of customers names people",
    ),
    Tpch(
        11,
        "parts that are a large share of Germany's stock",
        """WITH stock AS (SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS worth FROM partsupp
                JOIN supplier ON ps_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey WHERE n_name = 'GERMANY'
                GROUP BY ps_partkey)
            SELECT ps_partkey, worth FROM stock CROSS JOIN (SELECT SUM(worth) * 0.02 AS least FROM stock) AS whole
            WHERE worth > least ORDER BY worth DESC""",
        """SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS worth FROM partsupp, supplier, nation
            WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY' GROUP BY ps_partkey
            HAVING SUM(ps_supplycost * ps_availqty) > (SELECT SUM(ps_supplycost * ps_availqty) * 0.02
            FROM partsupp, supplier, nation
                WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY') ORDER BY worth DESC""",
    ),
    Tpch(
        12,
        "late lineitems of urgent and of other orders, by ship mode",
        """SELECT l_shipmode, COUNT(*) FILTER (WHERE o_orderpriority IN ('1-URGENT', '2-HIGH')) AS high_line_count,
            COUNT(*) FILTER (WHERE o_orderpriority NOT IN ('1-URGENT', '2-HIGH')) AS low_line_count
            FROM orders JOIN lineitem ON o_orderkey = l_orderkey WHERE l_shipmode IN ('MAIL', 'SHIP')
            AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01'
            AND l_receiptdate < DATE '1995-01-01' GROUP BY l_shipmode ORDER BY l_shipmode""",
        """SELECT l_shipmode, SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END),
            SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END)
            FROM orders, lineitem WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP')
            AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01'
            AND l_receiptdate < DATE '1995-01-01' GROUP BY l_shipmode""",
        loses="nothing here: two modes, few late items",
    ),
    Tpch(
        13,
        "customers by their number of orders",
        """SELECT c_count, COUNT(*) AS custdist FROM (
                SELECT c_custkey, COUNT(o_orderkey) AS c_count FROM customer LEFT JOIN orders ON c_custkey = o_custkey
                AND o_comment NOT LIKE '%special%requests%' GROUP BY c_custkey) AS c_orders
            GROUP BY c_count ORDER BY custdist DESC, c_count DESC""",
        loses="customers of more than 20 orders (max_rows): their count is beyond the last key",
    ),
    Tpch(
        14,
        "the share of revenue from promoted parts",
        f"""SELECT 100.00 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN {REVENUE} ELSE 0 END) / SUM({REVENUE}) AS promo_revenue
            FROM lineitem JOIN part ON l_partkey = p_partkey
            WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'""",
        loses="items past 60 a customer: nobody has so many in one month",
    ),
    Tpch(
        15,
        "the supplier of the highest revenue in a quarter",
        f"""SELECT s_name FROM lineitem JOIN supplier ON s_suppkey = l_suppkey WHERE l_shipdate >= DATE '1996-01-01'
            AND l_shipdate < DATE '1996-04-01' GROUP BY s_name ORDER BY SUM({REVENUE}) DESC LIMIT 1""",
        f"""WITH revenue AS (SELECT l_suppkey AS supplier_no, SUM({REVENUE}) AS total FROM lineitem
                WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01' GROUP BY l_suppkey)
            SELECT s_name FROM supplier, revenue WHERE s_suppkey = supplier_no AND total = (SELECT MAX(total) FROM revenue)""",
        loses="all but 3 of a customer's suppliers in the quarter",
    ),
    Tpch(
        16,
        "suppliers without complaints, by brand, type and size of part",
        """SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp JOIN part
            ON p_partkey = ps_partkey
            WHERE p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%' AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
            AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
            GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC, p_brand, p_type, p_size""",
    ),
    Tpch(
        17,
        "revenue a year from unusually small purchases of a kind of part",
        """SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem JOIN (VALUES {first}) AS usual(partkey, quantity)
            ON l_partkey = partkey AND l_quantity < 0.2 * quantity""",
        """SELECT SUM(l_extendedprice) / 7.0 FROM lineitem, part WHERE p_partkey = l_partkey AND p_brand = 'Brand#23'
            AND p_container LIKE 'MED %'
            AND l_quantity < (SELECT 0.2 * AVG(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)""",
        """SELECT p_partkey, AVG(l_quantity) AS quantity FROM lineitem
            JOIN (SELECT p_partkey FROM part WHERE p_brand = 'Brand#23' AND p_container LIKE 'MED %') AS wanted
            ON l_partkey = p_partkey GROUP BY p_partkey""",
        loses="items past 60 a customer: nobody has so many",
    ),
    Tpch(
        18,
        "customers with very large orders",
        """SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity) AS quantity FROM customer
            JOIN orders ON c_custkey = o_custkey JOIN lineitem ON o_orderkey = l_orderkey
            WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 300)
            GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
            ORDER BY o_totalprice DESC, o_orderdate LIMIT 100""",
        code="refused-rows",
        why="a list of customers and their orders names people",
    ),
    Tpch(
        19,
        "revenue of three kinds of parts, shipped by air and handed over in person",
        f"""SELECT SUM({REVENUE}) AS revenue FROM lineitem JOIN part ON p_partkey = l_partkey
            WHERE l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON'
            AND ((p_brand = 'Brand#12' AND p_container LIKE 'SM %' AND l_quantity BETWEEN 1 AND 11 AND p_size BETWEEN 1 AND 50)
            OR (p_brand = 'Brand#23' AND p_container LIKE 'MED %' AND l_quantity BETWEEN 10 AND 20 AND p_size BETWEEN 1 AND 50)
            OR (p_brand = 'Brand#34' AND p_container LIKE 'LG %' AND l_quantity BETWEEN 20 AND 30
            AND p_size BETWEEN 1 AND 50))""",
        loses="items past 60 a customer: nobody has so many",
    ),
    Tpch(
        20,
        "Canadian suppliers with more forest parts in stock than twice what a year sold",
        """SELECT DISTINCT s_name FROM (
                SELECT s_name, ps_partkey, ps_availqty, SUM(l_quantity) AS sold, COUNT(*) AS n FROM lineitem JOIN (
                    SELECT s_name, ps_partkey, ps_suppkey, ps_availqty FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey
                    JOIN nation ON s_nationkey = n_nationkey JOIN part ON p_partkey = ps_partkey
                    WHERE n_name = 'CANADA' AND p_name LIKE 'forest%') AS stock
                ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey
                WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
                GROUP BY s_name, ps_partkey, ps_availqty HAVING COUNT(*) > 0.5 AND ps_availqty > 0.5 * SUM(l_quantity))
            ORDER BY s_name""",
        """SELECT s_name FROM supplier, nation WHERE s_suppkey IN (
                SELECT ps_suppkey FROM partsupp WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
                AND ps_availqty > (SELECT 0.5 * SUM(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey
                AND l_suppkey = ps_suppkey
                    AND l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'))
            AND s_nationkey = n_nationkey AND n_name = 'CANADA' ORDER BY s_name""",
        loses="items of a customer in a fourth cell",
    ),
    Tpch(
        21,
        "Saudi suppliers who alone kept orders waiting",
        """SELECT s_name, COUNT(*) AS numwait FROM lineitem l1 JOIN orders ON o_orderkey = l1.l_orderkey
            JOIN (SELECT s_suppkey, s_name FROM supplier JOIN nation ON s_nationkey = n_nationkey
            WHERE n_name = 'SAUDI ARABIA') AS saudi
            ON s_suppkey = l1.l_suppkey WHERE o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate
            AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
            AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
                AND l3.l_receiptdate > l3.l_commitdate)
            GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100""",
        """SELECT s_name, COUNT(*) AS numwait FROM supplier, lineitem l1, orders, nation WHERE s_suppkey = l1.l_suppkey
            AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate
            AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
            AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
                AND l3.l_receiptdate > l3.l_commitdate) AND s_nationkey = n_nationkey AND n_name = 'SAUDI ARABIA'
            GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100""",
        loses="nothing: two suppliers, few items",
    ),
    Tpch(
        22,
        "customers with a good balance and no orders, by country code",
        """SELECT substring(c_phone FROM 1 FOR 2) AS cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal FROM customer
            WHERE substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17') AND c_acctbal > {first}
            AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey) GROUP BY 1 ORDER BY cntrycode""",
        """SELECT cntrycode, COUNT(*), SUM(c_acctbal) FROM (
                SELECT substring(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal FROM customer
                WHERE substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17') AND c_acctbal > (
                    SELECT AVG(c_acctbal) FROM customer WHERE c_acctbal > 0.00
                    AND substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17'))
                AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale GROUP BY cntrycode""",
        """SELECT AVG(c_acctbal) AS usual FROM customer WHERE c_acctbal > 0.00
            AND substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')""",
        loses="nothing: a customer has one row",
    ),
)
