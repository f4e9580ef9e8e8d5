"""Ranges that nobody knows: a question goes in; the columns whose range it needs, and how to ask for it, come
out.

A column's values are counted in buckets that double: 0, (1/2, 1], (1, 2], (2, 4] ... on either side. That is
a histogram with a finite set of keys, asked like any other question, at a share of the epsilon; the range is
read off its noisy counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from privsql.algebra.relations import Choose, Question
from privsql.algebra.reserved import quoted
from privsql.analysis.derive import names_in
from privsql.analysis.undeclared import origins, scans

SHARE = Fraction(1, 5)  # of epsilon, for all searches of a question together
_LEAST, _MOST = -20, 60  # buckets from 2^-20 to 2^60
LARGEST = 2.0**_MOST  # larger values share the last bucket, so that its end says nothing of them
_OFFSET = 100  # of the exponent in a bucket's key, so that 0 and the signs have keys of their own


@dataclass(frozen=True)
class Unknown:
    """A column whose range is to be found."""

    table: str
    column: str

    @property
    def name(self) -> str:
        return f"{self.table}.{self.column}"

    @property
    def sql(self) -> str:
        """A histogram over doubling buckets."""
        value = f"CAST({quoted(self.column)} AS DOUBLE)"
        size = f"least(greatest(CAST(ceil(log2(abs({value}))) AS INTEGER), {_LEAST}), {_MOST}) + {_OFFSET}"
        bucket = f"CASE WHEN {value} = 0 THEN 0 WHEN {value} > 0 THEN {size} ELSE -({size}) END"
        inner = f"SELECT {bucket} AS bucket FROM {quoted(self.table)} WHERE {quoted(self.column)} IS NOT NULL"
        return f"SELECT bucket, COUNT(*) AS n FROM ({inner}) GROUP BY bucket HAVING bucket IS NOT NULL"


def unknown_ranges(question: Question) -> list[Unknown]:
    """Columns behind what is added up that have no range, and whose owner lets it be found."""
    release = question.release
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
        (scan.table, name)
        for scan in scans(release.input)
        for name, claim in scan.claims.items()
        if claim.auto
    }
    found = origins(release.input, names_in(added)) & open_to_us
    return sorted((Unknown(*each) for each in found), key=lambda each: each.name)


def range_of(buckets: Sequence[int], noisy_counts: Sequence[float], half_width: float) -> tuple[float, float]:
    """The range that holds every bucket whose noisy count stands out of the noise; 0 is always within."""
    kept = [bucket for bucket, count in zip(buckets, noisy_counts, strict=True) if count > half_width]
    if not kept:  # too few rows to tell: the most frequent bucket will do
        kept = [max(zip(noisy_counts, buckets, strict=True))[1]]
    ends = [math.copysign(2.0 ** (abs(bucket) - _OFFSET), bucket) for bucket in kept if bucket]
    return min([0.0, *ends]), max([0.0, *ends])
