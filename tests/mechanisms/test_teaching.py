"""privsql.teaching: the worked example of note 000, and that it can be reached from nowhere else."""

from __future__ import annotations

import subprocess
import sys

import pandas as pd
import pytest

import privsql
from privsql import mechanisms, teaching

FRUIT = {"apple": 1, "orange": 4, "banana": 3}


def test_the_example_of_note_000():
    assert teaching.noisy_max(FRUIT, (1, -1, -1)) == "orange"
    assert teaching.noisy_max(FRUIT, (0, -1, 1)) == "banana"
    assert teaching.noisy_max(FRUIT, {"banana": 1, "apple": 0, "orange": -1}) == "banana"
    assert teaching.noisy_max(pd.Series(FRUIT), (0, 0, 0)) == "orange"
    assert teaching.noisy_max([1, 4, 3], (9, 0, 0)) == 0


def test_ties_go_to_the_first():
    assert teaching.noisy_max(FRUIT, (3, 0, 1)) == "apple"
    assert teaching.noisy_max(FRUIT, (0, 0, 1)) == "orange"


def test_one_noise_for_each_score():
    for scores, noise in ((FRUIT, (1, 2)), (FRUIT, {"apple": 1}), ([], ()), (FRUIT, (1, 2, 3, 4))):
        with pytest.raises(privsql.ArgumentError) as refused:
            teaching.noisy_max(scores, noise)
        assert refused.value.code == "argument-shape"


def test_sessions_and_mechanisms_do_not_know_it():
    """Not even after they have been used: nobody but the teacher imports it."""
    code = (
        "import sys, privsql, pandas as pd; "
        "rooms = {each.split('.')[1] for each in sys.modules if each.startswith('privsql.')}; "
        "assert not rooms & {'attacks', 'mechanisms', 'theory', 'teaching'}, 'importing privsql must stay cheap'; "
        "from privsql import mechanisms, theory, attacks; assert 'scipy' not in sys.modules; "
        "s = privsql.connect(pd.DataFrame({'a': [True, False]})); s.query('SELECT COUNT(*) FROM df', epsilon=1); "
        "assert 'privsql.teaching' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=120)
    assert not hasattr(mechanisms, "teaching")
