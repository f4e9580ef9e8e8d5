"""The name of a column or table goes in; the kind of person it seems to name comes out."""

from __future__ import annotations

import re
from dataclasses import dataclass

# People; then people in the course of their work; then things that stand for a person, who may have several.
_PEOPLE = """person people who user usr customer cust client patient member subscriber student pupil
    participant respondent citizen resident inhabitant voter applicant borrower debtor donor guest visitor
    passenger tenant child mother father beneficiary insured policyholder subject individual consumer
    shopper buyer rider learner player taxpayer claimant contact household family kunde kunden nutzer
    benutzer klient mitglied persona cliente paciente usuario utilisateur"""
_ROLES = """employee emp staff worker doctor physician nurse provider teacher instructor driver agent seller
    author reviewer sender receiver recipient owner manager operator salesperson artist"""
_PROXIES = """account acct login device session cookie card phone email ssn mrn imei imsi msisdn ip iban
    username handle profile wallet"""
_RANKS = {word: rank for rank, words in enumerate((_PEOPLE, _ROLES, _PROXIES)) for word in words.split()}
_SAME = {
    "people": "person",
    "who": "person",
    "usr": "user",
    "cust": "customer",
    "emp": "employee",
    "acct": "account",
    "kunden": "kunde",
}
# Words that can also mean something else, or a number of people: they count only next to an "id".
_VAGUE = frozenset(
    """subject contact agent session card device profile family handle wallet cookie people kunden owner staff
    child""".split()
)
_IDS = frozenset("id key no nr num number uuid guid hash ref sk pk identifier".split())
_GLUED = re.compile(r"(.+?)_?(id|key|no|nr|num|uuid|guid)")
_LEADING = frozenset({"id", "fk", "pk"})
_DECORATION = frozenset("dim tbl table master raw data list info".split())
PROXY = 2


@dataclass(frozen=True)
class Person:
    """A word for a person, and how surely it means one: 0 a person, 1 one at work, 2 something that stands
    for one.
    """

    noun: str
    rank: int


def words(name: str) -> list[str]:
    """customerId, CUSTOMER_ID, customer id -> customer, id"""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [word for word in re.split(r"[\W_]+", spaced.lower()) if word]


def singular(word: str) -> str:
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ses", "s"), ("s", "")):
        if word.endswith(ending) and not word.endswith("ss") and len(word) > len(ending) + 1:
            return word[: -len(ending)] + instead
    return word


def person_of_column(name: str) -> Person | None:
    """The person that a column like user_id, custkey or patient names; None for user_agent, customer_name or
    account_balance.
    """
    found = words(name)
    if found[-2:] in (["email", "address"], ["ip", "address"]):
        found = found[:-1]
    if found[-2:] == ["user", "name"]:
        found = ["username"]
    has_id = is_id(name)
    if len(found) > 1 and found[-1] in _IDS:
        found = found[:-1]
    elif found and found[-1] not in _RANKS and (glued := _GLUED.fullmatch(found[-1])):
        found = [*found[:-1], glued[1]]
    noun = found[-1] if found else ""
    if noun not in _RANKS or (noun in _VAGUE and not has_id):
        return None
    return Person(_SAME.get(noun, noun), _RANKS[noun])


def person_of_table(name: str) -> Person | None:
    """The person that each row of a table like customers, dim_user or people is, judging by its name."""
    found = table_words(name)
    noun = found[-1] if found else ""
    noun = noun if noun in _RANKS else singular(noun)
    return Person(_SAME.get(noun, noun), _RANKS[noun]) if noun in _RANKS else None


def table_words(name: str) -> list[str]:
    """The words of a table's name without decoration: dim_users_2024 -> users"""
    found = words(name)
    while len(found) > 1 and (found[-1] in _DECORATION or found[-1].isdigit()):
        found = found[:-1]
    return found


def is_id(name: str) -> bool:
    """Whether a column's name says that it identifies something: order_id, l_orderkey, id, uuid."""
    found = words(name)
    if not found:
        return False
    return (
        found[-1] in _IDS
        or found[0] in _LEADING
        or bool(_GLUED.fullmatch(found[-1]) and _known_glued(found[-1]))
    )


def ends_like_id(name: str) -> bool:
    """Whether it ends like oid, pid or rowid: an identifier if another table has the same name, but by itself
    it may be paid or void.
    """
    found = words(name)
    return bool(found) and bool(_GLUED.fullmatch(found[-1]))


def is_plain_id(name: str) -> bool:
    """Whether it says only that it identifies something: id, uuid, c_id."""
    found = words(name)
    return bool(found) and found[-1] in _IDS and all(len(word) <= 2 for word in found[:-1])


def stem(name: str) -> str:
    """The common part of l_orderkey and o_orderkey: the words without a short prefix."""
    found = words(name)
    while len(found) > 1 and len(found[0]) <= 2 and found[0] not in _LEADING:
        found = found[1:]
    return "_".join(found)


def named_by(name: str) -> str:
    """What a column identifies: order for order_id and orderkey."""
    found = words(name)
    if len(found) > 1 and found[-1] in _IDS:
        return singular(found[-2])
    glued = _GLUED.fullmatch(found[-1]) if found else None
    return singular(glued[1]) if glued else ""


def _known_glued(word: str) -> bool:
    """Whether it is like userid and orderkey, not like paid, void, turkey or piano."""
    glued = _GLUED.fullmatch(word)
    if glued is None:
        return False
    before, ending = glued[1], glued[2]
    keyed = ending in ("uuid", "guid") or (ending == "key" and word not in {"turkey", "monkey", "whiskey"})
    return keyed or before in _RANKS or singular(before) in _THINGS


_THINGS = frozenset(
    "order product item visit event invoice store shop city country state case claim trip ride part".split()
)
