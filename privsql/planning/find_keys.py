"""A draft goes in; it comes out with the facts known about its rows, and every key that an answer
may have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from privsql.algebra.expressions import SPREAD
from privsql.algebra.outer_joins import pads_public_rows
from privsql.algebra.relations import Choose, Key, Release, walk
from privsql.analysis.derive import derive, names_in
from privsql.analysis.facts import Facts
from privsql.analysis.keys import Evaluate, KeyGroup, KeySpace, key_space, open_space
from privsql.analysis.levels import levelled
from privsql.analysis.public_keys.combinations import public_groups
from privsql.analysis.public_rows import Look
from privsql.analysis.undeclared import Undeclared
from privsql.errors import Refused
from privsql.planning.draft import Draft
from privsql.planning.keys.key_tests import is_tested
from privsql.suggestions import Argument, Way

ADDITIVE = frozenset({"count", "sum", "avg"}) | SPREAD  # computed from sums over rows
_SHOWN_BY_DELTA: Way = ("let keys be shown that enough people have: ", Argument("delta", "1e-6"))
_ALL_OF_SETS = "; over several sets of keys all must be declared"


def find_keys(draft: Draft) -> Draft:
    """Find the possible keys, from the declarations and WHERE."""
    release, task = draft.release, draft.task
    read = [key.expression for key in release.keys]
    read += [part for each in draft.aggregates for part in each.reads]
    facts = derive(release.input, names_in(read), task.look)
    keyed, known = release, facts
    if task.keyed is not None:
        keyed = replace(release, input=task.keyed)
        known = derive(task.keyed, names_in(key.expression for key in release.keys), task.look)
    space = _space(keyed, known, task.evaluate, task.look, task.offer.delta)
    if space.open and any(pads_public_rows(each) for each in walk(release.input)):
        raise Refused(
            "refused-join",
            "Public rows that meet no private row count here, and keys that nobody declared are shown only "
            "if enough people have them.",
            "Count a column of the private table, to which those rows add nothing.",
            release.keys[0].place,
        )
    sets = release.sets if isinstance(release, Release) else ()
    shown, levels = levelled(space, sets) if sets else (space, None)
    return replace(draft, facts=facts, space=space, shown_space=shown, levels=levels)


def _space(
    release: Release | Choose, facts: Facts, evaluate: Evaluate, look: Look, delta: Fraction
) -> KeySpace:
    """The cells, if all keys are declared; with a delta, a space of undeclared keys."""
    if not release.keys:
        return KeySpace((), ())
    known = public_groups(release.input, release.keys, facts, look)
    if isinstance(release, Release) and release.sets:
        return _space_of_sets(release, facts, evaluate, known, look)
    if isinstance(release, Release) and not release.aggregates:
        if not delta:
            ways: list[Way] = [
                ("add COUNT(*)",),
                ("select the most frequent key (ORDER BY COUNT(*) DESC LIMIT 1)",),
            ]
            place = release.keys[0].place
            raise Refused(
                "refused-no-aggregate",
                "the query lists keys, and which keys occur is private",
                [*ways, _SHOWN_BY_DELTA],
                place,
            )
        return open_space(release.keys, facts, evaluate)
    try:
        not_null = release.not_null if isinstance(release, Choose) else frozenset()
        return key_space(release.keys, facts, evaluate, not_null, known)
    except Refused as error:
        if error.code not in ("refused-unknown-keys", "refused-many-keys"):
            raise
        if delta and isinstance(release, Release):
            return open_space(release.keys, facts, evaluate)
        if error.code == "refused-unknown-keys":
            error.with_way(_declared_keys(release, facts, evaluate, known, look))
            if isinstance(release, Release) and _can_be_shown(release.keys, facts, evaluate):
                error.with_way(_SHOWN_BY_DELTA)
        raise


def _declared_keys(
    release: Release | Choose, facts: Facts, evaluate: Evaluate, known: Sequence[KeyGroup], look: Look
) -> Way:
    """What to declare for the keys that are not declared."""
    listed = {name for group in known for name in group.names}
    unknown = [key for key in release.keys if key.name not in listed]
    return Undeclared(release.input, look).keys(unknown, facts, evaluate)


def _can_be_shown(keys: Sequence[Key], facts: Facts, evaluate: Evaluate) -> bool:
    try:
        open_space(keys, facts, evaluate)
    except Refused:
        return False
    return True


def _space_of_sets(
    release: Release, facts: Facts, evaluate: Evaluate, known: Sequence[KeyGroup], look: Look
) -> KeySpace:
    """The declared keys of all grouping sets. Raises Refused for undeclared keys, and for aggregates that do
    not add up.
    """
    place = release.keys[0].place
    if not release.aggregates:
        raise Refused(
            "refused-no-aggregate",
            "the query lists keys, and which keys occur is private",
            "add COUNT(*)",
            place,
        )
    for _, each in release.aggregates:
        if each.function not in ADDITIVE:
            what = (
                f"{each.name} of a total cannot be computed from {each.name} of its parts, "
                "so the grouping sets would not agree"
            )
            raise Refused("refused-grouping-sets", what, "write one query for each set of keys", each.place)
    try:
        space = key_space(release.keys, facts, evaluate, known=known)
    except Refused as error:
        if error.code == "refused-unknown-keys":
            error.with_way((*_declared_keys(release, facts, evaluate, known, look), _ALL_OF_SETS))
        raise
    if not all(is_tested(group) for group in space.groups):
        raise Refused(
            "refused-many-keys",
            "too many keys for GROUPING SETS: rows with undeclared keys would enter the totals",
            "narrow it with WHERE, or group by something coarser",
            place,
        )
    return space
