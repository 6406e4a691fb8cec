"""Tasks in Python: the same as the built-in ones, resumable to the bit, and errors that name client and round."""

import json
import os
import pickle
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from numpy_task import NumpyTask, write

import fedcote

SCHEMES = [
    "fedavg", "power-of-choice", "newt", "gs", "tf-aggregation", "fednova", "fedyogi", "fedprox", "scaffold",
    "ideal", "fedcote", "fedcote-gradient", "fedcote-ii", "fedavg-equalised", "fedcote-memory",
    "fedcote-control", "fedcote-matched", "mifa", "fedvarp", "fedau", "fedawe", "fedpbc", "f3ast", "fedstale", "ca-fed",
    "fedavg-all", "fedavg-known", "amplified-fedavg", "amplified-scaffold", "feddyn", "fedbuff",
    "fedavg-median", "fedavg-trimmed-mean", "fedavg-krum",
]  # fmt: skip
CLIENTS = 5
BASE = {
    "rounds": 20, "clients": CLIENTS, "selected": 4, "seeds": [3], "schemes": SCHEMES, "evaluate_every": 5,
    "checkpoint_every": 6,
    "training": {"local_steps": [2, 4], "batch": 24, "rate": 0.1},
    "network": {"kind": "fixed", "failure": [0.1, 0.2, 0.4, 0.6, 0.7]},
}  # fmt: skip


def tensors(path):
    """The arrays of a safetensors file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    body = data[8 + size :]
    return {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
        for name, entry in header.items()
    }


def test_schemes_are_all_named_here():
    """A new scheme belongs into the list above: it has to work with tasks in Python, too.

    Oort goes by the root mean square of samples' losses, in whose place a task in Python tells their mean: it has a test of its own.
    """
    with pytest.raises(ValueError) as raised:
        fedcote.simulate("quickstart", {"schemes": ["no-such-scheme"]})
    known = re.search(r"expected one of (.*?)(?: \(or|$)", str(raised.value))
    assert known and set(re.findall(r"[\w-]+", known[1])) == {*SCHEMES, "oort"}


@pytest.mark.parametrize("model", [{"kind": "softmax"}, {"kind": "mlp", "hidden": [7]}])
def test_numpy_tasks_learn_what_the_built_in_ones_do(model, tmp_path):
    write(tmp_path / "data")
    data = {"set": "idx", "path": tmp_path / "data", "partition": "one-label"}
    built_in = {**BASE, "data": data, "model": model}
    begun = {**built_in, "rounds": 1, "schemes": ["ideal"]}
    begun["training"] = {**BASE["training"], "rate": 1e-30}
    fedcote.simulate(begun, out=tmp_path / "begun")
    start = tensors(tmp_path / "begun/ideal/3/model.safetensors")
    clients = json.loads((tmp_path / "begun/ideal/3/clients.json").read_text())["clients"]
    owned = [int(np.argmax(client["labels"])) for client in clients]

    wanted = fedcote.simulate(built_in, out=tmp_path / "built-in")
    task = NumpyTask(owned, start)
    # Killed and resumed in the middle: the task's exception is as hard an end as any.
    failing = NumpyTask(owned, start)
    failing.train = stopping_at(failing.train, 11)
    with pytest.raises(fedcote.TaskError, match=r"round 11, client \d: the task raised StopHere"):
        fedcote.simulate(BASE, task=failing, out=tmp_path / "resumed")
    found = fedcote.simulate(BASE, task=task, out=tmp_path / "resumed", resume=True)
    whole = fedcote.simulate(BASE, task=lambda seed: task, threads=2, out=tmp_path / "whole")
    for scheme in SCHEMES:
        model = tmp_path / "built-in" / scheme / "3" / "model.safetensors"
        ours = tmp_path / "resumed" / scheme / "3" / "model.safetensors"
        for name, array in tensors(model).items():
            np.testing.assert_allclose(
                tensors(ours)[name], array, rtol=0, atol=1e-5, err_msg=scheme
            )
        assert (
            ours.read_bytes()
            == (tmp_path / "whole" / scheme / "3" / "model.safetensors").read_bytes()
        )
    for name in ("selected", "arrived", "attempts", "label_divergence_realised"):
        np.testing.assert_array_equal(found.rounds[name], wanted.rounds[name])
        np.testing.assert_array_equal(found.rounds[name], whole.rounds[name])
    for name in ("test_accuracy", "test_loss", "train_loss"):
        np.testing.assert_allclose(found.rounds[name], wanted.rounds[name], atol=1e-5)
    assert np.isfinite(found.rounds["norm"][4::5]).all()
    assert found.summary["schemes"][0]["scores"]["norm"]["last"]["mean"] > 0


class RootMeanSquare(NumpyTask):
    """Tells the losses that Oort goes by."""

    def loss(self, model, client):
        part = self.parts[client]
        logits = self.passed(self.layers(model), self.inputs[part])[-1].astype(np.float64)
        own = logits[np.arange(len(part)), self.targets[part]]
        losses = np.log(np.exp(logits).sum(axis=1)) - own
        return np.sqrt((losses**2).mean())


def test_oort_selects_the_same_once_told_root_mean_squares(tmp_path):
    write(tmp_path / "data")
    data = {"set": "idx", "path": tmp_path / "data", "partition": "one-label"}
    changes = {"schemes": ["oort"], "selected": 2, "clock": {"seconds_per_sample": [1e-3, 2e-3, 5e-3, 1e-3, 3e-3]}}  # fmt: skip
    built_in = {**BASE, **changes, "data": data, "model": {"kind": "softmax"}}
    begun = {**built_in, "rounds": 1, "schemes": ["ideal"], "training": {**BASE["training"], "rate": 1e-30}}  # fmt: skip
    fedcote.simulate(begun, out=tmp_path / "begun")
    start = tensors(tmp_path / "begun/ideal/3/model.safetensors")
    clients = json.loads((tmp_path / "begun/ideal/3/clients.json").read_text())["clients"]
    task = RootMeanSquare([int(np.argmax(client["labels"])) for client in clients], start)
    wanted = fedcote.simulate(built_in, out=tmp_path / "built-in")
    found = fedcote.simulate({**BASE, **changes}, task=task, out=tmp_path / "own")
    for name in ("selected", "arrived"):
        np.testing.assert_array_equal(found.rounds[name], wanted.rounds[name])
    for name, array in tensors(tmp_path / "built-in/oort/3/model.safetensors").items():
        ours = tensors(tmp_path / "own/oort/3/model.safetensors")[name]
        np.testing.assert_allclose(ours, array, rtol=0, atol=1e-5)


class StopHere(Exception):
    pass


def stopping_at(train, round):
    def stops(model, job):
        if job.round == round:
            raise StopHere("here")
        return train(model, job)

    return stops


class Toy:
    """Clients fit a constant to their own number: a scalar, a vector and a buffer."""

    labels = np.array([[10, 0], [0, 30], [5, 5], [7, 1]])

    def initial(self, seed):
        return {"scale": np.float64(seed), "offset": np.zeros((2, 1)), "count": np.array(0)}

    def train(self, model, job):
        assert job.anchor["offset"].shape == (2, 1) and model["scale"].shape == ()
        scale = model["scale"] + 0.5 * (job.client - model["scale"])
        return {"count": model["count"] + 1, "scale": scale, "offset": model["offset"] + job.rate}

    def evaluate(self, model):
        return {"loss": float((model["scale"] - 1.5) ** 2), "count": model["count"]}


TOY = {
    "rounds": 6, "clients": 4, "selected": 3, "seeds": [1], "schemes": ["fedavg"], "evaluate_every": 2,
    "checkpoint_every": 2, "network": {"kind": "perfect"},
}  # fmt: skip


class Many(Toy):
    """All clients at once, and a list in place of names."""

    calls = 0

    def initial(self, seed):
        return [np.float32(0), np.zeros(3)]

    def train_many(self, model, jobs):
        self.calls += 1
        return [[model[0] + job.client, model[1]] for job in jobs]

    def evaluate(self, model):
        return {"value": model[0]}


def test_scalars_buffers_and_lists():
    found = fedcote.simulate(TOY, task=Toy())
    np.testing.assert_array_equal(found.rounds["count"], [np.nan, 2, np.nan, 4, np.nan, 6])
    assert (
        np.isnan(found.rounds["train_loss"]).all() and np.isnan(found.rounds["test_accuracy"]).all()
    )
    many = Many()
    found = fedcote.simulate(TOY, task=many)
    assert many.calls == 6 and found.rounds["value"][1] > 0


def test_models_are_views_that_cannot_be_written():
    class Writes(Toy):
        def train(self, model, job):
            model["offset"] += 1
            return model

    with pytest.raises(fedcote.TaskError) as raised:
        fedcote.simulate(TOY, task=Writes())
    assert "read-only" in str(raised.value.__cause__)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda model: {**model, "offset": np.zeros(2)}, r"`offset` of shape \(2,\), of `initial` it is \(2, 1\)"),
        (lambda model: {**model, "more": 1}, "returned `more`, which `initial` does not have"),
        (lambda model: {"scale": 1, "count": 1}, "returned no `offset`, which `initial` has"),
        (lambda model: list(model.values()), "object of type list: expected arrays by name"),
        (lambda model: {**model, "scale": "much"}, "gave `scale` as .*: expected an array of numbers"),
        (lambda model: None, "object of type NoneType: expected arrays by name"),
    ],
)  # fmt: skip
def test_wrong_models_are_refused_by_name(change, said):
    class Wrong(Toy):
        def train(self, model, job):
            return change(dict(super().train(model, job)))

    with pytest.raises(fedcote.TaskError, match=rf"^round 1, client \d: the task .*{said}"):
        fedcote.simulate(TOY, task=Wrong())


def test_exceptions_keep_their_type_and_traceback(tmp_path):
    class Fails(Toy):
        fails = True

        def train(self, model, job):
            if self.fails and job.round == 5:
                return model["no such parameter"]
            return super().train(model, job)

        def metadata(self):
            return "toy"

    task = Fails()
    with pytest.raises(
        fedcote.TaskError, match=r"^round 5, client \d: the task raised KeyError"
    ) as raised:
        fedcote.simulate(TOY, task=task, out=tmp_path / "run")
    cause = raised.value.__cause__
    assert isinstance(cause, KeyError)
    names = []
    trace = cause.__traceback__
    while trace:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "train" in names
    task.fails = False
    resumed = fedcote.simulate(TOY, task=task, out=tmp_path / "run", resume=True)
    whole = fedcote.simulate(TOY, task=task)
    np.testing.assert_array_equal(resumed.rounds["test_loss"], whole.rounds["test_loss"])
    assert (tmp_path / "run" / "report.html").exists()


def test_evaluations_that_fail_name_the_round():
    class Fails(Toy):
        def evaluate(self, model):
            return 1 / 0

    with pytest.raises(fedcote.TaskError, match="^round 2: the task raised ZeroDivisionError"):
        fedcote.simulate(TOY, task=Fails())

    class Text(Toy):
        def evaluate(self, model):
            return {"loss": "low"}

    with pytest.raises(
        fedcote.TaskError, match="^round 2: the task returned .* of `evaluate: loss`"
    ):
        fedcote.simulate(TOY, task=Text())


def test_what_is_not_finite_is_a_failed_upload():
    class Breaks(Toy):
        def train(self, model, job):
            found = super().train(model, job)
            return {**found, "scale": np.nan} if job.client == 0 else found

    rounds = fedcote.simulate({**TOY, "selected": 12, "rounds": 3}, task=Breaks()).rounds
    assert (rounds["arrived"] < rounds["selected"]).all() and np.isfinite(rounds["test_loss"][-1])


def test_another_task_cannot_go_on(tmp_path):
    fedcote.simulate(TOY, task=Toy(), out=tmp_path / "run")
    with pytest.raises(ValueError, match="belongs to another scenario: `task` differs"):
        fedcote.simulate(TOY, task=Many(), out=tmp_path / "run", resume=True)


def test_what_is_missing_is_named():
    with pytest.raises(
        ValueError, match="`power-of-choice` chooses clients by their loss: .* loss"
    ):
        fedcote.simulate(TOY, {"schemes": ["power-of-choice"]}, task=Toy())
    with pytest.raises(ValueError, match="the task has 4 clients, the scenario 5"):
        fedcote.simulate(TOY, {"clients": 5}, task=Toy())
    with pytest.raises(TypeError, match="task: expected a fedcote.Task, or a function"):
        fedcote.simulate(TOY, task=3)
    with pytest.raises(fedcote.TaskError, match="^the task has no `labels`"):
        fedcote.simulate(TOY, task=lambda seed: object())


def test_jobs_pickle_and_draw_the_same_mini_batches():
    jobs = []

    class Keeps(Toy):
        def train(self, model, job):
            jobs.append(job)
            return super().train(model, job)

    fedcote.simulate(
        TOY, {"schemes": ["scaffold"], "training.batch": 4, "training.local_steps": 9}, task=Keeps()
    )
    assert len({job.seed for job in jobs}) == len(jobs)
    for job in jobs[:4]:
        again = pickle.loads(pickle.dumps(job))
        drawn = job.batches(10)
        assert drawn.shape == (9, 4) and all(len(set(row)) == 4 for row in drawn.tolist())
        np.testing.assert_array_equal(again.batches(10), drawn)
        assert drawn.min() >= 0 and drawn.max() <= 9
        assert job.correction["offset"].shape == (2, 1)
    assert isinstance(Toy(), fedcote.Task)
    with pytest.raises(ValueError, match="at least one sample"):
        jobs[0].batches(0)


def interrupted(tmp_path, body, presses, before=""):
    script = f"""
import os, signal, sys, time
import numpy as np
import fedcote
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_task import TOY, Toy
signal.signal(signal.SIGINT, signal.default_int_handler)
class Slow(Toy):
    def train(self, model, job):
        {body}
        return super().train(model, job)
{before}
try:
    fedcote.simulate({{**TOY, "rounds": 100000}}, task=Slow(), out={str(tmp_path / "run")!r})
except KeyboardInterrupt:
    raise SystemExit(42)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == b"training\n"
        os.kill(process.pid, signal.SIGINT)
        for _ in range(1, presses):
            # Two at once would be one.
            while b"once more to stop at once" not in (line := process.stderr.readline()):
                assert line, "it says that it was heard"
            os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=600)
        return process.returncode
    finally:
        process.kill()


def test_ctrl_c_finishes_the_round_and_saves(tmp_path):
    body = "job.round == 1 and job.client == 0 or print('training', flush=True); time.sleep(0.05)"
    assert interrupted(tmp_path, body, 1) == 42
    assert list(tmp_path.glob("run/fedavg/1/checkpoint*"))


def test_a_second_ctrl_c_stops_in_the_middle_of_the_users_code(tmp_path):
    body = "print('training', flush=True)\n        while True: time.sleep(0.01)"
    assert interrupted(tmp_path, body, 2) == 42


def test_a_second_ctrl_c_while_the_first_is_told_is_not_lost(tmp_path):
    """Regression: pressed before the line about the first was written, it was taken for an error of
    writing it, and the user's code went on for ever.
    """
    body = "print('training', flush=True)\n        while True: time.sleep(0.01)"
    before = """
from fedcote import _progress
told = _progress.Watch.stopping
def stopping(self, again):
    told(self, again)
    again or os.kill(os.getpid(), signal.SIGINT)
_progress.Watch.stopping = stopping
"""
    assert interrupted(tmp_path, body, 1, before) == 42
