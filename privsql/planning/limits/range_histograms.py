"""A query with undeclared ranges goes in; the columns that need a range come out, and for each the query that
searches for it.

A search counts a column's values in buckets that double: 0, (1/2, 1], (1, 2], (2, 4] ... on either side. That
is a histogram with a finite set of keys, run like any other query for a share of epsilon; the range is read
off its noisy counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from privsql.algebra.build import arithmetic, call, compare, convert, negate, shared_type, unify
from privsql.algebra.expressions import Aggregate, Call, Column, Expression, Literal
from privsql.algebra.relations import BoundQuery, Choose, Filter, Key, Project, Release, Scan
from privsql.analysis.derive import names_in
from privsql.analysis.undeclared import origins, scans
from privsql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER_BOUNDS, Kind, Type, integer

SHARE = Fraction(1, 5)  # of epsilon, for all searches of a query together
_LEAST, _MOST = -20, 60  # buckets from 2^-20 to 2^60
LARGEST = 2.0**_MOST  # larger values share the last bucket, so its end does not bound them
_OFFSET = 100  # added to the exponent in a bucket's key, so that 0 and the signs have keys of their own


@dataclass(frozen=True)
class Unknown:
    """A column whose range is to be searched for."""

    table: str
    column: str
    type: Type = field(compare=False)

    @property
    def name(self) -> str:
        return f"{self.table}.{self.column}"


def size_histogram(scan: Scan, name: str) -> BoundQuery:
    """Count the values of a column by doubling bucket: SELECT bucket, COUNT(*) AS n FROM (one bucket per
    value) GROUP BY bucket HAVING bucket IS NOT NULL.
    """
    column = next(each.column for each in scan.fields if each.name == name)
    values = Filter(scan, _is_known(column))
    buckets = Project(values, (("bucket", _bucket(column)),))
    bucket, count = buckets.fields[0].column, Column("count", BIGINT)
    release = Release(
        buckets, (Key("bucket", bucket, "bucket"),), (("count", Aggregate("count", None, None, BIGINT)),)
    )
    shown = Project(Filter(release, _is_known(bucket)), (("bucket", bucket), ("n", count)))
    return BoundQuery(shown, ("bucket", "n"), release)


def _bucket(column: Column) -> Expression:
    """The number of a value's bucket: 0 of 0, or else the exponent and the sign."""
    value = convert(column, DOUBLE, explicit=True)
    exponent = convert(
        call("ceil", [call("log2", [call("abs", [value])])]),
        integer(*INTEGER_BOUNDS["INTEGER"]),
        explicit=True,
    )
    within = unify("least", [unify("greatest", [exponent, _literal(_LEAST)]), _literal(_MOST)])
    size = arithmetic("+", within, _literal(_OFFSET))
    results = (_literal(0), size, negate(size))
    tests = (compare("=", value, _literal(0)), compare(">", value, _literal(0)))
    parts = (tests[0], results[0], tests[1], results[1], results[2])
    return Call("case", parts, shared_type(results))


def _is_known(column: Column) -> Expression:
    return Call("not", (Call("is_null", (column,), BOOLEAN),), BOOLEAN)


def _literal(value: int) -> Literal:
    return Literal(value, integer(value, value))


def unknown_ranges(query: BoundQuery) -> list[Unknown]:
    """Columns that need a range and have none, and whose owner allows a search."""
    release = query.release
    if release is None:
        return []
    aggregates = [release.score] if isinstance(release, Choose) else [each for _, each in release.aggregates]
    added = [
        part
        for each in aggregates
        if not each.function.startswith("count")
        for part in (each.argument, each.by)
        if part
    ]
    open_to_us = {
        (scan.table, each.name): each.type
        for scan in scans(release.input)
        for each in scan.fields
        if scan.claims[each.name].auto
    }
    found = origins(release.input, names_in(added)) & open_to_us.keys()
    return sorted((Unknown(*each, open_to_us[each]) for each in found), key=lambda each: each.name)


def range_of(
    buckets: Sequence[int], noisy_counts: Sequence[float], half_width: float, type_: Type
) -> tuple[float, float]:
    """The range of all buckets whose count stands out of the noise; 0 is always inside."""
    kept = [bucket for bucket, count in zip(buckets, noisy_counts, strict=True) if count > half_width]
    if not kept:  # too few rows: take the most frequent bucket
        kept = [max(zip(noisy_counts, buckets, strict=True))[1]]
    ends = [math.copysign(2.0 ** (abs(bucket) - _OFFSET), bucket) for bucket in kept if bucket]
    return fitted(min([0.0, *ends]), type_), fitted(max([0.0, *ends]), type_)


def fitted(end: float, type_: Type) -> float:
    """An end of a range of this type that can always be declared, so that no search is paid for in vain. A
    DECIMAL has a last digit and a largest number.
    """
    if type_.kind is not Kind.DECIMAL:
        return end
    with localcontext(prec=100):
        last = Decimal(1).scaleb(-type_.scale)
        most = (10**type_.precision - 1) * last
        size = float(min(Decimal(abs(end)).quantize(last, ROUND_CEILING), most))
        if Decimal(repr(size)) > most:  # rounded up
            size = math.nextafter(size, 0.0)
    return math.copysign(size, end)
