"""Tasks that a scenario names: ``[task] python = "module:function"``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ._scheme import load
from ._task import Tasks


def tasks(place: str, folders: Sequence[Any], settings: str, clients: int) -> Tasks:
    """The tasks that a function makes, one for each seed."""
    given = json.loads(settings)
    make = None

    def task(seed: int) -> Any:
        nonlocal make
        make = make or load(place, [str(folder) for folder in folders])
        return make(clients=clients, seed=seed, **given)

    return Tasks(task, None)
