"""What the data's owner declares -- a TOML file, a dict or keywords -- goes in; a checked Policy comes
out.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from pathlib import Path
from typing import Any

from privsql.errors import ArgumentError, PolicyError, did_you_mean
from privsql.names import folded
from privsql.neighbours import Accounting as Accounting
from privsql.neighbours import Neighbours as Neighbours
from privsql.suggestions import Argument, InPolicy, Way

DEFAULT_GROUPS = 3
DEFAULT_ROWS = 10
NANO = 10**9
AUTO = "auto"
EVERYONE = "*"  # among analysts: each one who is not listed
PART_FOR_KEYS = Fraction(1, 10)  # of delta, under zCDP
SMALLEST_EPSILON = Fraction(1, 10**6)
LARGEST_EPSILON = Fraction(10**4)
MAX_FAILURES = 3  # of one analyst, where the policy says nothing


@dataclass(frozen=True)
class UnitPolicy:
    """Whose privacy: columns of the table, or (`table`) the unit of the row of another table that they
    name.
    """

    columns: tuple[str, ...]
    table: str | None = None
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class ColumnPolicy:
    """One column: a range that values are clamped into, or the values that may be keys."""

    low: Any = None
    high: Any = None
    values: tuple[Any, ...] | None = None
    # False: a key set that was given whole, without NULL, or the owner's word that there is none
    null_is_key: bool = True
    auto: bool = False  # the range is to be found privately, at a price, when it is first needed


@dataclass(frozen=True)
class TablePolicy:
    """One table: whose rows these are, and what its columns may hold."""

    public: bool = False
    unit: UnitPolicy | None = None
    max_groups: int | None = None
    max_rows: int | None = None
    unique: tuple[tuple[str, ...], ...] = ()  # the owner's promise, where the schema has no UNIQUE
    # rows that may share a value of a column in a join
    matches: Mapping[str, int] = field(default_factory=dict)
    auto: bool = False  # ranges that nobody declared are found privately
    columns: Mapping[str, ColumnPolicy] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "matches", folded(self.matches, "matches"))
        object.__setattr__(self, "columns", folded(self.columns, "columns"))

    def column(self, name: str) -> ColumnPolicy:
        return self.columns.get(name.lower(), ColumnPolicy())


@dataclass(frozen=True)
class Share:
    """What one analyst may spend of the budget; without a delta, as much of that as there is."""

    epsilon: Fraction
    delta: Fraction | None = None


@dataclass(frozen=True)
class Policy:
    """Everything declared. Nothing declared: every row is one person's, no ranges, no keys, no limit."""

    neighbours: Neighbours = Neighbours.REPLACE_ONE
    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    per_query: Fraction | None = None  # the most epsilon that one question may cost
    per_query_least: Fraction | None = None  # and the least: what a query that fails must have cost
    # queries of one analyst that may fail after their charge; None: the default
    max_failures: int | None = None
    # fairness; the guarantee is epsilon and delta
    analysts: Mapping[str, Share] = field(default_factory=dict)
    dataset: str | None = None  # a name of the owner's, by which ledgers of like tables are told apart
    accountant: Accounting | None = None
    # of delta, set aside for keys that nobody declared; under zCDP only
    part_for_keys: Fraction = PART_FOR_KEYS
    version: str | None = None  # what the owner calls the data as it is now: answers are stored under it
    min_units: int = 1  # no key that nobody declared is shown with fewer units
    tables: Mapping[str, TablePolicy] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", folded(self.tables, "tables"))

    def table(self, name: str) -> TablePolicy:
        return self.tables.get(name.lower(), TablePolicy())

    @property
    def by_row(self) -> bool:
        """Whether each row of every private table is one person's."""
        return all(table.public or table.unit is None for table in self.tables.values())

    def with_columns(
        self, table: str, ranges: Mapping[str, Any] | str | None, keys: Mapping[str, Any] | None
    ) -> Policy:
        """This policy with the keywords of a call: ranges={column: (low, high)} or "auto", keys={column:
        [...]}
        """
        if ranges is None and keys is None:
            return self
        old = self.table(table)
        if isinstance(ranges, str):
            if ranges != AUTO:
                raise ArgumentError(
                    "argument-shape", 'ranges is a dict from column names, or "auto"', 'ranges="auto"'
                )
            old, ranges = replace(old, auto=True), None
        columns = dict(old.columns)
        for given, what in ((ranges, "ranges"), (keys, "keys")):
            folded(dict(_items(given, what)), what, ArgumentError)
        for name, bounds in _items(ranges, "ranges"):
            written = f"ranges={{{name!r}: (LOWEST, HIGHEST)}}"
            columns[name.lower()] = replace(old.column(name), **_range(bounds, f"ranges[{name!r}]", written))
        for name, values in _items(keys, "keys"):
            listed = _values(values, f"keys[{name!r}]", f"keys={{{name!r}: [VALUES]}}")
            before = columns.get(name.lower(), ColumnPolicy())
            columns[name.lower()] = replace(before, values=listed, null_is_key=_has_null(values))
        tables = {**self.tables, table.lower(): replace(old, columns=columns)}
        return replace(self, tables=tables)


def epsilon_of(value: object, name: str = "epsilon") -> Fraction:
    """A budget parameter as an exact multiple of one nano-epsilon; anything that is none is refused."""
    number = _number(value, name)
    if number <= 0:
        raise ArgumentError("argument-epsilon", f"{name} must be greater than 0", _try(name, "1.0"))
    if not SMALLEST_EPSILON <= number <= LARGEST_EPSILON:
        raise ArgumentError(
            "argument-epsilon", f"{name} must lie between 0.000001 and 10000", _try(name, "1.0")
        )
    return Fraction(math.floor(number * NANO), NANO)


def delta_of(value: object, name: str = "delta") -> Fraction:
    """A delta in [0, 1) as an exact fraction."""
    number = _number(value, name)
    if not 0 <= number < 1:
        raise ArgumentError("argument-delta", f"{name} must be at least 0 and below 1", _try(name, "1e-6"))
    return number


def _number(value: object, name: str) -> Fraction:
    code, example = ("argument-delta", "1e-6") if "delta" in name else ("argument-epsilon", "1.0")
    if isinstance(value, Real) and not isinstance(value, (int, float, Fraction)):  # numpy's numbers
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        raise ArgumentError(code, f"{name} must be a number, not {type(value).__name__}", _try(name, example))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ArgumentError(code, f"{name} must be a finite number", _try(name, example))
        return Fraction(repr(float(value)))  # 0.1 means one tenth, not the nearest binary fraction
    return Fraction(value)


def _try(name: str, example: str) -> list[Way]:
    """An argument of a call, or a setting of [budget]."""
    setting = name.removeprefix("budget.")
    return [("try ", Argument(name, example) if setting == name else f"{setting} = {example}")]


def neighbours_of(value: object) -> Neighbours:
    """The neighbour relation by its name."""
    if isinstance(value, Neighbours):
        return value
    try:
        return Neighbours(value)
    except ValueError:
        raise ArgumentError(
            "argument-neighbours",
            "neighbours must be 'replace-one' or 'add-remove'",
            "leave it out for 'replace-one'",
        ) from None


def load_policy(source: Policy | Mapping[str, Any] | str | Path | None) -> Policy:
    """A Policy, a dict of the file's shape, a TOML path or nothing -> Policy."""
    match source:
        case None:
            return Policy()
        case Policy():
            return source
        case str() | Path():
            try:
                return _policy(tomllib.loads(Path(source).read_text(encoding="utf-8")))
            except OSError:
                raise PolicyError("policy-file", "the policy file cannot be read", "check its path") from None
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise PolicyError("policy-file", f"the policy file is not valid TOML: {error}") from None
        case Mapping():
            return _policy(source)
        case _:
            raise PolicyError("policy-shape", "policy must be a Policy, a dict or the path of a TOML file")


_BUDGET = {"epsilon", "delta", "per_query", "per_query_least", "max_failures"}
_BUDGET |= {"analysts", "dataset", "accountant", "part_for_keys"}


def _policy(raw: Mapping[str, Any]) -> Policy:
    _only(raw, {"neighbours", "budget", "tables", "min_units", "version"}, "the policy")
    budget = _table(raw.get("budget", {}), "budget")
    _only(budget, _BUDGET, "budget")
    tables = _table(raw.get("tables", {}), "tables")
    folded(tables, "tables")
    return Policy(
        neighbours=neighbours_of(raw.get("neighbours", Neighbours.REPLACE_ONE)),
        epsilon=epsilon_of(budget["epsilon"], "budget.epsilon") if "epsilon" in budget else None,
        delta=delta_of(budget.get("delta", 0), "budget.delta"),
        **_per_query(budget),
        max_failures=limit_of(budget.get("max_failures"), "budget.max_failures"),
        analysts=_analysts(_table(budget.get("analysts", {}), "budget.analysts")),
        dataset=_dataset(budget.get("dataset")),
        **_accountant(budget),
        version=version_of(raw.get("version")),
        min_units=limit_of(raw.get("min_units"), "min_units") or 1,
        tables={name.lower(): _table_policy(_table(table, name), name) for name, table in tables.items()},
    )


def _per_query(budget: Mapping[str, Any]) -> dict[str, Any]:
    """The most and the least that one query may cost."""
    most, least = (
        epsilon_of(budget[name], f"budget.{name}") if name in budget else None
        for name in ("per_query", "per_query_least")
    )
    if most is not None and least is not None and least > most:
        raise PolicyError(
            "policy-shape",
            "budget.per_query_least is above budget.per_query: no query could be asked",
            f"per_query_least = {float(most):g}",
        )
    return {"per_query": most, "per_query_least": least}


def _analysts(raw: Mapping[str, Any]) -> dict[str, Share]:
    """ana = 2.0, or ana = { epsilon = 2.0, delta = 1e-7 }; "*" is everyone else."""
    found = {}
    for name, value in raw.items():
        if name != EVERYONE and not is_name(name):
            raise PolicyError(
                "policy-shape", "budget.analysts has a name that is empty or not plain text", "ana = 2.0"
            )
        share = value if isinstance(value, Mapping) else {"epsilon": value}
        _only(share, {"epsilon", "delta"}, "budget.analysts")
        if "epsilon" not in share:
            raise PolicyError("policy-shape", "a share in budget.analysts has no epsilon", "ana = 2.0")
        delta = delta_of(share["delta"], "delta in budget.analysts") if "delta" in share else None
        found[name] = Share(epsilon_of(share["epsilon"], "epsilon in budget.analysts"), delta)
    return found


def _accountant(budget: Mapping[str, Any]) -> dict[str, Any]:
    """Whether the accountant can keep a promise of this kind."""
    name, names = budget.get("accountant"), [each.value for each in Accounting]
    if name is not None and name not in names:
        raise PolicyError(
            "policy-accountant", f"there is no accountant {name!r}", did_you_mean(str(name), names)
        )
    if name == "zcdp" and not ("epsilon" in budget and budget.get("delta")):
        raise PolicyError(
            "policy-accountant", "rho stands for an epsilon at a delta, so zcdp needs both", "delta = 1e-6"
        )
    if name == "pure" and budget.get("delta"):
        raise PolicyError(
            "policy-accountant", "a budget with a delta is not pure", 'accountant = "approximate"'
        )
    part = budget.get("part_for_keys")
    if part is not None and name != "zcdp":
        raise PolicyError(
            "policy-accountant",
            "part_for_keys is the part of delta that zcdp sets aside for keys",
            "part_for_keys = 0.1",
        )
    return {
        "accountant": None if name is None else Accounting(name),
        "part_for_keys": PART_FOR_KEYS if part is None else delta_of(part, "part_for_keys (of delta)"),
    }


def _dataset(value: Any) -> str | None:
    if value is not None and not is_name(value):
        raise PolicyError("policy-shape", "budget.dataset must be a name", 'dataset = "clinic"')
    return None if value is None else str(value)


def is_name(value: object) -> bool:
    """Whether a ledger can write this as a name: plain text, not empty, not for everyone."""
    if not isinstance(value, str) or value == EVERYONE:
        return False
    return value.isprintable() and value == value.strip() and 0 < len(value) <= 200


def analyst_of(value: object) -> str:
    """Who asks."""
    if not is_name(value):
        raise ArgumentError(
            "argument-analyst", "analyst must be a name: plain text of up to 200 characters", 'analyst="ana"'
        )
    return str(value)


def version_of(value: object) -> str | None:
    """What the owner calls the data as it is now."""
    if value is not None and not is_name(value):
        raise ArgumentError(
            "argument-version",
            "version must be a name of the data: plain text of up to 200 characters",
            'version="2026-11"',
        )
    return None if value is None else str(value)


def _table_policy(raw: Mapping[str, Any], name: str) -> TablePolicy:
    where = f"tables.{name}"
    _only(raw, {"public", "unit", "max_groups", "max_rows", "unique", "matches", "columns"}, where)
    if not isinstance(raw.get("public", False), bool):
        raise PolicyError("policy-shape", f"{where}.public must be true or false")
    columns = _table(raw.get("columns", {}), f"{where}.columns")
    folded(columns, f"{where}.columns")
    return TablePolicy(
        public=raw.get("public", False),
        unit=None if raw.get("unit") is None else unit_of(raw["unit"], f"{where}.unit"),
        max_groups=limit_of(raw.get("max_groups"), f"{where}.max_groups"),
        max_rows=limit_of(raw.get("max_rows"), f"{where}.max_rows"),
        unique=_unique(raw.get("unique", ()), f"{where}.unique"),
        matches=_matches(raw.get("matches", {}), f"{where}.matches"),
        columns={
            column.lower(): _column_policy(_table(entry, column), f"{where}.columns.{column}")
            for column, entry in columns.items()
        },
    )


def limit_of(value: Any, where: str, code: str = "policy-shape") -> int | None:
    """A bound on one unit's part: a whole number from 1 to a million, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**6:
        error = PolicyError if code == "policy-shape" else ArgumentError
        name, auto = where.rpartition(".")[2], "" if code == "policy-shape" else ' or "auto"'
        way = f"{name} = 3" if code == "policy-shape" else [(Argument(name, "3"),)]
        raise error(code, f"{where} must be a whole number from 1 to 1,000,000{auto}", way)
    return value


def unit_of(value: Any, where: str = "unit") -> UnitPolicy:
    """'user_id', ['clinic', 'patient'], or 'customer_id -> customers.id': the unit of the row that it
    names.
    """
    listed = [value] if isinstance(value, str) else value
    example: list[Way] = [(Argument("unit", '"COLUMN"') if where == "unit" else 'unit = "COLUMN"',)]
    example.append((InPolicy('unit = "customer_id -> customers.id"'),))
    if (
        not isinstance(listed, (list, tuple))
        or not listed
        or not all(isinstance(each, str) for each in listed)
    ):
        raise PolicyError("policy-unit", f"{where} must be the name of a column, or a list of names", example)
    parts = [[side.strip() for side in each.split("->")] for each in listed]
    columns = tuple(part[0] for part in parts)
    if not all(columns) or len({column.lower() for column in columns}) < len(columns):
        raise PolicyError("policy-unit", f"{where} names an empty column or one twice", example)
    if all(len(part) == 1 for part in parts):
        return UnitPolicy(columns)
    targets = [part[1].split(".") if len(part) == 2 else [] for part in parts]
    if (
        any(len(target) != 2 or not all(target) for target in targets)
        or len({t[0].lower() for t in targets}) > 1
    ):
        raise PolicyError("policy-unit", f"{where} must refer to columns of one other table", example)
    return UnitPolicy(columns, targets[0][0], tuple(target[1] for target in targets))


def _unique(value: Any, where: str) -> tuple[tuple[str, ...], ...]:
    """['code'] or [['year', 'number']]: columns that no two rows agree in."""
    if not isinstance(value, (list, tuple)):
        raise PolicyError("policy-shape", f"{where} must be a list of columns", 'unique = ["code"]')
    found = [(each,) if isinstance(each, str) else each for each in value]
    if not all(
        isinstance(each, (list, tuple)) and each and all(isinstance(n, str) for n in each) for each in found
    ):
        raise PolicyError("policy-shape", f"{where} must be a list of columns", 'unique = ["code"]')
    for each in found:
        folded(dict.fromkeys(each), where)
    return tuple(tuple(each) for each in found)


def _matches(value: Any, where: str) -> dict[str, int]:
    """{doctor_id = 50}: rows that may share one value."""
    found = {}
    folded(_table(value, where), where)
    for name, most in _table(value, where).items():
        checked = limit_of(most, f"{where}.{name}")
        assert checked is not None or most is None
        if checked is not None:
            found[name.lower()] = checked
    return found


def _column_policy(raw: Mapping[str, Any], where: str) -> ColumnPolicy:
    _only(raw, {"range", "values", "nullable"}, where)
    nullable = raw.get("nullable", True)
    if not isinstance(nullable, bool):
        raise PolicyError("policy-shape", f"{where}.nullable must be true or false", "nullable = false")
    bounds = _range(raw["range"], f"{where}.range") if "range" in raw else {}
    values = _values(raw["values"], f"{where}.values") if "values" in raw else None
    return ColumnPolicy(values=values, null_is_key=nullable, **bounds)


def _range(bounds: Any, where: str, written: str = "range = [LOWEST, HIGHEST]") -> dict[str, Any]:
    if isinstance(bounds, str) and bounds == AUTO:
        return {"auto": True}
    if not isinstance(bounds, Sequence) or isinstance(bounds, str) or len(bounds) != 2:
        raise PolicyError("policy-range", f"{where} must be a pair: lowest and highest value", written)
    low, high = bounds
    for bound in (low, high):
        if isinstance(bound, (float, Decimal)) and not math.isfinite(bound):
            raise PolicyError("policy-range", f"{where} must be finite", written)
    try:
        ordered = bool(low <= high)
    except TypeError:
        raise PolicyError(
            "policy-range", f"the two ends of {where} are of different types", written
        ) from None
    if not ordered:
        raise PolicyError("policy-range", f"{where} has its lowest value above its highest", written)
    return {"low": low, "high": high}


def _values(values: Any, where: str, written: str = "values = [VALUES]") -> tuple[Any, ...]:
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__"):
        raise PolicyError("policy-values", f"{where} must be a list of values", written)
    try:
        listed = tuple(dict.fromkeys(value for value in values if not _is_null(value)))
    except TypeError:  # a list or dict among them
        raise PolicyError("policy-values", f"{where} must be a list of plain values", written) from None
    if not listed:
        raise PolicyError("policy-values", f"{where} is empty", written)
    return listed


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _has_null(values: Any) -> bool:
    return any(_is_null(value) for value in values)


def _items(mapping: Mapping[str, Any] | None, name: str) -> list[tuple[str, Any]]:
    if mapping is None:
        return []
    if not isinstance(mapping, Mapping) or not all(isinstance(key, str) for key in mapping):
        raise ArgumentError(
            "argument-shape", f"{name} must be a dict from column names", f'{name}={{"age": ...}}'
        )
    return list(mapping.items())


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise PolicyError("policy-shape", f"{where} must be a table")
    if not all(isinstance(name, str) for name in value):
        raise PolicyError("policy-shape", f"the names in {where} must be strings")
    return value


def _only(raw: Mapping[str, Any], known: set[str], where: str) -> None:
    for name in raw:
        if name not in known:
            raise PolicyError(
                "policy-unknown", f"{where} has no setting {name!r}", did_you_mean(str(name), sorted(known))
            )
