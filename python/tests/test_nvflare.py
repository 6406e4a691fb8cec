"""The example's adapter for NVFlare, without NVFlare: its controller on clients that are functions.

`cargo xtask test nvflare` runs the example in NVFlare's own simulator.
"""

import sys
import types
from pathlib import Path

import numpy as np
import pytest

import fedcote

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "nvflare"


class Model:
    """As NVFlare's FLModel, of what the adapter uses."""

    def __init__(self, params_type=None, params=None, meta=None, current_round=None):
        self.params, self.meta, self.current_round = params, meta or {}, current_round


class Controller:
    """As NVFlare's ModelController, of what the adapter uses."""

    def __init__(self, persistor_id, ignore_result_error):
        assert ignore_result_error
        self.lines = []

    def info(self, line):
        self.lines.append(line)

    def send_model_and_wait(self, task_name, data, targets, timeout):
        return [reply for name in targets if (reply := self.answer(task_name, data, name))]


@pytest.fixture
def adapter(monkeypatch):
    for name, content in {
        "nvflare": {}, "nvflare.app_common": {}, "nvflare.app_common.abstract": {},
        "nvflare.app_common.workflows": {},
        "nvflare.app_common.abstract.fl_model": {"FLModel": Model, "ParamsType": types.SimpleNamespace(FULL=0)},
        "nvflare.app_common.workflows.model_controller": {"ModelController": Controller},
    }.items():  # fmt: skip
        module = types.ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.delitem(sys.modules, "fedcote_controller", raising=False)
    import fedcote_controller

    yield fedcote_controller
    del sys.modules["fedcote_controller"]


def test_the_controller_selects_observes_and_remembers(adapter, tmp_path):
    np.savez(tmp_path / "initial.npz", w=np.zeros(3, np.float32))
    names = [f"site-{number}" for number in range(6)]
    asked = []

    def answer(task, data, name):
        number = int(name[-1])
        meta = {"client_name": name}
        if task == "labels":
            return Model(meta={**meta, "labels": [10, 0] if number < 3 else [0, 10]})
        asked.append((data.current_round, name))
        if number == 5 and data.current_round % 4:  # fails three times out of four
            return None
        return Model(params={"w": data.params["w"] + np.float32(number)}, meta=meta)

    controller = adapter.FedCoteController(
        str(tmp_path / "initial.npz"), rounds=40, selected=3, result=str(tmp_path / "result.npz")
    )
    controller.answer = answer
    controller.engine = types.SimpleNamespace(
        get_clients=lambda: [types.SimpleNamespace(name=name) for name in names]
    )
    controller.run()
    selector = controller.selector
    assert selector.classes == 2 and sorted(selector.clients) == names
    assert selector.failure("site-5") > 0.4 > selector.failure("site-0")
    for round_ in range(1, 41):
        once = [name for at, name in asked if at == round_]
        assert len(once) == len(set(once)) == 3
    assert controller.lines[-1].endswith("6 remembered")
    # All labels have the same weight, so the mean of 0, 1, 2 counts as much as that of 3, 4, 5.
    with np.load(tmp_path / "result.npz") as found:
        # The early rounds, with fewer clients remembered, are within [0, 5] each.
        step = found["w"] / 40
    np.testing.assert_allclose(step, 2.5, atol=0.5)
    assert fedcote.__version__
