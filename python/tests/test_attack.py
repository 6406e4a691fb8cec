"""A few of the cases of ``cargo xtask attack``."""

import logging

import pytest

pytest.importorskip("flwr")

import attack  # noqa: E402


@pytest.fixture(autouse=True)
def quiet():
    logger = logging.getLogger("flwr")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    yield
    logger.setLevel(level)


def test_hostile_replies_do_not_end_a_federation():
    assert {attack.replies(seed) for seed in range(60)} == {"went on"}


def test_hostile_states_are_refused_in_one_line():
    assert {attack.states(seed) for seed in range(60)} <= {"went on", "refused in one line"}
