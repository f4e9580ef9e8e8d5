"""One list of arguments serves every method that takes a request."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pandas as pd
import pytest

import privsql
from privsql.frame.frame_query import FrameQuery
from privsql.request import Query, Request
from privsql.requests.auditing import AuditRequest
from privsql.requests.stage import Stage

METHODS = [
    (privsql.Session.query, Request),
    (privsql.Session.explain, Request),
    (privsql.Session.audit, AuditRequest),
    (privsql.FrameAccessor.query, FrameQuery),
    (privsql.FrameAccessor.explain, FrameQuery),
]


@pytest.mark.parametrize(("method", "request_class"), METHODS)
def test_every_argument_has_a_name_a_default_and_a_line_of_documentation(method, request_class):
    parameters = inspect.signature(method).parameters
    assert list(parameters)[1:] == [each.name for each in fields(request_class)]
    for each in fields(request_class):
        assert parameters[each.name].default == (
            inspect.Parameter.empty if each.name == "sql" else each.default
        )
        assert f"    {each.name}: " in method.__doc__


@pytest.mark.parametrize(("method", "request_class"), METHODS)
def test_only_sql_epsilon_and_delta_may_be_given_by_place(method, request_class):
    by_place = [
        name
        for name, each in inspect.signature(method).parameters.items()
        if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    assert by_place[1:] == ["sql", "epsilon", "delta"]


def test_a_request_and_its_arguments_are_equivalent(session):
    sql = "SELECT state, COUNT(*) AS n FROM visits GROUP BY state"
    first = session.ask(privsql.Request(sql, epsilon=1.0))
    assert session.query(sql, epsilon=1.0).df().equals(first.df())  # the stored answer
    assert str(session.plan(privsql.Request(sql, epsilon=1.0))) == str(session.explain(sql, 1.0))


@pytest.mark.parametrize("name", ["epsilom", "ranges", "histogram", "keys"])
def test_an_unknown_argument_lists_the_known_ones(session, name):
    with pytest.raises(privsql.ArgumentError) as caught:
        session.query("SELECT COUNT(*) AS n FROM visits", 1.0, **{name: 1})
    assert caught.value.code == "argument-unknown"
    assert all(each.name in str(caught.value) for each in fields(Query))


def test_declarations_of_a_frame_are_arguments_of_its_queries():
    frame = pd.DataFrame({"state": ["CA", "NY"] * 50})
    plan = frame.dp.explain(
        "SELECT state, COUNT(*) AS n FROM df GROUP BY state", 1.0, keys={"state": ["CA", "NY"]}
    )
    assert plan.cells == 2


def test_a_stage_is_read_back_from_its_json():
    stage = Stage(
        "SELECT 1", 0.5, weights={"n": 2.0}, ranges=(("t", "x", 0.0, 1.0),), fresh=True, analyst="ana"
    )
    again = Stage.of_json(stage.to_json())
    assert again.price() == stage.price() and again.ranges == stage.ranges and again.weights == {"n": 2.0}
    assert again.analyst is None and not again.fresh  # who asked is no part of an answer
