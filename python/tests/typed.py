"""What a type checker sees, which `cargo xtask test python` lets mypy say: nothing here is executed.

An unused `type: ignore` is an error, so each of these is an error that is found.
"""

from typing import Any

from typing_extensions import assert_type

import fedcote
from fedcote.flower import FedCote


def ids_come_back_as_they_were_given(phones: list[str], numbers: range) -> None:
    selector = fedcote.Selector(1)
    assert_type(selector.select(phones, 3), list[tuple[str, int]])
    assert_type(selector.select(numbers, 3, distinct=True), list[tuple[int, int]])
    assert_type(selector.select(None, 3), list[tuple[Any, int]])
    for drawn in selector.attempts(phones, 3):
        assert_type(drawn, list[tuple[str, int]])
    assert_type(selector.weights(), dict[Any, float])


def misspelt_options_are_found() -> None:
    fedcote.Selector(aim="fresh")  # type: ignore[arg-type]
    fedcote.Selector(draws="systematically")  # type: ignore[arg-type]
    fedcote.Selector(estimator="gamma")  # type: ignore[arg-type]
    fedcote.Selector(method="newton")  # type: ignore[arg-type]
    FedCote(aggregation="memmory")  # type: ignore[arg-type]
    FedCote(correction="always")  # type: ignore[arg-type]
    FedCote(server_optimizer="adamw")  # type: ignore[arg-type]
    FedCote(aim="label")  # type: ignore[arg-type]
    FedCote(estimator={"kind": "beta", "retention": 0.9}, server_optimizer="yogi", correction=0.5)
    fedcote.select([[1, 0]], failure=[0.1], selected=1, aim="fresh")  # type: ignore[arg-type]
