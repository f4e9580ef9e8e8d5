"""Seeded mistakes go in, one at a time; what an audit says of a query that each of them breaks comes out.

python -m tests.audit.planted [--shard 0/2] [words]: those whose names contain one of the words, or all; a line of JSON each, with
the mistake and, for every query, without any. python -m tests.audit.planted --cli NAME ...: the command line with a mistake.
The mistakes are those of tests/mutants.py, by name, and some more. They are put in while the package is imported; nothing is written.
"""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.mutants import MUTANTS, ROOT, Mutant, Spot, spots

_KNOWN = {each.name: each for each in MUTANTS}
_NOISE, _SAMPLERS, _KEYS = "noise/add_noise.py", "noise/samplers.py", "noise/key_release.py"
ADD = "add-remove"


@dataclass(frozen=True)
class Planted:
    """A mistake and a query whose promise it breaks."""

    mutant: str | Mutant
    sql: str
    neighbours: str = "replace-one"
    options: dict[str, Any] = field(default_factory=dict)
    releases: int = 300  # few, where a bound is passed already

    @property
    def mistake(self) -> Mutant:
        return _KNOWN[self.mutant] if isinstance(self.mutant, str) else self.mutant

    @property
    def question(self) -> tuple[str, str, tuple[tuple[str, Any], ...]]:
        return self.sql, self.neighbours, tuple(sorted(self.options.items()))


BOTH = "(SELECT x AS v, 'l' AS tag FROM t UNION ALL SELECT z, 'm' FROM t)"
TWICE = "(SELECT * FROM t UNION ALL SELECT * FROM t)"
ALIKE = "(SELECT k, x, 'l' AS tag FROM t UNION ALL SELECT k, x, 'l' FROM t)"
MANY, CHOICES, TRIES = 60_000, 6_000, 80
GAUSSIAN, OPEN = {"mechanism": "gaussian", "delta": 0.05}, {"delta": 0.01}

PLANTED = [
    # -- bounds
    Planted("GROUP BY without the factor 2 for replace-one", "SELECT k, COUNT(*) FROM t GROUP BY k"),
    Planted("rows of one person not counted, add-remove", f"SELECT COUNT(*) FROM {TWICE}", ADD),
    Planted("rows of one person not counted, one total", f"SELECT COUNT(*) FROM {TWICE} WHERE k"),
    Planted("linf does not count rows that share a key", f"SELECT tag, SUM(x) FROM {ALIKE} GROUP BY tag"),
    Planted("AVG bounded like a single total", "SELECT AVG(x) FROM t"),
    Planted("AVG bounded by one side", "SELECT AVG(x) FROM t", ADD),
    Planted("sums of both signs called monotone", f"SELECT tag FROM {BOTH} GROUP BY tag ORDER BY SUM(v) DESC LIMIT 1", ADD),
    Planted("width without 0 although NULL may occur", "SELECT SUM(x) FROM t"),
    Planted("width without 0 although rows may be filtered", "SELECT SUM(r) FILTER (WHERE k) FROM t"),
    Planted("size is the width, not the magnitude", "SELECT SUM(x) FROM t", ADD),
    Planted("UNION ALL does not add up", f"SELECT COUNT(*) FROM {TWICE} WHERE k"),
    Planted("UNPIVOT does not multiply", "SELECT COUNT(v) FROM t UNPIVOT (v FOR n IN (x, r, z))", ADD),
    Planted("tags keep copies apart even if they are alike", f"SELECT tag, COUNT(*) FROM {ALIKE} GROUP BY tag", ADD),
    Planted("a filter leaves the number of rows fixed", "SELECT SUM(r) FROM t WHERE k"),
    Planted("UNNEST does not multiply", "SELECT tag, COUNT(*) FROM (SELECT unnest(list_distinct(tags)) AS tag FROM t) GROUP BY tag"),
    Planted("UNNEST of a list that names a value twice", "SELECT tag, COUNT(*) FROM (SELECT unnest(list_distinct(tags)) AS tag FROM t) GROUP BY tag"),
    Planted("no clamp from above", "SELECT SUM(y) FROM t"),
    Planted("empty sum is NULL", "SELECT SUM(y) FROM t WHERE k"),
    Planted("sum not whole", "SELECT SUM(y) FROM t"),
    # -- units
    Planted("max_groups ignored", "SELECT k, COUNT(*) FROM visits GROUP BY k", ADD),
    Planted("keys ranked across units", "SELECT k, COUNT(*) FROM visits GROUP BY k", ADD),
    Planted("the keys of a unit not multiplied", "SELECT k, COUNT(*) FROM visits GROUP BY k"),
    Planted("factor 2 missing where units are bounded", "SELECT k, COUNT(*) FROM visits GROUP BY k"),
    Planted("totals of a unit not held", "SELECT SUM(n) FROM visits", ADD),
    Planted("counts of a unit not held", "SELECT k, COUNT(*) FROM visits GROUP BY k", ADD),
    Planted("disjoint counts held one by one", "SELECT COUNT_IF(n < 3), COUNT_IF(n >= 3) FROM visits", ADD),
    Planted("AVG of a unit not cut", "SELECT AVG(n) FROM visits", ADD),
    Planted("the rest of AVG not cut", "SELECT AVG(n) FROM visits", ADD),
    Planted("COUNT DISTINCT not cut", "SELECT COUNT(DISTINCT n) FROM visits", ADD),
    Planted("a unit counted once a row", "SELECT COUNT(DISTINCT uid) FROM visits", ADD),
    Planted("a unit of two columns known by the first", "SELECT n, COUNT(*) FROM rooms GROUP BY n", ADD),
    Planted("public rows that match not counted", "SELECT COUNT(*) FROM t JOIN pub p ON t.x = p.n", ADD),
    Planted("matches not cut", "SELECT COUNT(*) FROM calls c JOIN shifts s ON c.k = s.k", ADD),
    # -- order
    Planted("values are not clamped from above", "SELECT median(w) FROM t"),
    Planted("a unit's rows in a key are not cut", "SELECT median(n) FROM visits", ADD),
    Planted("quantiles without the factor 2", "SELECT quantile_disc(w, 0.9) FROM t", ADD),
    Planted("a replaced row moves all ranks one way", "SELECT median(w) FROM t"),
    # -- price
    Planted("epsilon not divided among measurements", "SELECT SUM(x), SUM(y) FROM t"),
    Planted("selection noise halved in the price", "SELECT mode(s) FROM t"),
    Planted("several places for the price of one", "SELECT s FROM t GROUP BY s ORDER BY COUNT(*) DESC LIMIT 2"),
    # -- noise
    Planted("scale 0.7 times too small", "SELECT COUNT(*) FROM t WHERE k", releases=MANY),
    Planted("AVG noised once", "SELECT AVG(x) FROM t", releases=MANY),
    Planted("selection noise halved in the draw", "SELECT mode(s) FROM t", releases=CHOICES),
    Planted("absent keys left out of the answer", "SELECT s, COUNT(*) FROM t GROUP BY s", ADD, releases=MANY),
    Planted(Mutant("noise is never below 0", _SAMPLERS, "np.maximum(joined ^ negative, -GREATEST_NOISE", "np.maximum(joined, -GREATEST_NOISE"), "SELECT COUNT(*) FROM t WHERE k", releases=MANY),
    Planted(Mutant("noise is even", _NOISE, "    return discrete_laplace(measurement.rate, size, source)", "    return 2 * discrete_laplace(measurement.rate * 2, size, source)"), "SELECT COUNT(*) FROM t WHERE k", releases=MANY),
    Planted(Mutant("noise is cut at 3", _NOISE, "    return discrete_laplace(measurement.rate, size, source)", "    return np.clip(discrete_laplace(measurement.rate, size, source), -3, 3)"), "SELECT COUNT(*) FROM t WHERE k", releases=MANY),
    Planted(Mutant("two columns share their noise", _NOISE, "                for column in measurement.columns:\n                    noisy[column] = exact_columns[column] + _noise(measurement, size, source)",
                   "                shared = _noise(measurement, size, source)\n                for column in measurement.columns:\n                    noisy[column] = exact_columns[column] + shared"), "SELECT AVG(x) FROM t", releases=MANY),
    Planted(Mutant("two steps of the search for the noise are missing", _SAMPLERS, "width = edges.first_digits.size + 1 >> 1", "width = edges.first_digits.size + 1 >> 3"), "SELECT COUNT(*) FROM t WHERE k", releases=MANY),
    Planted(Mutant("Gaussian noise 0.7 times too small", _NOISE, "return rounded_gaussian(measurement.joint.variance, size, source)", "return rounded_gaussian(measurement.joint.variance / 2, size, source)"), "SELECT s, COUNT(*) FROM t GROUP BY s", options=GAUSSIAN, releases=MANY),
    Planted(Mutant("keys shown below the threshold", _KEYS, "shown = (noisy_counts > thresholds)", "shown = (noisy_counts > thresholds - 4)"), "SELECT word, COUNT(*) FROM t GROUP BY word", options=OPEN, releases=MANY),
    Planted(Mutant("keys shown as they are", _KEYS, "places = np.minimum(np.maximum(exact_counts - release.shift, 0), digits.shape[1])", "places = np.where(exact_counts > 0, digits.shape[1], 0)"), "SELECT word FROM t GROUP BY word", options=OPEN, releases=MANY),
    Planted(Mutant("values chosen at twice the rate", "noise/quantile_sampler.py", "problem = _Problem(laid, low, high, target, search.rate, step, doublings)", "problem = _Problem(laid, low, high, target, search.rate * 2, step, doublings)"), "SELECT median(w) FROM t", ADD, releases=MANY),
    Planted(Mutant("the first of equals always wins", _NOISE, "        place = select(exact_scores[left], rate, noise, source)", "        place = int(np.argmax(exact_scores[left]))"), "SELECT mode(s) FROM t", releases=CHOICES),
]  # fmt: skip


def _spot(mutant: Mutant) -> Spot:
    found = spots(mutant, ROOT / "privsql")
    if len(found) != 1:
        raise LookupError(f"the code has moved on: {mutant.name}")
    return found[0]


class _Patched(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, mutant: Mutant) -> None:
        super().__init__(name, path)
        self.mutant = mutant

    def get_code(self, fullname: str) -> Any:
        return compile(_spot(self.mutant).planted(self.mutant.new.strip()), self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self.mutant, self.path = mutant, _spot(mutant).path
        self.name = "privsql." + str(self.path.relative_to(ROOT / "privsql")).removesuffix(".py").replace(
            "/", "."
        )

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=_Patched(fullname, str(self.path), self.mutant)
        )


@contextmanager
def planted(mutant: Mutant | None) -> Iterator[None]:
    """The package imported anew, with the mistake in it."""
    finder = None if mutant is None else _Finder(mutant)
    for name in [name for name in sys.modules if name == "privsql" or name.startswith("privsql.")]:
        del sys.modules[name]
    if finder is not None:
        sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        if finder is not None:
            sys.meta_path.remove(finder)


def audited(each: Planted, mutant: Mutant | None) -> dict[str, Any]:
    from tests.audit.tables import session

    started = time.monotonic()
    with planted(mutant):
        try:
            found = session(each.neighbours).audit(
                each.sql, 1.0, **each.options, releases=each.releases, tries=TRIES
            )
        except Exception as error:  # noqa: BLE001 -- reported, and so a failure of the test
            return {"name": each.mistake.name, "sql": each.sql, "error": f"{type(error).__name__}: {error}"}
    return {
        "name": each.mistake.name,
        "sql": each.sql,
        "held": found.held,
        "verdict": found.verdict,
        "seconds": round(time.monotonic() - started, 1),
    }


def command_line(name: str, arguments: list[str]) -> int:
    with planted(next(each.mistake for each in PLANTED if each.mistake.name == name)):
        from privsql.cli import main as command

        return command(arguments)


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)  # pandas: the accessor is there already
    words = sys.argv[1:]
    if words[:1] == ["--cli"]:
        sys.exit(command_line(words[1], words[2:]))
    shard, shards = 0, 1
    if words[:1] == ["--shard"]:
        shard, shards = map(int, words[1].split("/"))
        words = words[2:]
    chosen = [
        each
        for each in PLANTED
        if not words or any(word.lower() in each.mistake.name.lower() for word in words)
    ][shard::shards]
    for each in chosen:
        print(json.dumps(audited(each, each.mistake)), flush=True)
    for each in {(each.question, each.releases): each for each in chosen}.values():
        print(json.dumps({**audited(each, None), "name": "no mistake"}), flush=True)


if __name__ == "__main__":
    main()
