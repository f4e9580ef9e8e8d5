"""A release goes in; what it measures comes out, independent of names: its rows, keys and aggregates.

Two releases with the same meaning have the same exact cells on every database, up to the order of their keys
and aggregates, provided that their sums are clamped to the same ranges. The ranges belong to the measurement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from privsql.algebra.expressions import Aggregate
from privsql.algebra.relations import Choose, Release
from privsql.algebra.unit_rows.bounded import is_bounded
from privsql.equivalence.blocks import BlockReader, NotComparableError
from privsql.equivalence.frames import Frame, aggregate_of, framed, grouped, value_of
from privsql.equivalence.written import digest, structure

_READ = ("input", "keys", "aggregates", "score", "largest", "not_null")


@dataclass(frozen=True)
class Meaning:
    """What a release measures. Keys and aggregates keep the release's own order; each is named by its
    meaning.

    The name of an aggregate includes the conditions on its rows. So in two releases with equal `rows`, `form`
    and keys, aggregates with the same name have the same exact cells, whatever else the releases contain.
    """

    form: str  # release or selection, and the order of keys and counts where it makes a difference
    rows: str
    keys: tuple[str, ...]
    aggregates: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Equal for all releases with the same meaning."""
        return digest(repr((self.form, self.rows, sorted(self.keys), sorted(self.aggregates))))

    @property
    def key_places(self) -> tuple[int, ...]:
        """For each key of the release, its place in the order shared by all releases of this meaning."""
        return _places(self.keys)

    @property
    def aggregate_places(self) -> tuple[int, ...]:
        return _places(self.aggregates)


def _places(names: Sequence[str]) -> tuple[int, ...]:
    order = sorted(range(len(names)), key=lambda index: (names[index], index))
    return tuple(order.index(index) for index in range(len(names)))


def meaning(release: Release | Choose, open_keys: bool = False) -> Meaning:
    """What a release measures. A release too large to be analysed is equivalent only to one of the same
    structure.

    `open_keys`: the keys are undeclared, so which of them occur is measured as well.
    """
    try:
        return _meaning(release, open_keys)
    except (NotComparableError, RecursionError):
        keys = [structure(key) for key in release.keys]
        names = [structure(each) for each in _aggregates(release)]
        return Meaning(f"as it stands: {digest(structure(release))}", "", _named(keys), _named(names))


def _meaning(release: Release | Choose, open_keys: bool) -> Meaning:
    aggregates = _aggregates(release)
    keys = [value_of(key.expression) for key in release.keys]
    measured = [aggregate_of(each, exact=False) for each in aggregates]
    blocks = BlockReader(framed, grouped).read(release.input)
    frame = Frame(blocks, [*keys, *measured])
    key_names, names = _named(map(frame.of, keys)), _named(map(frame.of, measured))
    form = "release"
    if isinstance(release, Choose):
        never = sorted(
            name for key, name in zip(release.keys, key_names, strict=True) if key.name in release.not_null
        )
        form = f"{'largest' if release.largest else 'smallest'}, not null {never}"
    further = {
        f.name: value
        for f in fields(release)
        if f.name not in _READ and (value := getattr(release, f.name)) != f.default
    }
    if further:  # these refer to keys by their places
        form += f", {structure(further)} of {key_names}"
    # each aggregate includes the conditions of WHERE, but these also decide which keys occur and which of a
    # unit's keys count
    bounded = not is_bounded(release.input)
    rows = frame.text if bounded or open_keys or not aggregates else frame.rows
    if bounded:
        rows += f" bounded, whose {frame.unit}"
        # a hash of a unit's keys, in their order, decides which of them are kept; and the order in which
        # several counts share a unit's rows decides how the shares are rounded
        counts = [
            name for each, name in zip(aggregates, names, strict=True) if each.function in ("count", "sum")
        ]
        form += f", in this order {key_names} {counts if len(counts) > 1 else ''}"
    return Meaning(form, digest(rows), key_names, names)


def _aggregates(release: Release | Choose) -> list[Aggregate]:
    return [release.score] if isinstance(release, Choose) else [each for _, each in release.aggregates]


def _named(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(digest, texts))
