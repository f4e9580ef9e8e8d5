"""Scalar functions of other engines, each written with functions that have a rule.

A name is here only if it means the same in every engine that has it.
"""

from __future__ import annotations

from privsql.sql.parse.rewritten.templates import read_templates

SCALARS = read_templates("""
nvl2 3 => CASE WHEN a IS NOT NULL THEN b ELSE c END
Nvl2 this true false => CASE WHEN a IS NOT NULL THEN b ELSE c END
EqualNull this expression => a IS NOT DISTINCT FROM b
isnull nvl ifnull 2 => COALESCE(a, b)
nullifzero 1 => NULLIF(a, 0)
WidthBucket this min_value max_value num_buckets => CASE WHEN a < b THEN 0 WHEN a >= c THEN d + 1
    ELSE CAST(floor((a - b) * d / (c - b)) AS INTEGER) + 1 END
iif 3 => CASE WHEN a THEN b ELSE c END
square 1 => pow(a, 2)
log1p 1 => ln(1 + a)
expm1 1 => exp(a) - 1
hypot 2 => sqrt(pow(a, 2) + pow(b, 2))
e 0 => exp(1)
Cot this => 1 / tan(a)
cot 1 => 1 / tan(a)
BitwiseCount this => bit_count(a)
bitcount 1 => bit_count(a)
btrim 1 => trim(a)
btrim 2 => trim(a, b)
ByteLength this => strlen(a)
octet_length 1 => strlen(a)
ToChar this => CAST(a AS VARCHAR)
String this => CAST(a AS VARCHAR)
to_varchar to_char tostring 1 => CAST(a AS VARCHAR)
toint8 1 => CAST(a AS TINYINT)
toint16 1 => CAST(a AS SMALLINT)
toint32 1 => CAST(a AS INTEGER)
toint64 to_int64 1 => CAST(a AS BIGINT)
tofloat32 tofloat64 1 => CAST(a AS DOUBLE)
todate to_date try_to_date 1 => CAST(a AS DATE)
TsOrDsToDate this safe => TRY_CAST(a AS DATE)
todatetime datetime 1 => CAST(a AS TIMESTAMP)
Timestamp this => CAST(a AS TIMESTAMP)
Datetime this => CAST(a AS TIMESTAMP)
TsOrDsToDatetime this => CAST(a AS TIMESTAMP)
Time this => CAST(a AS TIME)
TsOrDsToTime this => CAST(a AS TIME)
toyear 1 => year(a)
toquarter 1 => quarter(a)
tomonth 1 => month(a)
todayofmonth 1 => day(a)
todayofyear 1 => dayofyear(a)
tohour 1 => hour(a)
tominute 1 => minute(a)
tosecond 1 => second(a)
toisoweek 1 => week(a)
toisoyear 1 => isoyear(a)
tomonday 1 => CAST(date_trunc('week', a) AS DATE)
toyyyymm 1 => year(a) * 100 + month(a)
toyyyymmdd 1 => year(a) * 10000 + month(a) * 100 + day(a)
eomonth 1 => last_day(a)
UnixSeconds this => CAST(floor(epoch(a)) AS BIGINT)
unix_timestamp 1 => CAST(floor(epoch(a)) AS BIGINT)
to_unix_timestamp 1 => CAST(floor(epoch(a)) AS BIGINT)
UnixMillis this => CAST(floor(epoch(a) * 1000) AS BIGINT)
UnixDate this => date_diff('day', DATE '1970-01-01', CAST(a AS DATE))
""")
