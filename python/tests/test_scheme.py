"""Schemes in Python: the same bits as the built-in ones, state that survives, errors that name the round."""

import numpy as np
import pytest
from test_task import TOY, Toy

import fedcote

SMALL = {
    "rounds": 8, "clients": 6, "selected": 4, "seeds": [1, 2], "evaluate_every": 2, "checkpoint_every": 3,
    "data": {"set": "synthetic", "samples": 300, "partition": "dirichlet"},
    "model": {"kind": "mlp", "hidden": [5]}, "training": {"local_steps": 3, "batch": 16},
    "network": {"kind": "fixed", "failure": [0.0, 0.2, 0.4, 0.5, 0.6, 0.7]},
}  # fmt: skip


class Average(fedcote.Scheme):
    """FedAvg."""

    def select(self, round):
        return round.draw(round.weights)

    def aggregate(self, round, arrivals):
        return round.mean(arrivals)


class Proximal(fedcote.Scheme):
    """The mean weighted by the samples, as of the built-in `weighted-mean`; the rest is FedProx's."""

    base = "fedprox"
    parameters = {"mu": 0.5}

    def aggregate(self, round, arrivals):
        return round.mean(arrivals, [a.copies * round.weights[a.client] for a in arrivals])


class Variates(fedcote.Scheme):
    """SCAFFOLD, with its variates in the state."""

    name = "variates"

    def correct(self, round, client):
        if not self.state:
            self.state.update(
                server={name: np.zeros_like(a) for name, a in round.model.items()}, own={}
            )
        own = self.state["own"].get(client)
        server = self.state["server"]
        return {name: a if own is None else a - own[name] for name, a in server.items()}

    def aggregate(self, round, arrivals):
        server, change = self.state["server"], {}
        for arrival in arrivals:
            own = self.state["own"].setdefault(
                arrival.client, {name: np.zeros_like(a) for name, a in server.items()}
            )
            factor = np.float32(1) / (np.float32(arrival.steps) * np.float32(0.05))
            for name, before in own.items():
                drift = factor * (round.model[name] - arrival.model[name])
                after = before - server[name] + drift
                share = np.float32(1 / len(round.weights))
                change[name] = change.get(name, np.float32(0)) + share * (after - before)
                own[name] = after
        self.state["server"] = {name: a + change[name] for name, a in server.items()}
        return round.mean(arrivals)


def models(folder, name, seed=1):
    return (folder / name / str(seed) / "model.safetensors").read_bytes()


def test_schemes_in_python_give_the_bits_of_the_built_in_ones(tmp_path):
    built_in = {**SMALL, "scheme": {"fedprox": {"mu": 0.5}}}
    fedcote.simulate(
        built_in, {"schemes": ["fedavg", "fedprox", "scaffold"]}, out=tmp_path / "built-in"
    )
    ours = [Average(), Proximal(), Variates(), "ideal"]
    found = fedcote.simulate(SMALL, schemes=ours, out=tmp_path / "ours", threads=2)
    assert [s["name"] for s in found.summary["schemes"]] == [
        "average",
        "proximal",
        "variates",
        "ideal",
    ]
    for name, own in [("fedavg", "average"), ("fedprox", "proximal")]:
        for seed in SMALL["seeds"]:
            assert models(tmp_path / "built-in", name, seed) == models(tmp_path / "ours", own, seed)
    wanted = models(tmp_path / "built-in", "scaffold")
    reached = models(tmp_path / "ours", "variates")
    values = [np.frombuffer(model[-4 * 50 :], "<f4") for model in (wanted, reached)]
    np.testing.assert_allclose(values[1], values[0], atol=1e-5)


def test_state_goes_on_after_an_interruption(tmp_path):
    whole = fedcote.simulate(SMALL, schemes=[Variates()], out=tmp_path / "whole")

    class Breaks(Variates):
        fails = True

        def aggregate(self, round, arrivals):
            if Breaks.fails and round.number == 5:
                raise OSError("no more")
            return super().aggregate(round, arrivals)

    with pytest.raises(
        fedcote.TaskError, match="^round 5: the scheme `variates` raised OSError: no more"
    ):
        fedcote.simulate(SMALL, schemes=[Breaks()], out=tmp_path / "broken")
    Breaks.fails = False
    again = fedcote.simulate(SMALL, schemes=[Breaks()], out=tmp_path / "broken", resume=True)
    assert models(tmp_path / "broken", "variates", 2) == models(tmp_path / "whole", "variates", 2)
    np.testing.assert_array_equal(again.rounds["test_loss"], whole.rounds["test_loss"])
    with pytest.raises(ValueError, match=r"`scheme.variates.python` differs"):
        fedcote.simulate(SMALL, schemes=[Variates()], out=tmp_path / "broken", resume=True)


def test_with_tasks_of_ones_own():
    class Everyone(fedcote.Scheme):
        def select(self, round):
            assert round.labels.shape == (4, 2) and round.model["offset"].shape == (2, 1)
            return np.arange(4)

    rounds = fedcote.simulate(TOY, task=Toy(), schemes=[Everyone(), "fedavg"]).rounds
    everyone = np.asarray(rounds["scheme"]) == "everyone"
    assert (rounds["selected"][everyone] == 4).all() and (rounds["selected"][~everyone] == 3).all()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda round: [], "selected nobody"),
        (lambda round: [0, 9], "selected client 9; they are 0 to 3"),
        (lambda round: {1: 0}, "selected client 1 0 times"),
        (lambda round: [0.5], "selected something else than numbers of clients"),
        (lambda round: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_wrong_selections_are_refused(answer, said):
    class Wrong(fedcote.Scheme):
        def select(self, round):
            return answer(round)

    with pytest.raises(fedcote.TaskError, match=rf"^round 1: the scheme `wrong` {said}"):
        fedcote.simulate(TOY, task=Toy(), schemes=[Wrong()])


def test_what_cannot_be_saved_is_refused():
    class Keeps(fedcote.Scheme):
        def select(self, round):
            self.state["random"] = np.random.default_rng(1)
            return [0]

    with pytest.raises(
        fedcote.TaskError, match=r"Generator in `state\['random'\]`, which cannot be saved"
    ):
        fedcote.simulate(TOY, task=Toy(), schemes=[Keeps()])

    class Nothing(fedcote.Scheme):
        pass

    with pytest.raises(fedcote.TaskError, match="the scheme `nothing` overrides none of `select`"):
        fedcote.simulate(TOY, task=Toy(), schemes=[Nothing()])
    with pytest.raises(TypeError, match="schemes: expected names and fedcote.Scheme objects"):
        fedcote.simulate(TOY, task=Toy(), schemes=[Toy()])


def test_states_are_saved_to_the_bit():
    from fedcote._scheme import _decoded, _encoded

    state = {
        "a": [1, 2.5, float("inf"), None, True, "text", ()], 3: (np.float32(0.1), np.arange(6).reshape(2, 3)),
        "nested": {"empty": {}, "zero": np.zeros(()), "list": []},
    }  # fmt: skip
    import json

    again = _decoded(json.loads(json.dumps(_encoded(state))))
    assert (
        again["a"] == state["a"]
        and again["nested"]["empty"] == {}
        and again["nested"]["list"] == []
    )
    assert isinstance(again[3], tuple) and again[3][0].dtype == np.float32
    np.testing.assert_array_equal(again[3][1], state[3][1])
    assert again["nested"]["zero"].shape == ()
