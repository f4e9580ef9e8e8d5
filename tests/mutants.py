"""Seeded mistakes go in, one at a time, into a copy of the package; each must be caught by a named quick test.

python tests/mutants.py [words]: all mutants, or those whose names contain one of the words; exits 1 if one survives,
or if its text is no longer found (then the code has moved on: write the mutant anew).

These are mistakes that people make, written by hand, and every one must be caught. tests/mutation makes small changes
anywhere, by a machine and at random, and tells what share of them is caught.
"""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROCESSES = 2
_PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow or thinned")
_OF_THIS_TREE = ("--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"))


def _pytest(*paths: str, only: str = "") -> list[str]:
    """The command that runs these files and folders of tests, or those of their tests that `-k only` selects."""
    return [
        *_PYTEST,
        *_OF_THIS_TREE,
        *(str(ROOT / "tests" / each) for each in paths),
        *(["-k", only] if only else []),
    ]


COMMANDS: dict[str, list[str]] = {
    "soundness": ["-m", "tests.soundness", "1500", "0", "1", "1"],
    "units": ["-m", "tests.soundness", "units", "2000", "0", "1", "1"],
    "pairs": _pytest("soundness/test_unit_pairs.py", "planning/test_units.py"),
    "tightness": _pytest("soundness/test_tightness.py"),
    "unnest": _pytest("planning/test_unnest.py"),
    "distinct sums": _pytest("planning/test_distinct_sums.py"),
    "null keys": _pytest("analysis/test_null_keys.py"),
    "undetermined": _pytest("results/test_undetermined.py"),
    "outliers": _pytest("planning/test_outliers.py"),
    "grid": _pytest("planning/test_grid.py"),
    "rows": _pytest("soundness/test_soundness.py", only="once_failed or expression_fail or pattern"),
    "noise": _pytest("noise/test_noise_end_to_end.py"),
    "samplers": _pytest("noise"),
    "selection": _pytest("noise/test_selection.py"),
    "mechanisms": _pytest("mechanisms/test_mechanisms.py"),
    "sparse_vector": _pytest("mechanisms/test_sparse_vector.py"),
    "smalldb": _pytest("mechanisms/test_smalldb.py"),
    "interval_choice": _pytest("mechanisms/test_interval_choice.py"),
    "auction": _pytest("mechanisms/test_auction.py"),
    "randomised_columns": _pytest("mechanisms/test_randomised_columns.py"),
    "gaussian": _pytest("noise/test_gaussian.py"),
    "keys": _pytest("noise/test_key_release.py"),
    "calibration": _pytest("noise/test_calibration.py"),
    "ranks": _pytest("noise/test_quantile_laws.py"),
    "public rows": _pytest("planning/test_public_rows.py"),
    "order": _pytest("planning/test_quantiles.py"),
    "budget": _pytest("budget/test_budget.py"),
    "accountants": _pytest(
        "conformance/accountants/test_accountants.py",
        "budget/test_event_prices.py",
        "budget/test_zcdp_ledgers.py",
    ),
    "ledger": _pytest(
        "conformance/accountants/test_ledgers.py", "budget/test_ledger.py", "budget/test_ledger_faults.py"
    ),
    "late": _pytest("engines/test_late_failures.py"),
    "residuals": _pytest("release/test_residual_price.py", "release/test_residual_noise.py"),
    "releases": _pytest("release"),
    "online": _pytest("release/test_online.py", "release/test_joint_batches.py"),
    "strategies": _pytest("release/test_strategies.py", "release/test_workloads.py"),
    "types": _pytest("conformance/engines/test_types.py"),
    "locality": _pytest("conformance/engines/test_locality.py"),
    "failures": _pytest("conformance/engines/test_failures.py"),
    "constants": _pytest("analysis/test_distinct_constants.py"),
    "files": _pytest("engines/test_file_statistics.py"),
    "exclusive": _pytest("planning/test_exclusive_counts.py"),
    "optimizer": _pytest("conformance/engines/test_optimizer.py"),
    "conditions": _pytest("analysis/test_conditions.py"),
    "disjoint": _pytest("cases/test_cases.py", only="disjoint_counts"),
    "patterns": _pytest("sql/test_patterns.py"),
    "dialects": _pytest("dialects/test_everyday.py", only="one_dialect or something_else"),
    "privacy clause": _pytest("sql/test_privacy_clause.py"),
    "expressions": _pytest("engines/test_engine_beliefs.py"),
    "names": _pytest("sql/test_reserved_names.py"),
    "boxes": _pytest("sql/test_boxes.py"),
    "boxed": _pytest("results/test_boxed_intervals.py"),
    "influence": _pytest("sql/test_influence.py"),
    "checks": _pytest("analysis/test_domains.py", only="check_lets"),
    "domains": _pytest("analysis/test_domains.py", only="every_value_that_occurs"),
    "beside": _pytest("planning/test_beside.py"),
    "fuse": _pytest("budget/test_fuse.py", "conformance/accountants/test_ledgers.py"),
    "shown": _pytest("budget/test_shown.py"),
    "repeated names": _pytest("engines/test_repeated_names.py"),
    "views": _pytest("engines/test_views.py"),
    "limits": _pytest(
        "planning/test_auto_limits.py",
        "planning/test_bounding.py",
        "planning/test_units.py",
        "results/test_bounding_warning.py",
        "results/test_suggested_limits.py",
        "results/test_undetermined.py",
    ),
    "ranges": _pytest("analysis/test_ranges.py"),
    "levels": _pytest("planning/test_levels.py", "privacy/test_weighted_sums.py"),
    "projections": _pytest("results/test_projections.py"),
    "meaning": _pytest("equivalence"),
    "choice": _pytest("planning/test_choice.py", "analysis/test_chains.py"),
    "spread": _pytest("planning/test_spread.py"),
    "pricing": _pytest("planning/test_pricing.py"),
    "measurement": _pytest("planning/test_measurement.py"),
    "plan cache": _pytest("requests/test_planning_cache.py"),
    "owners": _pytest("planning/test_units.py"),
    "calendar": _pytest("engines/test_calendar_ends.py"),
    "row order": _pytest("engines/test_row_order.py"),
    "refused texts": _pytest("sql/test_refused_texts.py"),
    "helper columns": _pytest("sql/test_reserved_names.py", only="helper_column"),
    "sources": _pytest("doors/test_sources.py"),
    "settings": _pytest("engines/test_owners_settings.py"),
    "schemas": _pytest("engines/test_schema_names.py"),
    "zones": _pytest("engines/test_time_zones.py"),
    "twin": _pytest("engines/test_twin.py"),
    "cast constants": _pytest("sql/test_constants.py"),
    "stored": _pytest("answers/test_stored.py"),
    "derived": _pytest("answers/test_derived.py"),
    "answers": _pytest("answers/test_answer_file.py"),
    "copies": _pytest("prepare/test_own_rows.py", "prepare/test_copies.py"),
    "unknown keys": _pytest("planning/test_undeclared_keys.py"),
    "fair": _pytest("planning/test_fair_choices.py"),
    "snapshots": _pytest("engines/test_snapshot.py"),
    "catalogue": _pytest("engines/test_parsed_once.py"),
    "above": _pytest("sql/test_above.py", "sql/test_above_functions.py"),
    "above, written": _pytest("render/test_write_above.py"),
    "sandbox": _pytest("engines/test_sandbox.py"),
    "stages": _pytest("composed/test_stages.py"),
    "composed": _pytest("composed/test_composed.py"),
    "composed queries": _pytest("composed/test_queries.py"),
    "correlated": _pytest("cases/test_cases.py", only="correlated"),
    "reopening": _pytest("engines/test_reopening.py"),
    "interrupts": _pytest("engines/test_interrupts.py"),
    "padding": _pytest(
        "engines/test_padding.py",
        "engines/test_padding_between_sessions.py",
        only="exact or fails or ctrl_c or signal or stored",
    ),
    "auto ranges": _pytest("planning/test_auto_ranges.py"),
    "places": _pytest("budget/test_places.py"),
    "signs": _pytest("prepare/test_stale_copies.py"),
    "totals": _pytest("prepare/test_copy_totals.py"),
    "units by key": _pytest("prepare/test_by_key.py"),
    "noise of copies": _pytest("prepare/test_copy_noise.py"),
    "joins": _pytest("cases/test_cases.py", only="joins"),
    "padded joins": _pytest("planning/test_padded_joins.py"),
    "series": _pytest("cases/test_cases.py", only="padded_joins or series"),
    "drafting": _pytest("drafting"),
    "joins of copies": _pytest("prepare/test_copy_joins.py"),
    "window cases": _pytest("cases/test_cases.py", only="windows"),
    "windows": _pytest("within_unit/test_window_pairs.py"),
    "window values": _pytest("within_unit/test_window_values.py"),
    "windows elsewhere": _pytest("within_unit/test_windows_elsewhere.py"),
}


@dataclass(frozen=True)
class Mutant:
    """A mistake: in this file, this text becomes that; and the commands that should see it, in order."""

    name: str
    file: str
    old: str
    new: str
    by: tuple[str, ...] = ("tightness", "soundness")


_SENSITIVITY, _PARTS, _GRID, _EXACT = (
    "analysis/bound_sums.py",
    "planning/aggregates/parts.py",
    "planning/grids/grid.py",
    "planning/exact_sql.py",
)
_OUTLIERS = "planning/rewrites/outliers.py"
_STABILITY, _RENDER, _DISJOINT, _NOISE = (
    "analysis/stability.py",
    "planning/render.py",
    "analysis/disjoint.py",
    "noise/add_noise.py",
)
_ROWS, _NOISY, _ACCOUNTANTS = ("rows", "soundness"), ("noise",), ("accountants",)
_GAUSSIAN = "privacy/gaussian.py"
_OWNERS, _ROWS_SQL, _PER_UNIT, _JOINS, _CATALOGUE = (
    "algebra/owners.py",
    "planning/render_rows.py",
    "planning/apply_limits.py",
    "sql/bind/join.py",
    "sql/bind/catalogue.py",
)
_FUNCTIONS = "algebra/functions.py"
_COMPOSING, _DECORRELATE = "requests/composing.py", "sql/subqueries/decorrelate.py"
_NORMAL, _COMPARISONS, _ARITHMETIC = (
    f"equivalence/{name}.py" for name in ("normal_form", "comparisons", "arithmetic")
)
_FRAMES, _BLOCKS, _RELEASE, _IDENTITY = (
    "equivalence/frames.py",
    "equivalence/blocks.py",
    "equivalence/release_form.py",
    "planning/identity.py",
)
_MEANT = ("meaning",)
_OF_UNITS = ("pairs", "units")
_FAIR, _CHOICE = ("fair",), "planning/render_choice.py"
_RANKS = "privacy/quantile_steps.py"
_BESIDE = "planning/aggregates/counts_beside_sums.py"
_BY_RANK, _COPY_JOINS = "planning/rewrites/stored_totals.py", "planning/rewrites/prepared_joins.py"
_BY_KEY, _KEY_TESTS = "planning/rewrites/stored_unit_counts.py", "planning/keys/key_tests.py"
_CHARGE = "        with self.charged([priced]) as (charge,):\n"
_BILLS = "        return self.ledger.running(bills, self.policy.neighbours, self.who(listed[0].stage))\n"
_LEDGER_FILE, _FUSE, _FOLDED = "budget/ledger_file/file_ledger.py", ("fuse",), ("repeated names",)
_ABOVE, _SANDBOX = "sql/parse/above.py", "engines/duckdb/sandbox.py"
_CONNECTION = "engines/duckdb/connection.py"
_PADDED, _PADDED_FILE = ("padded joins",), "planning/rewrites/padded.py"
_KEYS_OF_PUBLIC = "analysis/public_keys/combinations.py"

MUTANTS = [
    # -- intervals above the noise
    Mutant("a rank counts rows that may not be there", "sql/boxes/ranks.py", "certainly = both(qualified(rows.must, _OTHER), ", "certainly = both(", ("boxes",)),
    Mutant("a rank takes ties for certain", "sql/boxes/ranks.py", "no(_before_or_tied(this, other))", "no(_before(this, other))", ("boxes",)),
    Mutant("NULL comes before numbers in every order", "sql/boxes/ranks.py", "    if a.nulls_first:\n", "    if True:\n", ("boxes",)),
    Mutant("a descending order read as ascending", "sql/boxes/ranks.py", "if a.descending else (a.cell, b.cell)", "if False else (a.cell, b.cell)", ("boxes",)),
    Mutant("LIMIT keeps a row for certain that may be behind it", "sql/boxes/ranks.py", "sure = both(sure, exp.LTE(this=place.high, expression=end))", "sure = both(sure, exp.LTE(this=place.low, expression=end))", ("boxes",)),
    Mutant("a maximum over rows that may not be there", "sql/boxes/aggregates.py", "own.over(most(this=_if(own.sure, inner)))", "own.over(most(this=_if(own.may, inner)))", ("boxes",)),
    Mutant("a sum without the rows that may not be there", "sql/boxes/aggregates.py", "(own.may, least(cell.low, _ZERO))", "(FALSE, cell.low)", ("boxes",)),
    Mutant("an average of rows that may not be there", "sql/boxes/aggregates.py", "unsure = holds(own.over(exp.LogicalOr(this=both(own.may, no(own.sure)))))", "unsure = FALSE", ("boxes",)),
    Mutant("a count of rows whose number may be NULL", "sql/boxes/aggregates.py", "sure = both(group.sure, no(cell.null))", "sure = group.sure", ("boxes",)),
    Mutant("a difference of lower ends", "sql/boxes/cell_rules.py", "exp.Sub(this=a.low, expression=b.high), exp.Sub(this=a.high, expression=b.low)", "exp.Sub(this=a.low, expression=b.low), exp.Sub(this=a.high, expression=b.high)", ("boxes",)),
    Mutant("a quotient by what may be 0", "sql/boxes/cell_rules.py", "either(a.null, b.null, no(clear))), clear", "either(a.null, b.null)), TRUE", ("boxes",)),
    Mutant("equal ends taken for equal numbers", "sql/boxes/cell_rules.py", "apart = either(exp.LT(this=a.low, expression=b.high), exp.LT(this=b.low, expression=a.high))", "apart = either(exp.NEQ(this=a.low, expression=b.low), exp.NEQ(this=a.high, expression=b.high))", ("boxes",)),
    Mutant("CASE takes the first branch that may be taken", "sql/boxes/cell_rules.py", "never, always = no(condition.true), condition.certain", "never, always = no(condition.true), condition.true", ("boxes",)),
    Mutant("rows of WHERE are certain", "sql/boxes/program.py", "must=both(rows.must, kept.certain))", "must=rows.must)", ("boxes",)),
    Mutant("padded rows have no NULL", "sql/boxes/from_clause.py", "return Cell(value.low, value.high, holds_null(value.low, value.null), value.whole)", "return value", ("boxes",)),
    Mutant("NOT IN by rows that may be there", "sql/boxes/evaluate.py", "return Truth(holds(among[0]), holds(no(among[1])),", "return Truth(holds(among[0]), holds(no(among[0])),", ("boxes",)),
    Mutant("each number at the level of all", "results/joint_box.py", "return 1.0 - (1.0 - level) / max(1, cells)", "return level", ("boxed",)),
    Mutant("GROUP BY 1 is a key whatever it stands for", "sql/split/influence.py", "keys = [_behind(each, node) for each in group.expressions]", "keys = group.expressions", ("influence",)),
    # -- sensitivity
    Mutant("GROUP BY without the factor 2 for replace-one", _SENSITIVITY, "2 * rows * size, shared * width", "rows * size, shared * width"),
    Mutant("rows of one person not counted, add-remove", _SENSITIVITY, "rows * size, shared * size", "size, size"),
    Mutant("rows of one person not counted, one total", _SENSITIVITY, "l1 = linf = rows * width", "l1 = linf = width"),
    Mutant("linf does not count rows that share a key", _SENSITIVITY, "2 * rows * size, shared * width", "2 * rows * size, width"),
    Mutant("AVG bounded like a single total", _SENSITIVITY, "keys is None and cells == 1", "keys is None"),
    Mutant("monotone under replace-one", _SENSITIVITY, "monotone and neighbours is Neighbours.ADD_REMOVE", "monotone"),
    Mutant("sums of both signs called monotone", "planning/aggregates/sums.py", "monotone=grid.low >= 0 or grid.high <= 0", "monotone=True"),
    Mutant("AVG bounded by one side", "planning/aggregates/means.py", "context.bound(grid.steps, grid.steps, 2 + len(beside),", "context.bound(1, 1, 2 + len(beside),"),
    Mutant("width without 0 although NULL may occur", _GRID, "if always and not self.nullable:", "if always:"),
    Mutant("width without 0 although rows may be filtered", "planning/aggregates/sums.py", "always = context.always_counts and condition is None", "always = context.always_counts"),
    Mutant("size is the width, not the magnitude", _GRID, "return max(abs(self.low), abs(self.high))", "return self.high - self.low"),
    # -- stability
    Mutant("UNION ALL does not add up", _STABILITY, "rows = sum(known) if len(known) == len(sides) else None", "rows = max(known) if len(known) == len(sides) else None"),
    Mutant("UNPIVOT does not multiply", _STABILITY, "rows = None if inner.rows is None else inner.rows * count", "rows = inner.rows"),
    Mutant("tags keep copies apart even if they are alike", _STABILITY, "max(by_label.values(), default=0) + unlabelled", "1"),
    Mutant("a filter leaves the number of rows fixed", _STABILITY, "steady=False, why=\"a filter keeps", "why=\"a filter keeps"),
    Mutant("private rows called public", "algebra/relations.py", "isinstance(each, Scan) and each.private for", "isinstance(each, Scan) and each.private and each.unit is not None for"),
    # -- public rows that no private row meets
    Mutant("padded rows that a person takes away are not counted", _STABILITY, "return Stability(2 * inner * matches([]), False, why, both, adds=False)", "return Stability(inner * matches([]), False, why, both, adds=False)", _PADDED),
    Mutant("padded rows are not counted in their key", _STABILITY, "return shares(columns) + inner * matches(", "return shares(columns) + 0 * matches(", _PADDED),
    Mutant("padded rows before bounding", _PADDED_FILE, "or not is_bounded(release.input) or", "or", _PADDED),
    Mutant("one public row a key is not looked for", _PADDED_FILE, "return look.most_alike(named_rows, [name for name, _ in named]) <= 1", "return True", _PADDED),
    Mutant("max(1, matches) although WHERE drops matches", _PADDED_FILE, "            case Project():\n                keys =", "            case Filter():\n                relation = relation.input\n            case Project():\n                keys =", _PADDED),
    Mutant("padded rows have no keys of their own", _PADDED_FILE, "return replace(task, query=query, keyed=release.input, notes=(_SKIPPED,))", "return replace(task, query=query)", _PADDED),
    Mutant("a padded row is thought to add nothing to any SUM", _PADDED_FILE, 'build.compare("<>", argument, literals.whole(0))', "Literal(False, BOOLEAN)", _PADDED),
    Mutant("rows of NULLs are no values", _PADDED_FILE, "return False  # of NULLs", "return True  # of NULLs", _PADDED),
    Mutant("a padded row has a partner of its unit", _PADDED_FILE, "_Followed(kept, inner.candidates if semi.anti else None)", "_Followed(kept, None if semi.anti else inner.candidates)", _PADDED),
    Mutant("a padded join beside another one", _PADDED_FILE, "                raise _unbounded(place)\n            shown =", "                pass\n            shown =", _PADDED),
    Mutant("public rows of FULL JOIN tell the unit", _OWNERS, 'if join.kind != "inner":\n        return left.tags', 'if join.kind == "left":\n        return left.tags', _PADDED),
    Mutant("FULL JOIN without the rows of the right alone", _JOINS, "return UnionAll((same, rest))", "return same", _PADDED),
    Mutant("padded rows below a join of one unit are thought to stay", _STABILITY, "adds=left.adds and right.adds)", "adds=True)", _PADDED),
    Mutant("padded rows beside groups are thought to stay", _STABILITY, "shares, left.labels, left.adds)", "shares, left.labels)", _PADDED),
    Mutant("rows without a match have no keys", _KEYS_OF_PUBLIC, "rows = list(dict.fromkeys([*rows, *unmatched]))", "rows = list(rows)", _PADDED),
    Mutant("a public table that is joined twice is one", _KEYS_OF_PUBLIC, 'left, right = f"{where}l", f"{where}r"', 'left = right = ""', ("joins",)),
    Mutant("range includes its end", "sql/bind/from_clause/constant_rows.py", 'inclusive = 0 if node.args.get("is_end_exclusive") else', "inclusive =", ("series",)),
    Mutant("NATURAL compares the first shared column alone", "sql/bind/from_clause/shared_columns.py", "    return found\n\n\ndef _visible", "    return found[:1]\n\n\ndef _visible", ("joins",)),
    # -- lists
    Mutant("UNNEST does not multiply", _STABILITY, "rows = None if inner.rows is None else inner.rows * most", "rows = inner.rows", ("soundness",)),
    Mutant("UNNEST: a person counts once in every other key, too", _STABILITY, "return kept if name in columns else kept * most", "return kept", ("soundness",)),
    Mutant("UNNEST of a list that names a value twice", "render/duckdb.py", "f'list_distinct({listed})' if relation.distinct else listed", "listed", ('soundness',)),
    Mutant("UNNEST: elements that nobody declared", "render/write_relations.py", "if relation.kept is None:", "if True:", ('soundness',)),
    Mutant("UNNEST: elements cast after they were told apart", "render/write_relations.py", "if each.cast\n            else self._of(_TABLE, each.name)\n            for each in scan.lists", "if False\n            else self._of(_TABLE, each.name)\n            for each in scan.lists", ('unnest',)),
    Mutant("UNNEST keeps a list's collation", _ROWS_SQL, "if relation.element.type.kind is Kind.TEXT else", "if False else", ("unnest",)),
    Mutant("UNNEST of what was not declared", "sql/bind/unnest.py", "    if column.most is None:\n", "    if False:\n", ("unnest",)),
    Mutant("UNNEST without list_distinct", "sql/bind/unnest.py", "    if not distinct:\n", "    if False:\n", ("soundness", "unnest")),
    Mutant("a filter by two constants taken for one", _STABILITY, "yield name, len(options)", "yield name, 1", ("unnest",)),
    # -- disjoint counts
    Mutant("overlapping counts taken as disjoint", _DISJOINT, "return any(_contradict(a, b) for a in left for b in right)", "return True", ("conditions",)),
    Mutant("ranges that touch taken as disjoint", _DISJOINT, "and (high_open or other_low_open))", "and True)", ("conditions",)),
    Mutant("different columns taken as disjoint", _DISJOINT, "and one[0] == two[0] and _apart", "and _apart", ("disjoint",)),
    # -- the exact SQL
    Mutant("no clamp from above", "planning/grids/grid.py", "within = op(Operation.BETWEEN, test, low, high)", "within = op(Operation.AT_LEAST, test, low)", ('soundness',)),
    Mutant("NULL clamped to a bound", "planning/grids/grid.py", "return Cases(((op(Operation.NOT, within), nearest),), value)", "return Cases(((within, value),), nearest)"),
    Mutant("rounding past the ends of the grid", _GRID, "math.floor(low / step), math.ceil(high / step)", "math.ceil(low / step), math.floor(high / step) - 1", ("tightness", "soundness", "noise")),
    Mutant("key test dropped", _EXACT, "    if not tests:\n", "    if True:\n"),
    Mutant("NULL key dropped", "planning/keys/key_tests.py", "op(Operation.OR, test, op(Operation.IS_NULL, name)) if with_null else test", "test", ('noise', 'tightness')),
    Mutant("small whole numbers not clamped from above", "planning/grids/grid.py", "- _distance(present, self.high)", "- (self.high - present)", ('grid',)),
    Mutant("NULL of small whole numbers counted as the low end", "planning/grids/grid.py", "wide if self.nullable else coalesced(wide, self.low)", "coalesced(wide, self.low)", ('grid',)),
    Mutant("stored whole numbers not put right from above", _OUTLIERS, "if grid.high < type_.high:", "if grid.high > type_.high:", _ROWS[1:]),
    Mutant("stored whole numbers not put right from below", _OUTLIERS, "if grid.low > type_.low:", "if grid.low < type_.low:", _ROWS[1:]),
    Mutant("outliers of rows that a FILTER leaves out", "planning/rewrites/outliers.py", "return self._sum(_wide(end) - Value(self.column))", "return Fold(\"sum\", _wide(end) - Value(self.column))", ('outliers',)),
    Mutant("values for steps of a coarse grid", _OUTLIERS, "and _is_small(each, facts) for", "for", ("outliers",)),
    Mutant("NOT NULL believed of stored whole numbers", _OUTLIERS, "if not grid.nullable and grid.low:", "if grid.nullable and grid.low:", ("outliers",)),
    Mutant("what stored whole numbers lack in 64 bits", "planning/rewrites/outliers.py", "_wide(end) - Value(self.column)", "Constant(end) - Value(self.column)", ('outliers',)),
    Mutant("the end itself taken for an outlier below it", "planning/rewrites/outliers.py", "op(Operation.AT_MOST, value, grid.low - 1)", "op(Operation.AT_MOST, value, grid.low - 2)", ('outliers',)),
    Mutant("empty sum is NULL", "planning/grids/grid.py", "        return coalesced(added)\n\n    def sides", "        return added\n\n    def sides", ('soundness',)),
    Mutant("sum not whole", "planning/aggregates/parts.py", "return whole(clamped(aggregate, -LARGEST_SUM, LARGEST_SUM))", "from privsql.algebra.exact import Cast\n    from privsql.types import DOUBLE\n    return Cast(clamped(aggregate, -LARGEST_SUM, LARGEST_SUM), DOUBLE)"),
    Mutant("TRY_CAST becomes CAST", _RENDER, 'tried = f"TRY_CAST(', 'tried = f"CAST(', _ROWS),
    Mutant("integers not widened", "render/write_expressions.py", "return self._operands(call, args, _widest([left.type, right.type]))", "return self._operands(call, args, left.type)", ('rows', 'soundness')),
    Mutant("CAST to TINYINT lets an INTEGER through", "render/duckdb.py", "return next(exact, str(type_)) if type_.kind is Kind.INTEGER else str(type_)", "return str(type_)", ('rows', 'soundness')),
    Mutant("operands cast to the type of the result", "render/write_expressions.py", "        return call.type\n    return _widest(types)", "        return call.type\n    return call.type", ('rows', 'soundness')),
    Mutant("dates added without TRY", "render/write_expressions.py", "self.guarded(f\"({args[0]}) {sign} ({args[1]})\")", "f\"(({args[0]}) {sign} ({args[1]}))\"", ('rows', 'soundness')),
    Mutant("dates made without TRY", "render/duckdb_functions.py", "\"date_diff date_sub make_date make_timestamp strftime try_strptime\": \"TRY({name}({args}))\"", "\"date_diff date_sub make_timestamp strftime try_strptime\": \"TRY({name}({args}))\", \"make_date\": \"make_date({args})\"", ('rows', 'soundness')),
    Mutant("CASE has the type of its last branch", "sql/bind/scalar/binder.py", "(*args, values[-1]), build.shared_type(values))", "(*args, values[-1]), values[-1].type)", _ROWS),
    Mutant("escape patterns not checked", "algebra/patterns.py", 'case "ESCAPE":', 'case "escape":', _ROWS),
    # -- units: what is kept of each
    Mutant("max_groups ignored", "planning/exact_statement.py", "(key_rank(listed), limits.max_groups)", "(key_rank(listed), 1000000)", ('pairs', 'units')),
    Mutant("keys ranked across units", "algebra/choices.py", "Over(ranking, by=(UNIT,), order=", "Over(ranking, order=", ('pairs', 'units')),
    Mutant("ties of the rank left to the order of rows", "algebra/choices.py", "(fair_hash(FairChoice.KEYS, UNIT, *keys), *keys)", "(fair_hash(FairChoice.KEYS, UNIT),)", ('pairs', 'units')),
    Mutant("undeclared keys dropped after ranking", "planning/exact_statement.py", "Earlier(\"privsql_units\"), tests, ranked=rank, everything=True)\n        steps.append((\"privsql_kept\", kept, False))\n        where = ()", "Earlier(\"privsql_units\"), (), ranked=rank, everything=True)\n        steps.append((\"privsql_kept\", kept, False))", ('pairs', 'units')),
    Mutant("the keys of a unit not multiplied", _STABILITY, "return Stability(groups * limits.max_rows, False, why", "return Stability(limits.max_rows, False, why", _OF_UNITS),
    Mutant("factor 2 missing where units are bounded", _SENSITIVITY, "2 * rows * size, shared * width", "(2 if stability.steady else 1) * rows * size, shared * width", _OF_UNITS),
    Mutant("rows without a unit kept", _ROWS_SQL, """where = "" if not joins and all(required) else""", """where = "" if not joins else""", _OF_UNITS),
    Mutant("a unit of two columns known by the first", _ROWS_SQL, "(brought[0] if len(brought) == 1 else", "(brought[0] if brought else", _OF_UNITS),
    Mutant("totals of a unit not held", "planning/aggregates/sums.py", "cells = (clean(total(held)),)", "cells = (clean(total(Name(name))),)", ('pairs', 'units')),
    Mutant("counts of a unit not held", "planning/aggregates/counts.py", "least(added(own), most)]", "least(added(own), 1000000)]", ('pairs', 'units')),
    Mutant("disjoint counts held one by one", "planning/aggregates/counts.py", "clean(total(after - before)) for before, after in itertools.pairwise(sums)", "clean(total(least(each, most))) for each in own", ('pairs', 'units')),
    Mutant("AVG of a unit not cut", "planning/aggregates/means.py", "many = op(Operation.GREATER, count, most)", "many = op(Operation.GREATER, count, 1000000)", ('pairs', 'units')),
    Mutant("the rest of AVG not cut", "planning/aggregates/means.py", "grid.steps * least(count, most) - high", "grid.steps * count - high", ('pairs', 'units')),
    Mutant("COUNT DISTINCT not cut", "planning/aggregates/counts.py", "SomeDistinct(argument, place, context.limits.max_rows, condition)", "SomeDistinct(argument, place, 1000000, condition)", ('pairs', 'units')),
    Mutant("SUM DISTINCT spans the range alone", "planning/aggregates/distinct_sums.py", "max(grid.width(False), 1)", "max(grid.width(True), 1)", ('distinct sums',)),
    Mutant("SUM DISTINCT with the size of its span", "planning/aggregates/distinct_sums.py", "max(grid.magnitude, 1)", "max(grid.high - grid.low, 1)", ('distinct sums',)),
    Mutant("SUM DISTINCT before the clamp", "planning/aggregates/distinct_sums.py", "Cast(grid.clamped(Value(argument)), BIGINT, total=False)", "Cast(Value(argument), BIGINT, total=False)", ('distinct sums',)),
    Mutant("SUM DISTINCT of a unit not cut", "planning/aggregates/distinct_sums.py", "context.limits.max_rows, where)", "1000000, where)", ('distinct sums',)),
    Mutant("SUM DISTINCT of lists adds every unit's", "render/duckdb.py", "list_sum(list_distinct(flatten(list(", "list_sum((flatten(list(", ('distinct sums',)),
    Mutant("AVG DISTINCT with half its size", "planning/aggregates/distinct_sums.py", "context.bound(grid.steps, grid.steps, 2, once)", "context.bound(-(-grid.steps // 2), grid.steps, 2, once)", ('distinct sums',)),
    Mutant("which values are counted left to the order of rows", "render/duckdb.py", "ranked = f\"list_sort(list_distinct({listed}), 'ASC', 'NULLS LAST')\"", "ranked = f\"list_distinct({listed})\"", ('pairs', 'units')),
    Mutant("a unit counted once a row", "planning/aggregates/counts.py", "(clean(total(least(Name(name), 1))),)", "(clean(total(Name(name))),)", ('pairs', 'units')),
    # -- units: what is kept is chosen fairly
    Mutant("hashed once", "render/duckdb.py", "\"hash(hash({args}))\"", "\"hash({args})\"", ('fair',)),
    Mutant("one hash for all choices", "algebra/exact.py", "op(Operation.HASH, Constant(choice, Type(Kind.TEXT)), *values)", "op(Operation.HASH, *values)", ('fair',)),
    Mutant("the kind of choice mixed in last", "algebra/exact.py", "return op(Operation.HASH, Constant(choice, Type(Kind.TEXT)), *values)", "return op(Operation.HASH, op(Operation.HASH, *values), Constant(choice, Type(Kind.TEXT)))", ('fair',)),
    Mutant("keys chosen without the unit", "algebra/choices.py", "fair_hash(FairChoice.KEYS, UNIT, *keys)", "fair_hash(FairChoice.KEYS, *keys)", ('fair',)),
    Mutant("distinct values chosen without the unit", "planning/aggregates/counts.py", "fair_hash(FairChoice.DISTINCT, UNIT, argument)", "fair_hash(FairChoice.DISTINCT, argument)", ('fair',)),
    Mutant("always the same first row", "algebra/choices.py", "Cast(place, wide) * most + first", "Cast(place, wide) * most", ('fair',)),
    Mutant("the first of several counts takes all", "planning/aggregates/counts.py", "kept_up_to(each, added(own), most, [UNIT])", "least(each, most)", ('fair',)),
    Mutant("equal rows that share a value are one", "render/write_relations.py", "fair_hash(FairChoice.MATCHES, below, *values, Name(ROW_NUMBER))", "fair_hash(FairChoice.MATCHES, below, *values)", ('fair',)),
    Mutant("equal rows of a copy are one", "engines/duckdb/copies/copy_recipe.py", "UNIT, *content, Name(ROW_NUMBER))", "UNIT, *content)", ('fair',)),
    Mutant("keys shown by rows, however many one unit has", "planning/keys/undeclared_keys.py", "if not counts or _may_count_units(counts, context, ways[0]):", "if not counts:", ("unknown keys",)),
    Mutant("keys shown by the first count there is", "planning/pricing.py", "if part.columns == keys.columns)", "if part.counts_all)", ("unknown keys",)),
    Mutant("a unit that is replaced changes the keys of one", "planning/keys/undeclared_keys.py", "groups * context.neighbours.moves)", "groups)", ("unknown keys",)),
    Mutant("people needed as if each had one row", "planning/keys/undeclared_keys.py", "return -(-2 * release.shows_at(0.5) // (1 + release.contribution.rows))", "return release.shows_at(0.5)", ("unknown keys",)),
    # -- units: joins
    Mutant("LEFT JOIN keeps what the right side tells", _OWNERS, "return left.tags, {**padded,", "return {**left.tags, **right.tags}, {**padded,", _OF_UNITS),
    Mutant("LEFT JOIN without the padded row", _STABILITY, "right.rows * met * (2 if join.kind == \"left\" else 1)", "right.rows * met", _OF_UNITS),
    Mutant("padded rows called monotone", _STABILITY, 'right.adds and join.kind == "inner"', "right.adds", _OF_UNITS),
    Mutant("the unit of the right side through a LEFT JOIN", "render/write_relations.py", "_LEFT if left_whose else _RIGHT", "_RIGHT if right_whose else _LEFT", ('pairs', 'units')),
    Mutant("units not compared in a join", "render/write_relations.py", "on = f\"({on} AND ({_LEFT}.{UNIT_COLUMN} = {_RIGHT}.{UNIT_COLUMN}))\"\n        columns", "pass\n        columns", ('pairs', 'units')),
    Mutant("units not compared after a join", "render/write_relations.py", "WHERE ({UNIT_COLUMN} = {_OTHER}))", "WHERE ({UNIT_COLUMN} = {UNIT_COLUMN}))", ('joins of copies',)),
    Mutant("units not compared in a semi-join", "render/write_relations.py", "on = f\"({on} AND ({_LEFT}.{UNIT_COLUMN} = {_RIGHT}.{UNIT_COLUMN}))\"\n        exists", "pass\n        exists", ('pairs', 'units')),
    Mutant("public rows that match not counted", _STABILITY, "return Stability(inner.rows * most, False, text", "return Stability(inner.rows, False, text", _OF_UNITS),
    Mutant("a cast that rounds keeps values apart", _OWNERS, "_uncast(inner) if inner.type.scale <= type_.scale else expression", "_uncast(inner)", _OF_UNITS),
    Mutant("UNIQUE believed of one side", _JOINS, "_limited(left, [a for a, _ in pairs]), _limited(right, [b for _, b in pairs])", "_limited(left, [a for a, _ in pairs]), right", _OF_UNITS),
    Mutant("a row that takes the place of another counted once", _STABILITY, "rows = 2 * inner.rows", "rows = inner.rows", _OF_UNITS),
    Mutant("matches not cut", _ROWS_SQL, "rest, rank, relation.most, names)", "rest, rank, 1000000, names)", _OF_UNITS),
    Mutant("matches of the other side not counted", _STABILITY, "left.rows * meets + right.rows * met", "left.rows + right.rows", _OF_UNITS),
    Mutant("UNIQUE nanoseconds", _CATALOGUE, 'in ("TIMESTAMP_NS", "TIMESTAMP_S", "TIMESTAMP_MS")', "in ()", _OF_UNITS),
    Mutant("a table may have the column of the unit", _CATALOGUE, "if ours is not None:", "if False:", ("names",)),
    Mutant("patterns are read when rows come", "render/duckdb_functions.py", "(CASE WHEN regexp_matches('', {{1}}{}) IS NOT NULL THEN {} END)", "{0:.0}{1}", ("twin",)),
    Mutant("what finishes an answer is not checked before the charge", "requests/pipeline.py", "if types is not None:", "if False:", ("late",)),
    Mutant("an analyst's column may have a name of ours", "algebra/reserved.py", '(f"as_{each}" if is_ours(each) else each for each in wanted)', "wanted", ("names",)),
    Mutant("references between types", _CATALOGUE, "if kinds != tuple(_kind(other, name) for name in named):", "if False:", _OF_UNITS),
    Mutant("units of different scales put together", _CATALOGUE, "return column.type.kind, column.type.scale", "return column.type.kind, 0", ("owners",)),
    Mutant("half a letter fails", "render/duckdb_functions.py", "\"TRY(regexp_extract({args}))\"", "\"regexp_extract({args})\"", ("late",)),
    Mutant("text of a moment before the calendar", "planning/render.py", "shown = f\"(CASE WHEN {begun} THEN {rendered} END)\"", "shown = rendered", ("calendar",)),
    Mutant("NaN has a sign as text", "planning/render.py", "return f\"replace(TRY_CAST({rendered} AS VARCHAR), '-nan', 'nan')\"", "pass", ("row order",)),
    Mutant("casts of casts are counted once", "algebra/expressions.py", "return 3 if call.type.kind is Kind.TEXT else 1", "return 1", ("refused texts",)),
    Mutant("seconds past the calendar are one person", _CATALOGUE, '("TIMESTAMP_NS", "TIMESTAMP_S", "TIMESTAMP_MS")', '("TIMESTAMP_NS",)', ("owners",)),
    Mutant("a view hides a collation", "engines/duckdb/schema_reader.py", "path in stored, collated or path in views", "path in stored, collated", ("settings",)),
    Mutant("a CSV file is not read to its end", "engines/duckdb/open_source.py", "table = f\"CREATE TABLE {DUCKDB", "table = f\"CREATE VIEW {DUCKDB", ("sources",)),
    Mutant("a CSV file may be written to while it is read", "engines/duckdb/open_source.py", "if sign_of(file) != sign:", "if False:", ("snapshots",)),
    # -- one state from planning to the last statement, and what is left of it
    Mutant("planning and running are no transaction", _CONNECTION, "self._begun = self.sharing is Sharing.DATABASE or (", "self._begun = False and (", ("snapshots",)),
    Mutant("a transaction within the caller's", _CONNECTION, " and not self._callers_is_open())", ")", ("snapshots",)),
    Mutant("what others write is rolled back", _CONNECTION, '"ROLLBACK" if self._broken else "COMMIT"', '"ROLLBACK"', ("snapshots",)),
    Mutant("a transaction that failed goes on under its number", _CONNECTION, "        self._end()\n        if self._depth:", "        if self._depth:", ("snapshots", "reopening")),
    Mutant("a schema is charged for without another look", "engines/duckdb/engine.py", "if self._source.in_snapshot and not self.sees(schema):", "if False:", ("snapshots",)),
    Mutant("what another state says is an answer", "engines/duckdb/engine.py", "if self._verified is not None and not self.sees(self._verified[1]):", "if False:", ("snapshots",)),
    Mutant("a Parquet file holds still", "engines/duckdb/engine.py", "return sign_of(self._keeping.watched) == self._watched and", "return", ("snapshots",)),
    Mutant("a Parquet file keeps its columns", "engines/duckdb/engine.py", "            if sign != self._watched:", "            if False:", ("snapshots",)),
    Mutant("above: any function", _ABOVE, "if name not in ALLOWED:", "if False:", ("above",)),
    Mutant("above: any table", _ABOVE, "if _folded(name.name) not in in_sight:", "if False:", ("above",)),
    Mutant("above: a CTE sees those behind it", _ABOVE, "if cte is child:", "if False:", ("above",)),
    Mutant("above: arguments without a rule", _ABOVE, "if name not in allowed or (allowed[name] and", "if (allowed.get(name) and", ("above",)),
    Mutant("above: age of one moment", _ABOVE, 'if name == "age" and len(arguments) != 2:', "if False:", ("above",)),
    Mutant("above: moments in a time zone", _ABOVE, "case exp.UnixToTime() if", "case exp.UnixToTime() if False and", ("above",)),
    Mutant("above: words as they stand", _ABOVE, "if WORD.fullmatch(value) if words is None else value.upper() in words:", "if True:", ("above",)),
    Mutant("above: operators that DuckDB groups otherwise", _ABOVE, "_is_arrow(node) != _is_arrow(operand)", "False", ("above", "above, written")),
    Mutant("above: operands without parentheses", "render/write_above.py", "elif _is_operator(node) and _is_operand(node):", "elif False:", ("above, written",)),
    Mutant("above: NaN is NULL", "render/sandbox_tables.py", "cases += [] if column.nan is None else", "cases += [] if True else", ("sandbox",)),
    Mutant("above: the sandbox is open", _SANDBOX, '"statements": [tables_sql.CLOCK, CLOSE],', '"statements": [tables_sql.CLOCK],', ("sandbox",)),
    Mutant("above: a dead sandbox is asked again", _SANDBOX, "if self._child is None or self._child.ended:", "if self._child is None:", ("sandbox",)),
    Mutant("above: the sandbox may write files", "engines/sandbox_process.py", "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))", "resource.getrlimit(resource.RLIMIT_FSIZE)", ("sandbox",)),
    Mutant("above: every version is the first", "engines/sandbox_process.py", "connection.execute(choose, [number])", "connection.execute(choose, [0])", ("sandbox",)),
    Mutant("a worker opens whatever lies there", "engines/worker_process.py", 'if request["file"] is not None and not _has_open(request["file"]):', "if False:", ("snapshots",)),
    Mutant("a worker for a file that is not open", "engines/worker.py", "if not is_open(path):", "if False:", ("snapshots",)),
    Mutant("a copy for the file that took the place of the open one", "engines/duckdb/copies/prepared_tables.py", "return self._keeping.watched is not None or is_open(path)", "return True", ("snapshots",)),
    Mutant("whether an UPDATE found a row shows", "engines/duckdb/open_source.py", "opened=sign, alone=True, version=version)", "opened=sign, alone=True, version=sign)", ("answers",)),
    Mutant("a declared version is not looked at", "requests/pipeline.py", "return self.engine.version() if self.declared is None else", "return self.engine.version() if True else", ("answers",)),
    Mutant("what others ran since the catalogue was read goes unnoticed", _CONNECTION, "        self._entered += 1\n", "        self._entered = self._changes() or 0\n", ("catalogue",)),
    Mutant("what others ran between two queries goes unnoticed", _CONNECTION, "            self.changed = self.changed or moved\n", "", ("catalogue", "settings")),
    Mutant("a new connection is asked for statements of the old one", _CONNECTION, "            self._prepared.clear()\n", "", ("catalogue",)),
    Mutant("statements are prepared on the caller's connection", _CONNECTION, "        if self.sharing is Sharing.CONNECTION:  # the", "        if False:  # the", ("catalogue",)),
    Mutant("a price asked for once answers for all", "planning/pricing.py", "self._latest.get(epsilon)", "next(iter(self._latest.values()), None)", ("pricing",)),
    Mutant("a database that was shut down stays so", _CONNECTION, "if self._dead and self._reopen is not None:", "if False:", ("reopening",)),
    Mutant("another session keeps a dead database open", _CONNECTION, "if other is not self and other._shares(self._database):", "if False:", ("reopening",)),
    Mutant("another file is opened as if it were the same", "engines/duckdb/open_source.py", "if sign_of(path) != sign:", "if False:", ("reopening",)),
    Mutant("a worker goes on after a failure", "engines/worker.py", 'if "failed" in message:', "if False:", ("reopening",)),
    Mutant("an error holds what was read", "requests/pipeline.py", "            return EngineError()", "            raise EngineError from None", ("padding",)),
    Mutant("Ctrl-C is a failure", "requests/pipeline.py", "        except Exception:  # noqa: BLE001 -- whatever it is, it may depend on data", "        except (Exception, KeyboardInterrupt):", ("padding",)),
    Mutant("Ctrl-C ends the padding", "engines/padding.py", "            interrupted = error\n", "            raise\n", ("padding",)),
    Mutant("a timeout ends the padding", "engines/padding.py", "        except BaseException as error:", "        except KeyboardInterrupt as error:", ("padding",)),
    Mutant("what a signal raises holds what was read", "requests/pipeline.py", "            return error.with_traceback(None)", "            raise", ("padding",)),
    Mutant("Ctrl-C holds what was read", "requests/pipeline.py", "        except KeyboardInterrupt:\n            pass ", '        except KeyboardInterrupt:\n            raise KeyboardInterrupt("the query was interrupted; its charge stands") from None ', ("padding",)),
    Mutant("answers stored before the padding ends", "requests/pipeline.py", "            return finished(self._stored.keep(kept, combine=not stage.fresh))", "            shown = self._stored.keep(kept, combine=not stage.fresh)\n            self._stored.share(charge.number)\n            return finished(shown)", ("padding",)),
    Mutant("elapsed time ends before the padding", "requests/pipeline.py", "with elapsed_time(), self.engine.one_query():", "with self.engine.one_query(), elapsed_time():", ("interrupts",)),
    Mutant("a statement that was given up begins", _CONNECTION, "            if self._abandoned:", "            if False:", ("interrupts",)),
    Mutant("a statement is interrupted once", _CONNECTION, "                    self._done.wait(_PATIENCE)", "                    self._done.wait()", ("interrupts",)),
    Mutant("a branch of CASE takes unknown for false", "analysis/facts.py", "(left, right), BOOLEAN), true_or_null=True)", "(left, right), BOOLEAN))", ("ranges",)),
    Mutant("patterns are read without their options", "render/duckdb_functions.py", ", replace({3}, 'g', '')", "", ("twin",)),
    Mutant("NULL among the options is taken for present", "analysis/facts.py", 'condition.args[:1] if condition.function == "in" else condition.args', "condition.args[-1:]", ("ranges",)),
    Mutant("NOT of AND is AND of NOTs", "analysis/facts.py", 'other = "or" if function == "and" else "and"', "other = function", ("domains",)),
    Mutant("NOT IN keeps what it excludes", "analysis/facts.py", "if value not in excluded", "if value in excluded", ("domains",)),
    Mutant("TRY around more than what fails", "render/duckdb_functions.py", "\"TRY({name}(TRY({0} + INTERVAL 0 DAY)))\"", "\"TRY({name}({0} + INTERVAL 0 DAY))\"", ('late',)),
    Mutant("a CHECK is never unknown", "analysis/facts.py", "[refine(facts, arg, true_or_null) for arg in args]", "[refine(facts, arg) for arg in args]", ("checks",)),
    Mutant("NULL in IN makes a CHECK false", "analysis/facts.py", "if true_or_null and any(", "if False and any(", ("checks",)),
    Mutant("a failing view is let through", "sql/bind/catalogue.py", "if table.unsafe is not None and (table.unsafe.always or not policy.public):", "if False:", ("views",)),
    Mutant("the people of a failing view are looked up", "sql/bind/catalogue.py", "        _refuse_unsafe(other, target)\n", "", ("views",)),
    Mutant("a view's casts cannot fail", "engines/duckdb/safety/plan_rules.py", '                tried = node["function_data"]["try_cast"] and _is_simple_cast(node)', "                tried = True", ("views",)),
    Mutant("a view's constants are what they should be", "engines/duckdb/safety/plan_rules.py", "        except SourceError:\n            return False", "        except SourceError:\n            return True", ("views",)),
    Mutant("a view's patterns may be columns", "engines/duckdb/safety/plan_rules.py", "return all(_is_small(each, name in (\"//\", \"%\")) for each in arguments[1:])", "return True", ("views",)),
    Mutant("a view's divisor may be 0", "engines/duckdb/safety/plan_rules.py", "return all_floats and _is_divisor(arguments[1])", "return all_floats", ("views",)),
    Mutant("JSON is any text", "engines/duckdb/safety/plan_nodes.py", 'return str(info.get("alias") or type_["id"])', 'return str(type_["id"])', ("views",)),
    Mutant("min(x, n) takes any n", "engines/duckdb/safety/plan_rules.py", " and len(types) <= 1", "", ("views",)),
    Mutant("DECIMALs have room for a product", "engines/duckdb/safety/plan_rules.py", "digits - scale >= before + other_before and", "digits > 0 and", ("views",)),
    Mutant("DECIMALs have room for a sum", "engines/duckdb/safety/plan_rules.py", "digits - scale > max(before, other_before) and", "digits - scale >= max(before, other_before) and", ("views",)),
    Mutant("TRY catches all that is in it", "engines/duckdb/safety/plans.py", 'found = may_fail(tried.get("children", list(tried.values())), rules, node.get("alias") or column)', 'found = ""', ("views",)),
    Mutant("TRY catches everything", "engines/duckdb/safety/plans.py", 'return "" if rules.is_tried(tried) else', 'return "" if tried else', ("views",)),
    Mutant("generated columns never fail", "engines/duckdb/schema_reader.py", "            if path in views or path in computed\n", "            if path in views\n", ("views",)),
    Mutant("generated columns beside a frame never fail", "engines/duckdb/safety/views.py", " or plan_of(self.read, text) is not None)", ")", ("views",)),
    Mutant("a subquery has one row", "engines/duckdb/safety/plans.py", 'case {"join_type": "SINGLE"}:', 'case {"join_type": "NONE"}:', ("views",)),
    Mutant("a LIMIT is a number", "engines/duckdb/safety/plans.py", 'case {"type": "EXPRESSION_VALUE" | "EXPRESSION_PERCENTAGE"}:', 'case {"type": "NONE"}:', ("views",)),
    Mutant("a view beneath a view is a table", "engines/duckdb/safety/views.py", "has_more = is_table and (name.lower() in self.definitions or", "has_more = is_table and (", ("views",)),
    Mutant("a name of WITH is a table", "engines/duckdb/safety/views.py", "if name.lower() in local or not", "if not", ("views",)),
    Mutant("a table function only reads", "engines/duckdb/safety/views.py", "_READERS.fullmatch(name) is not None and not computes", "not computes", ("views",)),
    Mutant("a macro is a table", "engines/duckdb/safety/views.py", ' and not self.read(f"SELECT 1 FROM {macros}")', "", ("views",)),
    Mutant("the twin knows that it is empty", "engines/duckdb/twin.py", '"disabled_optimizers": "statistics_propagation"', '"disabled_optimizers": ""', ("twin",)),
    Mutant("the twin only plans", "engines/duckdb/twin.py", "self._connection.execute(sql).fetchmany(1)", 'self._connection.execute(f"PREPARE question AS {sql}")', ("twin",)),
    Mutant("units of different kinds put together", _OWNERS, "alike = all((each.whose, each.kinds) == (first.whose, first.kinds) for _, each in private)", "alike = all(each.whose == first.whose for _, each in private)", _OF_UNITS),
    # -- unit by unit
    Mutant("the unit not a key of per-unit groups", "render/write_relations.py", "            by.append(UNIT.name)\n", "            pass\n", ('pairs', 'units')),
    Mutant("a computed key beside the unit forgotten", _OWNERS, "(len(columns) == len(group.keys) and inner.is_unit(columns))", "inner.is_unit(columns)", _OF_UNITS),
    Mutant("one row a unit although another key stands beside it", _OWNERS, "and _whole(found) and all(any(t.name == UNIT for t in self.tags.get(c, ())) for c in listed)", "and _whole(found)", _OF_UNITS),
    Mutant("floats of a unit added in any order", _PER_UNIT, "return type_.kind is Kind.DECIMAL and type_.precision <= 18", "return True", _OF_UNITS),
    Mutant("the sign of zero left to the order of rows", "algebra/exact.py", "op(Operation.ONE_ZERO, value) if expression.type.kind is Kind.DOUBLE else value", "value", ('pairs', 'units')),
    Mutant("arg_max takes the first seen", _ROWS_SQL, 'return f"({node.function[4:]}({both}){where})[2]"', 'return f"{node.function}({argument}, {place}){where}"', _OF_UNITS),
    # -- dialects
    Mutant("days between moments counted as between dates", "sql/bind/scalar/calls.py", "if OF_DATES in node.meta and not start.type.kind is end.type.kind is Kind.DATE:", "if False:", ("dialects",)),
    # -- windows within a unit
    Mutant("a window's partition without the unit", "render/duckdb_windows.py", "within = [UNIT_COLUMN, *map(", 'within = ["1", *map(', ("windows",)),
    Mutant("a window partitioned by what does not tell the unit", "sql/bind/within_unit/window_binder.py", "or not self.whose.tells(columns):", "or False:", ("windows",)),
    Mutant("a window over rows that are each one person's", "sql/bind/within_unit/window_binder.py", "if self.whose.whose is not Whose.UNITS or not", "if not", ("windows",)),
    Mutant("a partition without the columns in which a unit's rows differ", "sql/bind/within_unit/window_binder.py", "return tuple(sorted(parts, key=repr))", "return ()", ("window values",)),
    Mutant("ties of a window by physical order", "render/duckdb_windows.py", "for name in names] if window.tells_rows_apart else []", "for name in names] if False else []", ("windows",)),
    Mutant("ties told apart by the first column alone", "render/duckdb_windows.py", "for name in names] if window.tells_rows_apart else []", "for name in names[:1]] if window.tells_rows_apart else []", ("windows",)),
    Mutant("the first of a RANGE frame by physical order", "render/duckdb_windows.py", "if window.function in VALUES and not window.tells_rows_apart:", "if False:", ("windows",)),
    Mutant("peers told apart", "algebra/unit_rows/windows.py", "return self.function in _PLACES or", "return True or", ("window values",)),
    Mutant("the sign of zero beside equal rows", "render/duckdb_windows.py", 'f"{self.scalar(one_zero(each.column))} AS {name}"', 'f"{name} AS {name}"', ("windows",)),
    Mutant("a rank taken for a bound on rows", "algebra/unit_rows/numbering.py", 'if window.function == "row_number" and', 'if window.function in ("row_number", "rank", "dense_rank") and', ("windows",)),
    Mutant("a count taken for a bound on rows", "algebra/unit_rows/numbering.py", 'if window.function == "row_number" and', "if", ("windows",)),
    Mutant("the first rows of each part taken for those of a unit", "algebra/unit_rows/numbering.py", "apart = all(isinstance(each, Column) and each.name in same for each in window.by)", "apart = True", ("windows",)),
    Mutant("ROW_NUMBER <= 2 keeps one row", "algebra/unit_rows/numbering.py", 'yield name, most - (operator == "<")', "yield name, 1", ("windows",)),
    Mutant("ROW_NUMBER <> 1 keeps one row", "algebra/unit_rows/numbering.py", 'case Column(name=name), Literal(), "=":', 'case Column(name=name), Literal(), "=" | ">" | ">=":', ("windows",)),
    Mutant("numbers that join rows of several units", "algebra/unit_rows/numbering.py", "        case _:\n            return\n", "        case _:\n            for name in ('left', 'right'):\n                if hasattr(relation, name):\n                    yield from _bounds(getattr(relation, name), same, kept)\n", ("windows",)),
    Mutant("windows over the first rows of a copy", "planning/rewrites/prepared_joins.py", "        case Filter() | Project() | Unpivot():\n            return only_scan(relation.input)", "        case Filter() | Project() | Unpivot():\n            return only_scan(relation.input)\n        case _ if hasattr(relation, 'windows'):\n            return only_scan(relation.input)", ("windows elsewhere",)),
    Mutant("NTILE(0)", "sql/bind/within_unit/window_binder.py", '"The n of NTILE(n)", 1)', '"The n of NTILE(n)", 0)', ("window cases",)),
    Mutant("frames that begin at a column", "sql/bind/within_unit/frame_ends.py", "    if number is None or not least <= number <= MOST_ROWS:", "    if number is None:\n        number = 1\n    if False:", ("window cases",)),
    Mutant("EXCEPT between people", "sql/bind/within_unit/differences.py", "or not whose.tells(each.name for each in both.fields):", "or False:", ("windows",)),
    Mutant("EXCEPT without the unit", "sql/bind/within_unit/differences.py", "same_unit=not is_public(other))", "same_unit=False)", ("windows elsewhere",)),
    Mutant("QUALIFY above an aggregate dropped", "sql/bind/select.py", 'self._refuse_windows("Qualify", "Distinct")\n        if is_released', 'if is_released', ("window cases",)),
    Mutant("QUALIFY in EXISTS dropped", "sql/bind/where.py", '"having", "qualify", "order"', '"having", "order"', ("window cases",)),
    # -- BigQuery's privacy clause
    Mutant("any column may be the privacy unit of a clause", "sql/privacy_clause/private_select.py", "if by_row or (whose.whose is Whose.UNITS and whose.is_unit([column.name])):", "if True:", ("privacy clause",)),
    Mutant("limits of a clause forgotten", "requests/text_options.py", "            found[name] = limit_of(", "            limit_of(", ("privacy clause",)),
    Mutant("the price of a clause goes before that of the call", "requests/text_options.py", "if given is not None and given != written:", "if False:", ("privacy clause",)),
    Mutant("bounds of a contribution applied row by row", "sql/privacy_clause/private_select.py", "return _clamped_rows(relation) if rows else", "return _clamped_rows(relation) if True else", ("privacy clause",)),
    Mutant("contributions not clamped from below", "sql/privacy_clause/private_select.py", 'build.unify("greatest", [value, bounds[0]])', "value", ("privacy clause",)),
    Mutant("the clause lost where a query is divided", "sql/split/divide.py", ', "with_", "privacy")', ', "with_")', ("privacy clause",)),
    # -- NULL keys, and cells that say nothing
    Mutant("the owner's word on NULL believed for bounds", _CATALOGUE, "nullable=not column.required,", "nullable=not column.required and policy.null_is_key,", ("null keys",)),
    Mutant("NULL a key whatever the owner says", _CATALOGUE, "null_is_key=policy.null_is_key and not column.required", "null_is_key=not column.required", ("null keys",)),
    Mutant("a unit's MAX may be NULL as a key", "analysis/derive.py", "shown = each.condition is not None or (of.nullable and of.null_is_key)", "shown = absent", ("null keys",)),
    Mutant("empty cells told half of the time", "planning/aggregates/estimate.py", "LEVEL = 0.95", "LEVEL = 0.5", ("undetermined",)),
    Mutant("one row enough for a sample variance", "planning/aggregates/moments/spread.py", 'needed = 0.0 if self.function.endswith("_pop") else 1.0', "needed = 0.0", ("undetermined",)),
    Mutant("shares below a count of 0 shown", "results/undetermined.py", "if plan.estimates[name].nonnegative:", "if False:", ("undetermined",)),
    Mutant("guards forgotten in HAVING", "planning/rewrites/guarded.py", "return Filter(below, self.expression(relation.predicate, meant)), meant", "return Filter(below, relation.predicate), meant", ("undetermined",)),
    Mutant("the point of the prior shown as drawn", "planning/aggregates/quantile_points.py", "return np.asarray(noisy[self.column] < 0)", "return np.zeros(len(noisy[self.column]), dtype=np.bool_)", ("undetermined",)),
    Mutant("show_all a part of what is stored", "requests/stage.py", '("show_all", "fresh", "analyst")', '("fresh", "analyst")', ("undetermined",)),
    # -- several sets of keys, and projections
    Mutant("sets of keys not added up", _SENSITIVITY, "l1=sum(l1 for l1, _ in bounds)", "l1=max(l1 for l1, _ in bounds)", ("soundness",)),
    Mutant("a total measured twice and bounded once", _SENSITIVITY, "[(many * each.l1, many * each.linf) for", "[(each.l1, each.linf) for", ("soundness",)),
    Mutant("squares of one set only", _SENSITIVITY, "squares=sum(l1 * linf for", "squares=max(l1 * linf for", ("levels",)),
    Mutant("computed keys taken for none", "planning/aggregates/context.py", "isinstance(key.expression, Column)] if keys else None", "isinstance(key.expression, Column)] or None", ("soundness",)),
    Mutant("bounded rows do not meet in totals", "planning/aggregates/context.py", "if self.limits is None or set(kept) == every:", "if True:", ("levels",)),
    Mutant("a NULL key taken for a total", "planning/exact_statement.py", "Cast(which, BIGINT, total=False)", "Cast(Constant(0), BIGINT, total=False)", ('levels',)),
    Mutant("totals doubled that are not measured twice", "planning/precision/noise_of_rows.py", "return tuple(1 if kept else measurement.sensitivity.total_times for kept in sets)", "return tuple(1 for kept in sets)", ("levels",)),
    Mutant("weights of least squares forgotten", "privacy/least_squares.py", "levels.spread(scale * rest))", "levels.spread(rest))", ("levels",)),
    Mutant("whole numbers rounded one by one", "results/consistent.py", "levels.whole_sums(rounded(levels, cells))", "np.rint(levels.sums(cells)).astype(np.int64)", ("levels",)),
    Mutant("long lists of keys let others into totals", _KEY_TESTS, "return len(group) <= LONGEST_LIST or", "return True or", ("levels",)),
    Mutant("half-width of fitted noise too small", "privacy/weighted_sums.py", "return first_below(outside, missing - 2.0 * left_out, 0.0, length / 4.0) + 0.5 * order", "return 0.9 * first_below(outside, missing, 0.0, length / 4.0)", ("levels",)),
    Mutant("tails of fitted noise without the others", "privacy/weighted_sums.py", "log_moment = _log_moment(rest, rate, rate)", "log_moment = 0.0", ("levels",)),
    Mutant("counts below 0 set to 0", "privacy/projections.py", "nearest: Floats = np.maximum(values - lowered[last], 0.0)", "nearest: Floats = np.maximum(values, 0.0)", ("projections",)),
    Mutant("counts of bounded units taken for wholes", "planning/aggregates/known_relations.py", "    if bounded:", "    if False:", ("projections",)),
    Mutant("x > 20 taken to imply x > 30", "analysis/implied.py", "low > wide_low or", "low < wide_low or", ("projections",)),
    Mutant("projections nobody asked for", "results/consistent.py", "if plan.nonnegative or plan.consistent:", "if True:", ("projections",)),
    # -- price and noise
    Mutant("scale 0.7 times too small", _NOISE, "    return discrete_laplace(measurement.rate, size, source)", "    return discrete_laplace(measurement.rate * 10 / 7, size, source)", _NOISY),
    Mutant("AVG noised once", _NOISE, "exact_columns[column] + _noise(measurement, size, source)", 'exact_columns[column] + (0 if column.startswith("below") else _noise(measurement, size, source))', _NOISY),
    Mutant("epsilon not divided among measurements", "planning/pricing.py", "losses = [share * epsilon for share in shares]", "losses = [epsilon for share in shares]", ("pricing", "soundness")),
    Mutant("selection noise halved in the price", "planning/measurements/label_selection.py", "lead = sensitivity.linf if sensitivity.monotone else min", "lead = sensitivity.linf if True else min", ("soundness", "noise")),
    Mutant("selection noise halved in the draw", _NOISE, "select(exact_scores[left], rate,", "select(exact_scores[left], rate * 2,", _NOISY),
    Mutant("ties of whole scores go to the first", "noise/selection.py", "_FINEST_RATE = Fraction(1, 2**10)", "_FINEST_RATE = Fraction(2**20)", ("selection",)),
    Mutant("finer steps with the noise of whole ones", "noise/selection.py", "-greatest, greatest) << bits, rate", "-greatest, greatest) << bits, rate * 2**bits", _NOISY),
    Mutant("absent keys left out of the answer", _NOISE, "return NoisyTable(np.arange(size, dtype=np.int64), noisy)", "here = np.flatnonzero(next(iter(exact_columns.values())))\n    return NoisyTable(here, {name: each[here] for name, each in noisy.items()})", _NOISY),
    Mutant("half-width too small", "privacy/accuracy.py", "/ rate - 1.0 - 1e-12", "/ rate * 0.9 - 1.0", _NOISY),
    Mutant("sparse vector without the factor 2", "noise/plain.py", "moves = (1 if monotone else 2) * count", "moves = count", ("mechanisms",)),
    Mutant("sparse vector pays for one of several", "noise/plain.py", "moves = (1 if monotone else 2) * count", "moves = 1 if monotone else 2", ("sparse_vector",)),
    Mutant("SmallDB at twice the price", "noise/candidate_tables.py", "return epsilon / (2 * candidates.rows", "return epsilon / (candidates.rows", ("smalldb",)),
    Mutant("SmallDB leaves out the last element", "noise/candidate_tables.py", "(by_element[:-1] - last) + self.rows * last", "(by_element[:-1] - last)", ("smalldb",)),
    Mutant("parts of an interval count alike", "mechanisms/interval_choice.py", "lengths=np.array(parts.widths, dtype=np.int64)", "lengths=np.full(len(exponents), 2**40)", ("interval_choice",)),
    Mutant("a bidder counts for more than 1", "mechanisms/auction.py", "(min(each, Fraction(1)) for each in spent)", "(each for each in spent)", ("auction",)),
    Mutant("every column at the whole epsilon", "mechanisms/responses.py", "each_loss = loss / len(bits)", "each_loss = loss", ("randomised_columns",)),
    Mutant("sparse vector with the threshold exact", "noise/plain.py", "bar = int(geometric(of_threshold, 1, source)[0]) + ", "bar = ", ("sparse_vector",)),
    Mutant("rounding to a grid moves nothing", "noise/plain.py", "return steps + size - 1", "return steps", ("mechanisms",)),
    Mutant("permute-and-flip takes the first that passes", "noise/selection.py", "passing[_uniform_index(passing.size, source)]", "passing[0]", ("mechanisms",)),
    Mutant("all scores called monotone", "mechanisms/arguments.py", "return 1 if monotone else 2", "return 1", ("mechanisms",)),
    Mutant("randomised response at twice the price", "noise/plain.py", "logistic_probability(epsilon)", "logistic_probability(2 * epsilon)", ("mechanisms",)),
    Mutant("lower parts of noise uniform", "noise/samplers.py", "        pending = pending[~accepted]", "        break", ("samplers",)),
    Mutant("the sign of noise by its upper part alone", "noise/samplers.py", "    ratio = _exponential(rate, bits) if", "    ratio = _exponential(rate * 2**shift, bits) if", ("samplers",)),
    Mutant("noise of the first digits alone", "noise/samplers.py", "np.flatnonzero(edges.first_digits[found - 1] == words).tolist()", "()", ("samplers",)),
    Mutant("Gaussian noise calibrated for half the square", _GAUSSIAN, "rounded_up(l2_squared / greatest_ratio(epsilon, delta) ** 2)", "rounded_up(l2_squared / greatest_ratio(epsilon, delta) ** 2 / 2)", ("calibration",)),
    Mutant("Gaussian tails without the far one", _GAUSSIAN, "density_high * (near_high - far_low)", "density_high * (near_high - 2 * far_low)", ("calibration",)),
    Mutant("Gaussian noise rounded down", "noise/gaussian_sampler.py", "sizes += (places >> _PLACE_BITS - 1 - law.shift) + 1 >> 1", "sizes += places >> _PLACE_BITS - law.shift", ("gaussian",)),
    Mutant("Gaussian proposals accepted too often", "noise/gaussian_sampler.py", "2 * strips + fractions", "strips + fractions", ("gaussian",)),
    Mutant("Gaussian threshold with delta spent twice", "privacy/key_selection.py", "lost + last * tail > self.delta", "max(lost, last * tail) > self.delta", ("keys",)),
    Mutant("the lesser bound as often as if the greater were free", "privacy/key_selection.py", "(delta - wide) / (narrow - wide)", "delta / narrow", ("keys",)),
    Mutant("noise of the greater bound, threshold of the lesser", "noise/key_release.py", "thresholds = bounds + release.shift", "thresholds = bounds * 0 + release.threshold - 1", ("keys",)),
    Mutant("the coin of keys upside down", "noise/key_release.py", "< release.lesser", ">= release.lesser", ("keys",)),
    # -- helper columns
    Mutant("helper columns beside * instead of names", "planning/exact_statement.py", "source = Select((*kept, *unit, *values), source)", "source = Select(values, source, everything=True)", ("helper columns",)),
    Mutant("a DECIMAL that is no number is kept", "algebra/literals.py", "if not Decimal(value).is_finite():", "if False:", ("cast constants",)),
    Mutant("offsets of times are kept", "algebra/literals.py", "isinstance(value, str) and re.fullmatch(_TIME, value):", "isinstance(value, str):", ("constants",)),
    Mutant("divisor guard removed", "render/write_expressions.py", "nullif({below}, {zero})", "{below}", ('rows', 'soundness')),
    # -- what the engine makes of an expression
    Mutant("results keep DuckDB's own type", "render/write_expressions.py", "self.type_name(made) == name else self.try_cast(rendered, None, name)", "self.type_name(made) == name else rendered", ('types',)),
    Mutant("aggregates keep DuckDB's own type", "render/duckdb.py", "return f\"TRY_CAST({self._aggregate(node, over)} AS {self.type_name(node.type)})\"", "return self._aggregate(node, over)", ('types',)),
    Mutant("totals past 64 bits are BIGINT", "sql/bind/release.py", "if self.exact and summed.is_wide else BIGINT", "if False else BIGINT", ('expressions',)),
    Mutant("%n is a format", "algebra/patterns.py", '    "%p": "AM or PM",', '    "%n": "nanoseconds",\n    "%p": "AM or PM",', ("locality",)),
    Mutant("a Parquet file's statistics decide which NaN count", "engines/duckdb/open_source.py", '", can_have_nan = true" if', '"" if', ("files",)),
    Mutant("a view reads a Parquet file by its statistics", "engines/duckdb/safety/views.py", "return SKIPPED", "pass", ("views",)),
    Mutant("conditions are believed to exclude each other", "planning/aggregates/counts.py", "if len(counts) == 1 else _counted_once(helper(index), counts)", "if len(counts) == 1 else ((), tuple(map(_count, counts)))", ("exclusive",)),
    Mutant("DuckDB compares dates instead of timestamps", "render/duckdb.py", "of is not None and of.kind is Kind.DATE and", "False and", ('optimizer',)),
    Mutant("intervals are compared", "algebra/build.py", "    if any(each.type.kind is Kind.INTERVAL for each in found):", "    if False:", ("constants",)),
    Mutant("%z is a format", "algebra/patterns.py", '    "%p": "AM or PM",', '    "%z": "time zone",\n    "%p": "AM or PM",', ("patterns",)),
    Mutant("half a letter is a pattern", "algebra/patterns.py", "[dDsSwWbBAzaftnrvQE]", "[CdDsSwWbBAzaftnrvQE]", ("patterns",)),
    Mutant("DuckDB may cast a DATE itself", "algebra/build.py", 'if "alike" in takes:', "if False:", ("expressions",)),
    Mutant("DuckDB's plan is not looked at", "engines/duckdb/twin.py", "        if failing:\n", "        if False:\n", ("expressions",)),
    Mutant("any moment has a text", "engines/duckdb/safety/plan_nodes.py", "return of in SIMPLE and of not in WITHOUT_TEXT", "return of in SIMPLE", ("views",)),
    Mutant("narrowing casts fail", "render/write_expressions.py", "AS {name})\" if holds(to, of) else", "AS {name})\" if True else", ('failures',)),
    Mutant("steps that no double can divide by", "planning/grids/value_grid.py", "least = max(least, _LEAST) if least else least", "pass", ("expressions",)),
    # -- budget
    Mutant("charge after the run", "requests/pipeline.py", _CHARGE, "        [self.engine.run(statement, priced.plan.keys) for statement in priced.plan.runs]\n" + _CHARGE, ("budget",)),
    Mutant("charge skipped", "requests/pipeline.py", _BILLS, "        return __import__('contextlib').nullcontext([Charge(place + 1, '') for place, _ in enumerate(bills)])\n", ("budget",)),
    Mutant("stored answer redrawn", "requests/pipeline.py", "None if priced.stage.fresh else self.find(priced.plan)", "None", ("budget",)),
    Mutant("derived by other conditions", "answers/ways.py", "each.texts <= wanted.texts]", "True]", ("derived",)),
    Mutant("derived without its own conditions", "answers/ways.py", "if not rows.condition_texts([each]) <= base.texts]", "if False]", ("derived",)),
    Mutant("derived cells as noisy as one", "answers/derivation.py", "((size, int(way.cells[cell])),)", "((size, 1),)", ("derived",)),
    Mutant("derived however noisy", "answers/derivation.py", "<= most * (1 + 1e-9)", "<= most * 1e9", ("derived",)),
    Mutant("derived from other rows", "answers/ways.py", "if stored.rows.text != wanted.rows.text or", "if", ("derived",)),
    Mutant("sources count alike", "answers/derivation.py", "1.0 / (way.cells * max(way.variance, _LEAST_VARIANCE)) for way in found", "1.0 + 0.0 * way.cells for way in found", ("derived",)),
    Mutant("weeks from months", "equivalence/over_keys.py", '"week": ("day", "hour")', '"week": ("month", "day", "hour")', ("derived",)),
    Mutant("answers of another policy", "answers/answer_file.py", "signs_of(plan) == signs and ", "", ("answers",)),
    Mutant("answers of another version", "answers/stored.py", "if each.version == version and each.signs.rows == rows", "if each.signs.rows == rows", ("answers",)),
    Mutant("answers shown before they are stored", "answers/answer_file.py", '                connection.execute("COMMIT")\n', "                pass\n", ("answers",)),
    Mutant("limit not checked", "budget/caps.py", "if price and spent + price > limit:", "if price and price > limit:", ("budget",)),
    Mutant("shares of analysts start anew", "budget/ledger_file/file_ledger.py", "                own += price\n", "                own = price\n", ("ledger",)),
    Mutant("the ledger read before it is locked", "budget/ledger_file/store.py", 'self._transaction("BEGIN IMMEDIATE", "COMMIT"):', 'self._transaction("BEGIN", "COMMIT"):', ("ledger",)),
    Mutant("charges not synced", "budget/ledger_file/store.py", 'synchronous: str = "FULL"', 'synchronous: str = "OFF"', ("ledger",)),
    Mutant("connections kept over a fork", "budget/ledger_file/store.py", "        self._drop()\n        return True", "        return True", ("ledger",)),
    Mutant("a ledger of two names", "budget/ledger_file/store.py", "if found.st_nlink > 1 and not self.read_only:", "if False:", ("places",)),
    Mutant("a ledger mounted without its log", "budget/ledger_file/mounts.py", "if any(point == os.path.realpath(path) for point, _ in _places(mounts)):", "if False:", ("places",)),
    Mutant("a budget in memory spent by each fork", "budget/ledger.py", "if self._process != os.getpid():", "if False:", ("places",)),
    Mutant("what is charged ahead of the clock seems to run", "budget/ledger_file/file_ledger.py", "abs(run.age()) < self._store.patience", "run.age() < self._store.patience", ("places",)),
    Mutant("prices rounded down", "budget/amount.py", "math.ceil(size * NANO)", "math.floor(size * NANO) or 1", ("ledger",)),
    Mutant("a policy raises caps", "budget/caps.py", "if current is None or policy <= current:", "if True:", ("ledger",)),
    Mutant("datasets not compared", "budget/dataset.py", "if self.tables[name] != whose:", "if False:", ("ledger",)),
    Mutant("entries not checked when read", "budget/ledger_file/format.py", "whole = row.digest() == row.hash", "whole = True", ("ledger",)),
    Mutant("a replaced file not noticed", "budget/ledger_file/file_ledger.py", "if self._seen is not None:", "if False:", ("ledger",)),
    # -- the fuse
    Mutant("fuse: not looked at before a charge", _LEDGER_FILE, "            refuse_full(state.failures(caps), analyst, self.path)\n", "", _FUSE),
    Mutant("fuse: not looked at in memory", "budget/ledger.py", "            refuse_full(self._failures(analyst), analyst, None)\n", "", _FUSE),
    Mutant("fuse: what runs could not fail", "budget/fuse.py", "return self.failed + self.unfinished >= self.most", "return self.failed >= self.most", _FUSE),
    Mutant("fuse: what runs is not noted", _LEDGER_FILE, '            self._store.execute("INSERT INTO runs VALUES (?, ?, ?)", (charges[0].number, len(charges), analyst))\n', "", _FUSE),
    Mutant("fuse: failures are taken for ends", _LEDGER_FILE, "(os.getpid(), charges[0].number), True", "(os.getpid(), charges[0].number), False", _FUSE),
    Mutant("fuse: failures in memory are taken for ends", "budget/ledger.py", "self._charge(bills, neighbours, analyst), True", "self._charge(bills, neighbours, analyst), False", _FUSE),
    Mutant("fuse: an interrupted query does not count", _LEDGER_FILE, "            yield charges\n            failed = False\n", "            yield charges\n            failed = False\n        except KeyboardInterrupt:\n            failed = False\n            raise\n", _FUSE),
    Mutant("fuse: a batch ends before it is run", "requests/batches.py", "        yield dict(zip(batch.paid, charges, strict=True))", "        pass\n    yield dict(zip(batch.paid, charges, strict=True))", _FUSE),
    Mutant("fuse: a policy lets more fail", "budget/caps.py", "if policy.failures is None or policy.failures <= current.most_failures:", "if True:", _FUSE),
    Mutant("fuse: one renewal for all", "budget/ledger_file/ledger_reader.py", "row.analyst: row.number}", '"": row.number}', _FUSE),
    Mutant("fuse: failures of nothing verified", "budget/ledger_file/verify.py", "        if not known:\n", "        if False:\n", _FUSE),
    Mutant("fuse: the least price not asked", "budget/caps.py", "if caps.least is not None and sum(", "if False and sum(", _FUSE),
    Mutant("fuse: a policy lowers the least price", "budget/caps.py", "if policy is None or current is None or policy >= current:", "if True:", _FUSE),
    Mutant("counts promised where people have many rows", "budget/ledger_file/show.py", "for whose in rules.dataset.tables.values()) else", "for whose in rules.dataset.tables.values()) or True else", ("shown",)),
    # -- names that differ only in case
    Mutant("case: two names of a policy", "names.py", "    if repeated is not None:\n", "    if False:\n", _FOLDED),
    Mutant("case: tables of a policy made by hand", "policy/policy.py", '        object.__setattr__(self, "tables", folded(self.tables, "tables"))\n', "        pass\n", _FOLDED),
    Mutant("case: columns of Arrow and Polars", "engines/duckdb/dataframes.py", '        _refuse_repeated([str(name) for name in getattr(frame, "column_names", None) or frame.columns])\n', "", _FOLDED),
    Mutant("case: columns of a file", "engines/duckdb/file_columns.py", "    repeated = repeated_name(written)\n", "    repeated = None\n", _FOLDED),
    Mutant("case: two tables of a database", "engines/duckdb/catalogue/table_names.py", "    _refuse_repeated({name for *_, name in seen})\n", "", _FOLDED),
    Mutant("case: temporary tables hide by other rules than DuckDB's", "engines/duckdb/catalogue/table_names.py", 'letter.lower() if letter.isascii() else letter for', "letter.lower() for", _FOLDED),
    Mutant("case: columns that say whose a row is", _CATALOGUE, "followed through references to other tables.\"\"\"\n        _refuse_repeated(table)\n", "followed through references to other tables.\"\"\"\n", _FOLDED),
    Mutant("case: two queries of a WITH", "sql/bind/query.py", "        if name in seen:\n", "        if False:\n", _FOLDED),
    Mutant("case: two aliases", "sql/bind/select.py", "if all(each == first for each in others)}", "}", _FOLDED),
    # -- names with schemas
    Mutant("schemas: a table is looked up by its name alone", "render/base.py", "location or (name,))", "(name,))", ("schemas",)),
    Mutant("schemas: the other table is looked up by its name alone", "render/write_relations.py", "joined = self.table(target.table, target.location)", "joined = self.table(target.table)", ("schemas",)),
    Mutant("schemas: a query of WITH takes the place of a table", "sql/parse/qualified_names.py", 'return ".".join(f\'"{part}"\' for part in table.path or (table.name,))', "return table.name", ("schemas",)),
    Mutant("schemas: a query of WITH may have a reserved name", "sql/parse/qualified_names.py", "if each.alias.startswith('\"'):", "if False:", ("schemas",)),
    Mutant("schemas: a temporary table does not hide one of main", "engines/duckdb/catalogue/table_names.py", 'hidden = schema.lower() == "main" and plain(name) in temporary', "hidden = False", ("schemas",)),
    Mutant("schemas: prepared copies can be named", "engines/duckdb/catalogue/table_names.py", " if not is_ours(each[0])]", "]", ("schemas",)),
    Mutant("schemas: a hidden table loses its unit", "sql/bind/catalogue.py", "if other is not None and self.policy.table(other.name).unit is not None:", "if False:", ("schemas",)),
    Mutant("schemas: attached tables need no policy", "sql/bind/catalogue.py", "if table.name.lower() not in self.policy.tables:\n            raise Refused(\n                \"refused-attached\"", "if False:\n            raise Refused(\n                \"refused-attached\"", ("schemas",)),
    Mutant("schemas: of a schema and a database the first", "schema.py", "return meant if database is None or database in meant else [*meant, database]", "return meant", ("schemas",)),
    Mutant("schemas: a policy may mean either table", "policy/resolve.py", "if len(meant) > 1:", "if False:", ("schemas",)),
    Mutant("schemas: the policy of the first USE stays", "policy/resolve.py", "own = _name_of(schema, name, again)", "own = name", ("schemas",)),
    Mutant("schemas: a view of files elsewhere is read as one of main", "engines/duckdb/safety/views.py", "definitions = {} if location else self.definitions", "definitions = self.definitions", ("schemas",)),
    Mutant("schemas: letters of other alphabets have no case", "engines/duckdb/catalogue/table_names.py", "if counts[joined(each).lower()] == 1]", "]", ("schemas",)),
    Mutant("schemas: an owner's search path ends at main", "engines/duckdb/schema_reader.py", ' and "," not in paths', "", ("schemas",)),
    Mutant("schemas: columns belong to a table behind its alias", "sql/parse/qualified_names.py", "self.paths = () if self.aliased else", "self.paths =", ("schemas",)),
    Mutant("schemas: two tables of one name are one", "sql/parse/qualified_names.py", "if beside and len(path) > 1:", "if False:", ("schemas",)),
    Mutant("macros: the owner's catalogue is read", "engines/duckdb/catalogue/catalogue_statements.py", 'f"expression, referenced_table, referenced_column_names FROM {SYSTEM}.duckdb_constraints() "', '"expression, referenced_table, referenced_column_names FROM duckdb_constraints() "', ("settings",)),
    Mutant("schemas: a policy that no longer fits is kept", "requests/pipeline.py", "                self.policy = with_names_of(schema, self._written)\n                self.schema = schema\n", "                self.schema = schema\n                self.policy = with_names_of(schema, self._written)\n", ("schemas",)),
    # -- time zones
    Mutant("zones: an instant may fail", "render/write_relations.py", 'return self.guarded(f"timezone({self.text(zone)}, {name})")', 'return f"timezone({self.text(zone)}, {name})"', ("zones",)),
    Mutant("zones: a zone that nobody knows", "engines/duckdb/safety/plan_nodes.py", "return isinstance(zone, str) and (zone,) in read(", "return True or bool(", ("zones",)),
    Mutant("zones: all instants are in UTC", "sql/bind/catalogue.py", "return in_zone(zone) if cast == IN_UTC else cast", "return cast", ("zones",)),
    Mutant("zones: instants tell people apart", _CATALOGUE, "return finer or column.cast == IN_UTC", "return finer", ("zones",)),
    Mutant("zones: the connection's setting decides", "render/write_relations.py", 'return self.guarded(f"timezone({self.text(zone)}, {name})")', 'return self.try_cast(name, None, "TIMESTAMP")', ("zones",)),
    Mutant("zones: AT TIME ZONE 'UTC' in any zone", "sql/parse/time_zones.py", "if zone == UTC and is_utc:", "if is_utc:", ("zones",)),
    Mutant("zones: AT TIME ZONE of any zone", "sql/parse/time_zones.py", "if zone == UTC and is_utc:", "if zone == UTC:", ("zones",)),
    Mutant("zones: an offset means nothing", "sql/parse/time_zones.py", "known = dt.timezone(_offset(offset)) if offset else there", "known = there", ("zones",)),
    Mutant("zones: instants of an Arrow table fit", "engines/duckdb/dataframes.py", 'pc.cast(table[field.name], pa.timestamp("us", field.type.tz))', "pass", ("zones",)),
    # -- accountants
    Mutant("accountant: rho rounded down", "budget/amount.py", "math.ceil(size * NANO)", "math.floor(size * NANO) or 1", _ACCOUNTANTS),
    Mutant("accountant: rho of Gaussian noise halved", "privacy/zcdp.py", "return Fraction(event.ratio) / 2, Fraction(0)", "return Fraction(event.ratio) / 4, Fraction(0)", _ACCOUNTANTS),
    Mutant("accountant: the cap on rho a thousandth too high", "budget/accountants.py", "NANO), delta) * NANO)", "NANO), delta) * NANO * Fraction(1001, 1000))", _ACCOUNTANTS),
    Mutant("accountant: the whole of delta for the conversion", "budget/accountants.py", "return Fraction(whole - math.floor(whole * self.for_keys), ATTO)", "return Fraction(whole, ATTO)", _ACCOUNTANTS),
    Mutant("accountant: deltas of keys not added", "privacy/zcdp.py", "event.changes), event.delta", "event.changes), Fraction(0)", _ACCOUNTANTS),
    Mutant("accountant: every choice taken for the exponential mechanism", "privacy/zcdp.py", "return _of_ranges(2, event.epsilon, event.parts), Fraction(0)", "return _of_ranges(1, event.epsilon, event.parts), Fraction(0)", _ACCOUNTANTS),
    Mutant("accountant: Laplace noise as if one cell moved", "privacy/zcdp.py", "Fraction(event.l1 * event.linf)", "Fraction(event.linf * event.linf)", _ACCOUNTANTS),
    Mutant("accountant: exclusive keys counted once", "planning/measurements/partition_selection.py", "math.ceil(touched.groups * tail * FINEST_CHANCE)", "math.ceil(tail * FINEST_CHANCE)", _ACCOUNTANTS),
    Mutant("accountant: Gaussian parts priced apart", "planning/measurements/gaussian_noise.py", "return Gaussian(epsilon, delta, sum(parts, Fraction(0)))", "return Gaussian(epsilon, delta, max(parts))", _ACCOUNTANTS),
    Mutant("accountant: epsilon of rho from the wrong side", "privacy/zcdp.py", "order * rho + log_part - (log_delta + log_order) / above_one", "rho + log_part - (log_delta + log_order) / above_one", _ACCOUNTANTS),
    Mutant("accountant: another than the ledger's accepted", "budget/caps.py", "    _same_accountant(current, policy)\n    shares", "    shares", _ACCOUNTANTS),
    Mutant("accountant: the format of older ledgers kept", "budget/ledger_file/store.py", 'self.execute(f"PRAGMA user_version = {FORMAT}")', "pass", _ACCOUNTANTS),
    Mutant("accountant: unknown events priced", "budget/accountants.py", "if type(each) not in EVENTS.values():", "if not hasattr(each, 'epsilon'):", _ACCOUNTANTS),
    Mutant("accountant: charges for less than was released not found", "budget/ledger_file/verify.py", "return row.epsilon >= price.nano and", "return", _ACCOUNTANTS),
    Mutant("meaning: IS TRUE of an unknown", _NORMAL, "        if self._never_null(condition):\n", "        if True:\n", _MEANT),
    Mutant("meaning: NULL is true", _NORMAL, "return _TRUE if value is True else _FALSE", "return _FALSE if value is False else _TRUE", _MEANT),
    Mutant("meaning: IS NOT DISTINCT FROM is =", _NORMAL, 'if self._never_null(left) or self._never_null(right):\n                return compared("="', 'if True:\n                return compared("="', _MEANT),
    Mutant("meaning: IS NOT NULL says nothing", _NORMAL, "value not in known]", "False]", _MEANT),
    Mutant("meaning: there in one side of OR", _NORMAL, "frozenset.intersection(*map(there, args))", "frozenset.union(*map(there, args))", _MEANT),
    Mutant("meaning: COALESCE with TRUE", _NORMAL, "return (negated(test), False) if otherwise else (test, True)", "return test, True", _MEANT),
    Mutant("meaning: COALESCE in any order", _NORMAL, '"least" | "greatest"', '"least" | "greatest" | "coalesce"', _MEANT),
    Mutant("meaning: NOT < is >", _FUNCTIONS, '_compared("<", ">=", ">")', '_compared("<", ">", ">")', _MEANT),
    Mutant("meaning: >= 30.5 is >= 30", _COMPARISONS, "math.floor(exact) + 1 if strict else math.ceil(exact)", "math.floor(exact) + 1 if strict else math.floor(exact)", _MEANT),
    Mutant("meaning: < 30.5 is < 30", _COMPARISONS, "math.ceil(exact) - 1 if strict", "math.floor(exact) - 1 if strict", _MEANT),
    Mutant("meaning: casts that lose values", _COMPARISONS, "_uncast(inner) if to.low <= inner.type.low and inner.type.high <= to.high else value", "_uncast(inner)", _MEANT),
    Mutant("meaning: every whole number is a DOUBLE", _COMPARISONS, "return largest <= _EXACT_DOUBLE", "return True", _MEANT),
    Mutant("meaning: a - b is b - a", _ARITHMETIC, 'if call.function not in ("+", "*"):\n        return call', 'if call.function not in ("+", "*", "-"):\n        return call', _MEANT),
    Mutant("meaning: // rounds down", _ARITHMETIC, "abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)", "a // b", _MEANT),
    Mutant("meaning: a sum of nothing is 0 in groups", _FRAMES, 'added = function == "sum" and not exact', 'added = function == "sum"', _MEANT),
    Mutant("meaning: AVG with ELSE 0", _FRAMES, 'added = function == "sum" and not exact', "added = not exact", _MEANT),
    Mutant("meaning: what LEFT JOIN is on", _FRAMES, "parts += sorted(_padding(each", "parts += sorted('' and _padding(each", _MEANT),
    Mutant("meaning: LEFT JOIN is JOIN", _BLOCKS, 'case Join(kind="inner"):', "case Join():", _MEANT),
    Mutant("meaning: EXISTS is NOT EXISTS", _FRAMES, "{'without' if test.anti else 'with'}", "with", _MEANT),
    Mutant("meaning: out of NOT EXISTS", _BLOCKS, "        if not semi.anti:", "        if True:", _MEANT),
    Mutant("meaning: NULL among NOT IN", _FRAMES, "if test.null_aware and isinstance(on, Call):", "if False:", _MEANT),
    Mutant("meaning: a table beside itself", _FRAMES, 'return name if number == OWN else f"{places[int(number)]}.{rest}"', "return rest", _MEANT),
    Mutant("meaning: UNION ALL with itself", _FRAMES, '" and ".join(map(computed, self.blocks))', '" and ".join(dict.fromkeys(map(computed, self.blocks)))', _MEANT),
    Mutant("meaning: labels of UNPIVOT", _BLOCKS, "relation.name: Literal(label, TEXT)", 'relation.name: Literal("", TEXT)', _MEANT),
    Mutant("meaning: the order of keys of units", _RELEASE, "    if bounded:\n", "    if False:\n", _MEANT),
    Mutant("meaning: WHERE of units", _RELEASE, "rows = frame.text if bounded or open_keys or not aggregates else frame.rows", "rows = frame.rows", _MEANT),
    Mutant("meaning: largest is smallest", _RELEASE, "{'largest' if release.largest else 'smallest'}", "best", _MEANT),
    Mutant("meaning: keys of groups", _FRAMES, "by {sorted(set(keys.values()))} of", "of", _MEANT),
    Mutant("meaning: DISTINCT", _BLOCKS, 'text = f"different {sorted(set(listed))} from {text}"', "return self.read(relation.input)[0]", _MEANT),
    Mutant("meaning: clamps", _IDENTITY, "structure((measurement.mechanism, measurement.sensitivity,", "structure((measurement.mechanism,", _MEANT),
    Mutant("meaning: key sets", _IDENTITY, "sorted(_values(group, place) for group in plan.space.groups)", "0", _MEANT),
    # -- prepared copies
    Mutant("a copy gives one row more of a unit", "render/write_relations.py", "WHERE {RANK} <= {scan.most})", "WHERE {RANK} <= {scan.most} + 1)", ('copies',)),
    Mutant("ranks by where rows lie", "engines/duckdb/copies/copy_recipe.py", "order=(place, *content))", "order=(Name(ROW_NUMBER),))", ('copies',)),
    Mutant("ranks over all units", "engines/duckdb/copies/copy_recipe.py", "rank = Over(\"row_number\", by=(UNIT,), order=", "rank = Over(\"row_number\", order=", ('copies',)),
    Mutant("zeros of both signs in a copy", "engines/duckdb/copies/copy_recipe.py", "if field.type.kind is not Kind.DOUBLE:", "if field.type.kind is not Kind.NULL:", ('copies',)),
    Mutant("a row of a copy counts once, whatever it becomes", "planning/rewrites/prepared.py", "rows=most * one.rows", "rows=one.rows", ("copies",)),
    Mutant("the log is no part of a sign", "engines/duckdb/fingerprints.py", 'if "wal" in suffix', "if not suffix", ("signs",)),
    Mutant("times set back make a copy fresh", "engines/duckdb/fingerprints.py", ", status.st_ctime_ns) for name", ") for name", ("signs",)),
    Mutant("a copy of an exchanged file", "engines/duckdb/copies/prepared_tables.py", " or not is_open(path))", ")", ("signs",)),
    Mutant("temporary tables are prepared", "engines/duckdb/copies/prepared_tables.py", "if not keeping.own", "if False", ("signs",)),
    Mutant("totals of one rank more", "planning/rewrites/stored_totals.py", "op(Operation.BETWEEN, scan.most,", "op(Operation.BETWEEN, scan.most + 1,", ('totals',)),
    Mutant("totals of two ranks at once", "planning/rewrites/stored_totals.py", "Over(\"lead\", rank, order=(rank,)) - 1", "Over(\"lead\", rank, order=(rank,))", ('totals',)),
    Mutant("totals count NULL", "planning/rewrites/stored_totals.py", "return _times(present, feature.times)", "return _times(Name(_ROWS), feature.times)", ('totals',)),
    Mutant("totals whatever FILTER says", _BY_RANK, "    if feature.condition is not None:\n", "    if False:\n", ("totals",)),
    Mutant("totals of a column by another's name", _BY_RANK, "if not named or not isinstance", "if not isinstance", ("totals",)),
    Mutant("totals by key", _BY_RANK, "not scan.totals or release.keys or", "not scan.totals or", ("totals",)),
    Mutant("units by key: one key more", "planning/rewrites/stored_unit_counts.py", "op(Operation.BETWEEN, kept.max_groups,", "op(Operation.BETWEEN, kept.max_groups + 1,", ('units by key',)),
    Mutant("units by key: not added up", "planning/rewrites/stored_unit_counts.py", "Over(\"sum\", Fold(\"count\"), (column,), (place,), running=True)", "Over(\"any_value\", Fold(\"count\"), (column,), (place,), running=True)", ('units by key',)),
    Mutant("units by key: undeclared keys take places", "planning/rewrites/stored_unit_counts.py", "tests = () if key.test is None else (key.test,)", "tests = ()", ('units by key',)),
    Mutant("units by key: by rows", "planning/rewrites/stored_unit_counts.py", "(key.column, column)), source, keys=2)", "(key.column, column)), source)", ('units by key',)),
    Mutant("units by key: of a copy that is out of date", _BY_KEY, "or not copy.fresh or", "or", ("units by key",)),
    Mutant("units are counted by all their rows", "planning/rewrites/prepared.py", "(1 if units else ad_hoc.most(each, key_columns(release.keys)))", "ad_hoc.most(each, key_columns(release.keys))", ("totals",)),
    Mutant("units of a WHERE are all units", "planning/rewrites/prepared.py", "isinstance(below, Scan) and bool(", "bool(", ("copies",)),
    Mutant("what units agree in is counted by rows", "planning/rewrites/prepared.py", "for c in columns_of(each.argument)} <= fixed", "for c in columns_of(each.argument)} < fixed", ("totals",)),
    Mutant("a copy is noisier with few keys", "planning/rewrites/prepared.py", "min(own, self.cells * self.rows)", "own", ("noise of copies",)),
    Mutant("a copy has Laplace noise for Gaussian", "planning/rewrites/prepared.py", "        less = self.less()", "        less = Fraction(1)", ("noise of copies",)),
    Mutant("a copy has more Gaussian noise", "planning/rewrites/prepared.py", "        if self.gaussian:", "        if False:", ("noise of copies",)),
    Mutant("rows of a copy meet any number of rows", _COPY_JOINS, "if is_unique(relation.right, [b for _, b in pairs]):", "if True:", ("joins of copies",)),
    Mutant("a copy meets itself", _COPY_JOINS, "return None if scan is not None and scan in walk(other) else scan", "return scan", ("joins of copies",)),
    Mutant("padded rows of a copy's join", _COPY_JOINS, 'if found is None and relation.kind == "inner" and', "if found is None and", ("joins of copies",)),
    Mutant("few cells move by one each", _SENSITIVITY, "most = max(1, cells) * sensitivity.linf", "most = max(1, cells)", ("tightness", "soundness")),
    Mutant("several columns of a key are one cell", "planning/aggregates/context.py", "at_most(found, self.cells * cells)", "at_most(found, self.cells)", ("tightness", "soundness")),
    # -- the public number of rows
    Mutant("the number of rows is public though rows come and go", "planning/aggregates/context.py", "replaced = self.neighbours is Neighbours.REPLACE_ONE and ", "replaced = ", ("public rows",)),
    Mutant("the number of rows is public under a filter", "planning/aggregates/context.py", "replaced and self.always_counts and self.stability.rows", "replaced and self.stability.rows", ("public rows",)),
    Mutant("a row that becomes two is one row", "planning/aggregates/context.py", "self.always_counts and self.stability.rows == 1", "self.always_counts", ("public rows",)),
    Mutant("NULL counts in a public number of rows", "planning/aggregates/means.py", "condition is None and not grid.nullable", "condition is None", ("public rows",)),
    Mutant("NULL counts in a spread's number of rows", "planning/aggregates/moments/moment_sums.py", "lead.condition is None and not grid.nullable", "lead.condition is None", ("public rows",)),
    Mutant("two moments move as one", "planning/aggregates/moments/moment_sums.py", "size = -(-9 * one // 8)", "size = one", ("public rows",)),
    Mutant("what is public is free", "planning/pricing.py", "some._at(epsilon * (1 - len(public) * SLIVER))", "some._at(epsilon)", ("public rows",)),
    Mutant("a view leaves no row out", "analysis/stability.py", "Stability(1, not scan.view,", "Stability(1, True,", ("public rows",)),
    # -- order
    Mutant("quantiles without the factor 2", _RANKS, "else 2 * max(self.fraction, 1 - self.fraction)", "else max(self.fraction, 1 - self.fraction)", ("ranks",)),
    Mutant("a replaced row moves ranks as one that comes", _RANKS, "        if not self.replaced:", "        if True:", ("ranks",)),
    Mutant("a replaced row moves all ranks one way", _RANKS, "return Fraction(1 if self.extreme else 2)", "return Fraction(1)", ("ranks",)),
    Mutant("who leaves a cell and enters another is charged for one", _RANKS, "return 2 * self.rows * spans[-1]", "return self.rows * spans[-1]", ("ranks",)),
    Mutant("of two problems that a row leaves and enters one is charged for", _RANKS, "sum(spans[-2:], Fraction(0))", "spans[-1]", ("ranks",)),
    Mutant("the rarer side of a quantile", _RANKS, "else 2 * max(self.fraction, 1 - self.fraction)", "else 2 * min(self.fraction, 1 - self.fraction)", ("ranks",)),
    Mutant("margins cost as little as the very end", _RANKS, "return self.fraction in (0, 1) and not self.margin", "return self.fraction in (0, 1)", ("ranks",)),
    Mutant("MIN leans the wrong way", "noise/quantile_sampler.py", "return zones if self.step.lean > 0 else", "return zones if self.step.lean else", ("ranks",)),
    Mutant("quantiles are counted from above", "noise/quantile_rows.py", "above, below = step.fraction.numerator,", "above, below = step.fraction.denominator - step.fraction.numerator,", ("ranks",)),
    Mutant("ranks off by one", "noise/quantile_rows.py", "    rows = low.whole + quotient * above", "    rows = low.whole + 1 + quotient * above", ("ranks",)),
    Mutant("ties are cut in one piece", "noise/quantile_sampler.py", "        turn[within] = self._turn_within(runs.cell[within], runs.before[within], tied[within])\n", "", ("ranks",)),
    Mutant("a bin is kept as it was proposed", "noise/runs.py", "if rough[run]:  # any", "if False:  # any", ("ranks",)),
    Mutant("what is proposed in vain is kept", "noise/runs.py", "        kept = (words < _SURE) & (proposed[found] >= _LARGE)", "        kept = (words < 2**32) & (proposed[found] >= 0)", ("ranks",)),
    Mutant("falling positions are level", "noise/runs.py", "        kept = words < chance", "        kept = words < 2**32", ("ranks",)),
    Mutant("too few rows are further away than a point can be", "noise/quantile_sampler.py", "else (-1, np.zeros_like(rows))", "else (1, 2 * rows)", ("ranks",)),
    Mutant("too few rows twice as far away for MIN", "noise/quantile_sampler.py", "return (1, rows) if 2 * self.step.fraction < 1", "return (1, 2 * rows) if 2 * self.step.fraction < 1", ("ranks",)),
    Mutant("too few rows twice as far away with a margin", "noise/quantile_sampler.py", "return 1, self.target.whole + rows", "return 1, self.target.whole + 2 * rows", ("ranks",)),
    Mutant("undetermined on a later level", "noise/quantile_sampler.py", "if roots and step.root else None", "if roots else None", ("ranks",)),
    Mutant("determined below what is not", "noise/quantile_sampler.py", "np.where(points[side] < 0, -1, found)", "found", ("ranks",)),
    Mutant("what stands for undetermined is drawn from the rows", "noise/quantile_sampler.py", "-1 - _drawn(empty, search, source, roots=False)", "-1 - _drawn(exact, search, source, roots=False)[:, without]", ("ranks",)),
    Mutant("a cell without rows is determined half the time", "privacy/quantile_search.py", "_EMPTY = 19", "_EMPTY = 1", ("ranks",)),
    Mutant("values are not clamped from above", "planning/grids/value_grid.py", "clamped(Cast(argument, self._wide, total=False), low, high) - low", "op(Operation.GREATEST, Cast(argument, self._wide, total=False), low) - low", ('order',)),
    Mutant("NULL counts as the low end", "planning/aggregates/quantile_points.py", "op(Operation.IS_PRESENT, value)", "op(Operation.SAME, value, value)", ('order',)),
    Mutant("a unit's rows in a key are not cut", "planning/aggregates/quantile_points.py", "(ROWS_COLUMN, after - before)", "(ROWS_COLUMN, rows)", ('order',)),
    Mutant("a unit's keys are not counted", "planning/aggregates/quantile_points.py", "    if ranked:", "    if False:", ("order",)),
    Mutant("rows of a person are one row", "planning/aggregates/quantile_points.py", "Change(max(1, stable.rows)", "Change(1", ("order", "soundness")),
    Mutant("several places for the price of one", "planning/measurements/label_selection.py", "return (sensitivity.l1 if in_groups else lead) * picks", "return sensitivity.l1 if in_groups else lead", ("choice",)),
    Mutant("a choice in groups priced as one choice", "planning/measurements/label_selection.py", "return (sensitivity.l1 if in_groups else lead) * picks", "return lead * picks", ("choice",)),
    Mutant("a lead moves by linf", "planning/measurements/label_selection.py", "min(2 * sensitivity.linf, sensitivity.l1)", "sensitivity.linf", ("choice",)),
    Mutant("columns of both sides taken for a chain", "analysis/chains.py", "any(read <= side for side in sides)", "True", ("choice",)),
    Mutant("any condition taken for a chain", "analysis/chains.py", "return (own, theirs) if apart else None", "return own, theirs", ("choice",)),
    Mutant("scores of people taken for the candidates'", "analysis/chains.py", "all(_names(each) <= sides[0] for each in read)", "True", ("choice",)),
    Mutant("moments priced by one step", "planning/aggregates/moments/moment_sums.py", "size = -(-whole // scaling)", "size = grid.steps + 0 * (-whole // scaling)", ("soundness",)),
    Mutant("moments divided without a step more", "planning/aggregates/moments/moment_sums.py", "(len(every) if scaling > 1 else 0)", "0", ("spread",)),
    Mutant("moments of a unit not cut", "planning/aggregates/moments/moment_sums.py", "many = op(Operation.GREATER, count, most)", "many = op(Operation.GREATER, 0, most)", ('spread',)),
    Mutant("NULLs beside sums not cut", "planning/aggregates/counts_beside_sums.py", "self.cells(least(every, most), kept)", "self.cells(every, kept)", ('beside',)),
    Mutant("rows that are not NULL not cut beside NULLs", "planning/aggregates/counts_beside_sums.py", "kept_up_to(rows, every, most, [UNIT])", "rows", ('beside',)),
    Mutant("NULL counts as one more than any value", "planning/aggregates/counts_beside_sums.py", "* self.one for kind", "* (self.one + 1) for kind", ('beside',)),
    Mutant("NULLs of rows that a FILTER leaves out", "planning/aggregates/sums.py", "for each in (Name(value), None)\n        )", "for each in (Name(value), None)\n        )\n        every = Cast(Fold(\"count\"), WIDE, total=False)", ('beside',)),
    Mutant("a count beside sums of another condition", "planning/aggregates/release_parts.py", "each.argument is None and each.condition == condition]", "each.argument is None]", ("beside",)),
    Mutant("all rows counted beside sums, by keys", "planning/aggregates/context.py", "REPLACE_ONE and self.key_columns is None and not self.sets\n\n    def counting", "REPLACE_ONE and not self.sets\n\n    def counting", ("beside",)),
    Mutant("all rows counted beside sums, though people come and go", "planning/aggregates/context.py", "return self.neighbours is Neighbours.REPLACE_ONE and self.key_columns is None and not self.sets", "return self.key_columns is None and not self.sets", ("beside",)),
    Mutant("COUNT(*) without the NULLs", _BESIDE, "[*sums, *self.names]", "[*sums]", ("beside",)),
    Mutant("counts beside sums though some number gets noisier", "planning/aggregates/compare_errors.py", "nowhere_worse = all(are_no_larger(some, others) for some, others in pairs)", "nowhere_worse = True", ("beside",)),
    Mutant("totals over all keys are not compared", "planning/aggregates/compare_errors.py", "times = each.sensitivity.total_times if total else 1", "times = 1", ("beside",)),
    Mutant("keys shown by more people than before", "planning/choose_measurements.py", "return surer and people_for_keys(one.pricing, epsilon) <= people_for_keys(other.pricing, epsilon)", "return surer", ('beside',)),
    Mutant("the rows of another condition derived from NULLs", "answers/ways.py", "if base.texts <= wanted.texts and weight is not None:", "if weight is not None:", ("beside",)),
    Mutant("a share of a Gaussian release for the whole", "planning/measurements/gaussian_noise.py", "self.variance * self.share >= l2_squared", "self.variance >= l2_squared", ("pricing",)),
    Mutant("a share below zero", "planning/measurements/gaussian_noise.py", "if not 0 < self.share <= 1 or self.variance <= 0:", "if False:", ("measurement",)),
    Mutant("a selection of no candidates", "planning/measurements/label_selection.py", "if self.rate <= 0 or self.picks < 1:", "if self.rate <= 0:", ("measurement",)),
    Mutant("stored searches are asked of the budget again", "requests/range_search.py", "paid = missing if open_limits else _unpaid(stage, missing, pipeline)", "paid = missing", ("auto ranges",)),
    Mutant("plans of many keys are kept", "requests/planning_cache.py", " and self._cells(planned) <= _MOST_CELLS", "", ("plan cache",)),
    Mutant("shares of epsilon pass the whole", "planning/pricing.py", "[Fraction(each, sum(whole)) for each in whole]", "[Fraction(each, max(whole)) for each in whole]", ("pricing",)),
    Mutant("a share's rest counts it again", "planning/aggregates/count_conditions.py", 'condition = both(condition, Call("not", (met,), BOOLEAN))', "condition = condition", ("pricing",)),
    Mutant("stored by meaning at any price", "answers/stored.py", "(each.loss, each.delta_loss, each.noise_scale)", "(1,)", ("stored",)),
    Mutant("stored cells in the stored order", "answers/stored.py", "noisy.noisy_columns[old][order]", "noisy.noisy_columns[old]", ("stored",)),
    Mutant("bins leave rows out", "planning/rewrites/value_bins.py", "(op(Operation.NOT, Name(_NEAR)),)", "(op(Operation.LESS, 1, 0),)", ('order',)),
    Mutant("rows between the ends left out", "planning/rewrites/value_bins.py", "(op(Operation.GREATER, rows, 0),)", "(op(Operation.LESS, rows, 0),)", ('order',)),
    Mutant("an end begins at its last point", "planning/grids/value_grid.py", "low + (place - 2) * step", "low + (place + 0) * step", ('order',)),
    Mutant("a unit is in the bucket of each of its keys", "planning/limits/limit_histograms.py", "return Group(cells, (), ", "return Group(cells, cells.keys, ", ("limits",)),
    Mutant("units are not told apart in a histogram", "planning/limits/limit_histograms.py", "return Group(relation, (), ((\"n\", count),), per_unit=True)", "return Group(relation, (), ((\"n\", count),), per_unit=False)", ("limits",)),
    Mutant("a limit of one table is raised by another", _PER_UNIT, "undeclared = all(name in each.assumed", "undeclared = any(name in each.assumed", ("limits",)),
    Mutant("what the owner declared is raised", _PER_UNIT, "if most is not None and value > most:", "if most is None and value > 10**6:", ("limits",)),
    Mutant("a search besides the whole epsilon", "requests/limit_search.py", "epsilon=whole * (1 - SHARE)", "epsilon=whole", ("limits",)),
    Mutant("a search that leaves too little for the query", "requests/limit_search.py", "expect([*rest, *unpaid], pipeline, open_limits=True)", "expect(unpaid, pipeline)", ("limits",)),
    Mutant("default limits do not warn", "planning/limits/bounding.py", "return self.assumed & self.binding.keys()", "return frozenset()", ("limits",)),
    Mutant("keys beyond the limit are dropped in silence", "planning/limits/bounding.py", "len(space) <= limits.max_groups)", "len(space) >= limits.max_groups)", ("limits",)),
    Mutant("totals within a unit are clamped in silence", "planning/limits/bounding.py", "if any(each.function in _TOTALS for _, each in named):", "if not named:", ("limits",)),
    Mutant("a warning after the charge", "session.py", "            pipeline.give_notice(priced.plan)\n            answer = pipeline.answer(priced)", "            answer = pipeline.answer(priced)\n            pipeline.give_notice(priced.plan)", ("limits",)),
    Mutant("fewer rows at an end than may matter", "planning/rewrites/value_bins.py", "limit=ends[end]", "limit=ends[end] // 2", ('order',)),
    Mutant("padded columns tell the unit in GROUP BY", _OWNERS, "for column in columns for tag in self.tags.get(column, ())}", "for column in columns for tag in self.in_equality(column)}", ("joins",)),
    # -- several releases, and subqueries inside expressions
    Mutant("composed: a second stage at any price", _COMPOSING, "return len(events) == len(paid) and all(map(covers, paid, events))", "return True", ("stages",)),
    Mutant("composed: a charge that depends on the example", "privacy/events.py", "return Pure(event.epsilon) if isinstance(event, Laplace) else event", "return event", ("stages",)),
    Mutant("composed: many cheap choices pay for a dear one", "privacy/events.py", "case Pure(parts=1), Pure()", "case Pure(), Pure()", ("stages",)),
    Mutant("composed: a second stage of another mechanism", _COMPOSING, "and priced.stage.mechanism is None:", "and False:", ("stages",)),
    Mutant("composed: the second stage runs with the examples", _COMPOSING, "    if _is_covered(found.plan, priced.plan):\n        return found", "    if _is_covered(found.plan, priced.plan):\n        return priced", ("stages",)),
    Mutant("composed: a stored answer of the example is taken", "requests/batches.py", "spent = place in later or priced[place].stage.fresh", "spent = priced[place].stage.fresh", ("stages",)),
    Mutant("composed: epsilon for every release", _COMPOSING, "batch = plan_batch(listed, stage.price(), pipeline, alone, later)", "batch = plan_batch(listed, stage.price() * len(listed), pipeline, alone, later)", ("composed",)),
    Mutant("composed: delta for every release", _COMPOSING, "float(delta_of(stage.delta) / private)", "float(delta_of(stage.delta))", ("stages",)),
    Mutant("composed: a release that is not charged", "requests/pipeline.py", "for place, each in enumerate(listed)\n        ]", "for place, each in enumerate(listed[1:])\n        ]", ("composed",)),
    Mutant("composed: private tables are public parts", "sql/split/split.py", "return RowKind.PUBLIC if found is None or is_public(found.relation) else RowKind.PRIVATE", "return RowKind.PUBLIC", ("composed",)),
    Mutant("composed: a constant taken for a noisy value", "sql/split/same_parts.py", "for number in range(2):", "for number in range(0):", ("stages",)),
    Mutant("composed: ranges are looked for by nobody", _COMPOSING, "if part.noisy and not part.needs and unknown_ranges(", "if not part.noisy and unknown_ranges(", ("stages",)),
    Mutant("correlated: a COUNT of nothing is NULL", _DECORRELATE, "if isinstance(_function(each), _COUNTS)\n            else column", "if False\n            else column", ("composed queries",)),
    Mutant("correlated: NOT IN beside a NULL is true", _DECORRELATE, "exp.If(this=unknown, true=exp.Null()),", "exp.If(this=unknown, true=exp.Boolean(this=False)),", ("composed queries",)),
    Mutant("correlated: a lookup by what is not unique", _DECORRELATE, "return is_unique(relation, keys)", "return bool(keys)", ("correlated",)),
    Mutant("correlated: rows of others within one row", _DECORRELATE, "if is_released(self.tables.relation(query)):\n            raise _of_many(tied)\n        return True", "return True", ("correlated",)),
    Mutant("correlated: NOT IN of what is not the unit", _JOINS, "return any(one.is_unit([a]) and two.is_unit([b])", "return any(one.tells([a]) and two.tells([b])", ("correlated",)),
    Mutant("correlated: one group a row for part of its keys", "algebra/unit_rows/bounded.py", "isinstance(relation, Group) and bool(relation.keys) and {key.name for key in relation.keys} <= wanted", "isinstance(relation, Group) and bool(wanted)", ("correlated",)),
    # -- drafts of policies
    Mutant("a range guessed for every number", "drafting/columns.py", '_range(domain, "LOWEST", "HIGHEST", _FILL_IN)', '_range(domain, "0", "1000", _FILL_IN)', ("drafting",)),
    Mutant("noise taken for a range", "drafting/ranges.py", "if max(noisy_counts, default=0) <= threshold:", "if not noisy_counts:", ("drafting",)),
    Mutant("a range that ends at the last bucket", "drafting/ranges.py", " or max(-low, high) >= LARGEST", "", ("drafting",)),
    Mutant("each search at the price of all", "drafting/findings.py", "each = epsilon_of(price / queries)", "each = price", ("drafting",)),
    Mutant("a range that a DECIMAL cannot have", "planning/limits/range_histograms.py", "    if type_.kind is not Kind.DECIMAL:\n", "    if True:\n", ("auto ranges",)),
    Mutant("searches that the ledger does not see", "drafting/findings.py", "MemoryLedger(price, policy.neighbours) if path is None else", "MemoryLedger(price, policy.neighbours) if path else", ("drafting",)),
    Mutant("a cap above the budget is not warned of", "drafting/budget_lines.py", "epsilon > policy.epsilon:", "epsilon > 100 * policy.epsilon:", ("drafting",)),
    Mutant("a large epsilon is not warned of", "drafting/budget_lines.py", "epsilon >= LITTLE_PROTECTION", "epsilon > LITTLE_PROTECTION", ("drafting",)),
    # -- releases of marginals
    Mutant("residuals: replacing costs as much as adding", "privacy/marginals/residual_price.py", "found = _of_two_rows(sizes, variances)", "found = _of_one_row(sizes, variances)", ("residuals",)),
    Mutant("residuals: all columns differing is the worst pattern", "privacy/marginals/residual_price.py", "Fraction(float(sums.max()))", "Fraction(float(sums[-1]))", ("residuals",)),
    Mutant("residuals: rows of a unit not squared", "privacy/marginals/residual_price.py", "by.rows**2 * max(", "by.rows * max(", ("residuals",)),
    Mutant("residuals: the total is free for units", "planning/marginals/plan_residuals.py", "always=rows == 1 and stability.steady", "always=rows == 1", ("releases",)),
    Mutant("residuals: noise of the uncentred count", "planning/marginals/residual_measurement.py", "self.variances[columns] * self.cells(columns) ** 2", "self.variances[columns] * self.cells(columns)", ("residuals",)),
    Mutant("residuals: noise that does not cover the price", "planning/marginals/residual_measurement.py", "self.ratio > greatest_ratio(self.epsilon, self.delta) ** 2", "self.ratio > greatest_ratio(self.epsilon, self.delta)", ("residuals",)),
    Mutant("residuals: undeclared values counted nowhere else", "planning/marginals/plan_residuals.py", "both = found.type.kind is Kind.BOOLEAN and set(claim.values or ()) == {False, True}", "both = True", ("releases",)),
    Mutant("residuals: a release that is not charged", "release/releases.py", "bill = [Released(NOISE, plan.what, event_of(plan))]", "bill = []", ("releases",)),
    Mutant("releases: a noisier one answers what is paid for", "release/releases.py", "return None if as_good and not is_as_good(asked, plan, answered.derived) else (answered, cells)", "return answered, cells", ("releases",)),
    Mutant("releases: of another state of the data", "release/releases.py", "for each in self._kept.values() if each.version == version]", "for each in self._kept.values()]", ("releases",)),
    Mutant("releases: rows of users as if all were counted", "release/releases.py", "if not release.plan.bounding", "if True", ("releases",)),
    Mutant("releases: stored under another policy", "release/releases.py", "if signature_of(plan) != entry.signature or parts is None:", "if parts is None:", ("releases",)),
    Mutant("releases: of another ledger", "answers/release_file.py", "if row[1] == self._charge_of(row[0]) and digest_of(row) == written:", "if digest_of(row) == written:", ("releases",)),
    Mutant("strategies: replacing costs as much as adding", "privacy/marginals/strategy_price.py", "longest = two", "longest = one", ("strategies",)),
    Mutant("strategies: units that come are not replaced", "privacy/marginals/strategy_price.py", "longest = max(one, two)", "longest = one", ("strategies",)),
    Mutant("strategies: rows of a unit not squared", "privacy/marginals/strategy_price.py", "found = by.rows**2 * longest / variance", "found = by.rows * longest / variance", ("strategies",)),
    Mutant("strategies: noise that does not cover the price", "planning/marginals/strategy_measurement.py", "if self.ratio > greatest_ratio(self.epsilon, self.delta) ** 2:", "if False:", ("strategies",)),
    Mutant("strategies: noise of a smaller variance", "noise/marginals/strategy_noise.py", "rounded_gaussian(measured.variance, len(exact_product), source)", "rounded_gaussian(measured.variance * 4 / 5, len(exact_product), source)", ("strategies",)),
    Mutant("strategies: every part has the whole ratio", "planning/marginals/plan_joint.py", "[part(place, share) for place, share in enumerate(shares)]", "[part(place, Fraction(1)) for place, share in enumerate(shares)]", ("strategies",)),
    Mutant("strategies: a joint plan may cost more", "planning/marginals/joint_plan.py", "if self.ratio > greatest_ratio(self.loss, self.delta_loss) ** 2:", "if False:", ("strategies",)),
    Mutant("strategies: what was not measured has a variance", "privacy/marginals/strategies.py", "            return math.inf\n        return max", "            return 0.0\n        return max", ("strategies",)),
    Mutant("strategies: rows of one kind that differ", "release/strategy_tables.py", "if (found[kind_of] != flat).any():", "if False:", ("strategies",)),
    Mutant("strategies: several parts are not weighted", "release/answer_query.py", "weights = [1.0 / np.maximum(each.variances, float(_LEAST)) for each in found]", "weights = [1.0 + 0 * np.maximum(each.variances, float(_LEAST)) for each in found]", ("strategies",)),
    Mutant("batches: jointly whatever the error", "release/joint_batch.py", "if plan.bounding or not joint < _own_variance(plan_batch(listed, whole, pipeline)):", "if plan.bounding:", ("online",)),
    Mutant("online: a stream that never ends", "release/online.py", "if self._spent + price > self.epsilon:", "if False:", ("online",)),
    Mutant("online: of any table, whatever it counts", "release/online.py", "counted(self._pipeline.read(stage), self.table)", "self._pipeline.read(stage)", ("online",)),
    Mutant("online: what fails was free", "release/online.py", "            self._spent += price\n            try:\n                answer = self._ask(request)", "            try:\n                answer = self._ask(request)\n                self._spent += price", ("online",)),
    Mutant("online: what the budget refuses has a price", "release/online.py", "                self._spent -= price", "                pass", ("online",)),
    Mutant("MWEM: a score that one row changes twice", "planning/marginals/mwem_plan.py", "part / (2 * moves), part / moves)", "part / moves, part / moves)", ("releases",)),
    Mutant("residuals: conditions within a part of a range", "release/cell_conditions.py", "    return edge in cells.dividing_edges", "    return True", ("releases",)),
    Mutant("residuals: outer edges divide", "release/cell_conditions.py", "    return edge in cells.dividing_edges", "    return edge in cells.edges", ("releases",)),
    Mutant("residuals: undeclared texts are known", "release/cell_conditions.py", "    return all(isinstance(each, Literal) and", "    return any(isinstance(each, Literal) and", ("releases",)),
    Mutant("residuals: intervals of what was shrunk", "release/residual_tables.py", "tables, known = (self.shown(columns), self.unbiased(columns))", "tables, known = (self.shown(columns), 0 * self.unbiased(columns))", ("releases",)),
]  # fmt: skip


@dataclass(frozen=True)
class Spot:
    """Where a mistake goes: a file of the package, its text, and the part of it that is exchanged."""

    path: Path
    text: str
    start: int
    end: int

    def planted(self, new: str) -> str:
        return self.text[: self.start] + new + self.text[self.end :]


_PIECES = re.compile(r"\w+|\s+|[^\w\s]")


def _pattern(old: str) -> re.Pattern[str]:
    """The text however it is laid out: line breaks, indentation and a comma before a closing bracket do not count."""
    found, last = "", ""
    for piece in _PIECES.findall(old.strip()):
        if piece.isspace():
            continue
        comma = r",?\s*" if piece in ")]}" else ""
        between = (
            r"\s+"
            if (last[-1:].isalnum() or last[-1:] == "_") and (piece[0].isalnum() or piece[0] == "_")
            else r"\s*"
        )
        found += (comma or between if found else "") + re.escape(piece)
        last = piece
    return re.compile(found)


@lru_cache(maxsize=4)
def _sources(package: Path) -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}


def spots(mutant: Mutant, package: Path) -> list[Spot]:
    """Every place that the text of a mutant has: in its own file, else anywhere in the package."""
    pattern = _pattern(mutant.old)
    own = package / mutant.file
    paths = [own] if own in _sources(package) else [*_sources(package)]
    return [
        Spot(path, _sources(package)[path], each.start(), each.end())
        for path in paths
        for each in pattern.finditer(_sources(package)[path])
    ]


def run(command: str, package: Path) -> tuple[bool, str]:
    """Whether the command passes with that copy of the package."""
    paths = os.pathsep.join(map(str, (package, ROOT)))  # the tests of this tree, the package of that one
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *COMMANDS[command]],
        cwd=package,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    return done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def copied(into: str) -> Path:
    shutil.copytree(ROOT / "privsql", Path(into) / "privsql", ignore=shutil.ignore_patterns("__pycache__"))
    return Path(into)


def try_mutant(mutant: Mutant) -> tuple[Mutant, str, float]:
    """What caught it: a command, 'SURVIVED' or 'STALE'."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="privsql_mutant_") as folder:
        found = spots(mutant, ROOT / "privsql")
        if len(found) != 1:
            return mutant, "STALE", 0.0
        path = copied(folder) / "privsql" / found[0].path.relative_to(ROOT / "privsql")
        path.write_text(found[0].planted(mutant.new.strip()), encoding="utf-8")
        for command in mutant.by:
            passed, _ = run(command, Path(folder))
            if not passed:
                return mutant, command, time.monotonic() - started
    return mutant, "SURVIVED", time.monotonic() - started


def main() -> int:
    words = sys.argv[1:]
    chosen = [
        each for each in MUTANTS if not words or any(word.lower() in each.name.lower() for word in words)
    ]
    with (
        tempfile.TemporaryDirectory(prefix="privsql_mutant_") as folder,
        ThreadPoolExecutor(PROCESSES) as pool,
    ):
        package = copied(folder)
        needed = list(dict.fromkeys(command for each in chosen for command in each.by))
        for command, (passed, output) in zip(
            needed, pool.map(lambda each: run(each, package), needed), strict=True
        ):
            if not passed:  # else every mutant would seem to be caught
                print(f"{command} fails without any mutant:\n{output}")
                return 1
        bad = 0
        for mutant, caught, seconds in pool.map(try_mutant, chosen):
            bad += caught in ("SURVIVED", "STALE")
            print(f"{mutant.name:<55} {caught:<10} {seconds:5.1f} s", flush=True)
    print(f"{len(chosen) - bad} of {len(chosen)} mutants caught")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
