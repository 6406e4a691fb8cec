"""The whole pipeline against an independent implementation in NumPy and float64.

``cargo run -p fedcote-sim --example draws`` plays every named scheme on small federations and writes
down what chance decided: data, initial model, who arrived, mini-batches. Here the same rounds are
played anew from the formulas: local training of a perceptron, hostile updates, the clip, and
every rule of aggregation. The models must agree. Selection probabilities are taken as they are
(they have oracles of their own in ``test_select.py``).
"""

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest

FILE = os.environ.get("FEDCOTE_DRAWS")
pytestmark = pytest.mark.skipif(not FILE, reason="FEDCOTE_DRAWS names no file of draws")

FEDERATIONS = json.loads(Path(FILE).read_text()) if FILE else []
CASES = [
    pytest.param(federation, scheme, id=f"{scheme['name']}-{'guarded' if federation['clip'] else 'plain'}")
    for federation in FEDERATIONS
    for scheme in federation["schemes"]
]  # fmt: skip

# The parameters that the schemes' authors and the documentation name.
PROX, RIDGE, CUTOFF = 0.01, 0.1, 50
YOGI = dict(beta1=0.9, beta2=0.99, adaptivity=1e-3, rate=1e-2)
ECHO_CLIP, STALE, SMOOTHING, ALPHA = 0.5, 0.5, 0.001, 0.01
PERIOD, AMPLIFICATION = 20, 1.5
DOWNLINK, UPLOAD_SECONDS = 50e6, 0.1


class Data:
    """What the clients hold, and the gradient of a perceptron with one hidden layer."""

    def __init__(self, federation):
        self.features, self.classes = federation["features"], federation["classes"]
        self.hidden = federation["hidden"]
        self.inputs = [
            np.array(client["inputs"]).reshape(-1, self.features)
            for client in federation["clients"]
        ]
        self.labels = [np.array(client["labels"]) for client in federation["clients"]]
        self.steps = np.array([client["steps"] for client in federation["clients"]])
        counts = np.array([np.bincount(each, minlength=self.classes) for each in self.labels])
        self.weights = counts.sum(1) / counts.sum()
        self.shares = counts / counts.sum(1, keepdims=True)
        self.goal = counts.sum(0) / counts.sum()

    def split(self, model):
        """Weight and bias of both layers: views of the flat model."""
        shapes = [
            (self.features, self.hidden), (self.hidden,), (self.hidden, self.classes), (self.classes,)
        ]  # fmt: skip
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        return [
            part.reshape(shape)
            for part, shape in zip(np.split(model, ends[:-1]), shapes, strict=True)
        ]

    def gradient(self, client, batch, model):
        inputs, labels = self.inputs[client][batch], self.labels[client][batch]
        first, first_bias, second, second_bias = self.split(model)
        before = inputs @ first + first_bias
        hidden = np.maximum(before, 0)
        logits = hidden @ second + second_bias
        chances = np.exp(logits - logits.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
        error = (chances - np.eye(self.classes)[labels]) / len(labels)
        back = (error @ second.T) * (before > 0)
        parts = [inputs.T @ back, back.sum(0), hidden.T @ error, error.sum(0)]
        return np.concatenate([part.ravel() for part in parts])


class Federation:
    """A server, its clients, and all that some rule remembers."""

    def __init__(self, federation, scheme):
        self.data = Data(federation)
        self.federation, self.scheme = federation, scheme
        self.model = np.array(federation["initial"])
        zero = np.zeros_like(self.model)
        self.first, self.second = zero, zero
        self.control, self.controls = zero, {}
        self.latest = {}  # everyone's latest update
        self.gradients, self.gains, self.changes = {}, [], []
        self.corrected, self.calm, self.share, self.ends, self.ended_at = set(), None, 1.0, 0, 0.0
        self.ended = {client: [] for client in range(len(self.data.labels))}
        self.since = dict.fromkeys(self.ended, 0)
        # For clients with models of their own, and the rounds that those are of.
        self.own = dict.fromkeys(self.ended, self.model)
        self.last = dict.fromkeys(self.ended, 0)
        self.number, self.anchor = 0, self.model
        self.rates = np.full(len(self.ended), federation["draws"] / len(self.ended))
        self.sums = {client: (zero, 0) for client in self.ended}
        # For clients that are always under way.
        self.models, self.now, self.flights = [self.model], 0.0, []

    def play(self, round_):
        self.number += 1
        if self.scheme["selection"] == "buffered":
            self.model = self.buffered(round_)
            self.models.append(self.model)
            return
        clients = [arrival["client"] for arrival in round_["arrived"]]
        copies = np.array([arrival["copies"] for arrival in round_["arrived"]], float)
        updates = np.array(
            [self.upload(a["client"], a["batches"], round_["rate"]) for a in round_["arrived"]]
        ).reshape(len(clients), self.model.size)
        lost = {
            a["client"]: self.upload(a["client"], a["batches"], round_["rate"])
            for a in round_["lost"]
            if self.scheme["aggregation"] == "fedpbc"
        }
        old = self.model
        name = self.scheme["aggregation"].replace("-", "_")
        rule = getattr(self, "control_rule" if name == "control" else name, None)
        assert rule is not None, f"{self.scheme['aggregation']} is not written down here"
        self.model = rule(round_, clients, copies, updates)
        for client, update in lost.items():
            self.own[client] = self.own[client] + update
        if self.scheme["local"] == "scaffold":
            self.advance(old, clients, old + updates, round_["rate"])

    def start(self, client):
        """Where a client starts: at the global model, or at its own."""
        return (
            self.own[client] if self.scheme["aggregation"] in ("fedawe", "fedpbc") else self.model
        )

    def upload(self, client, batches, rate, start=None):
        """A client's update as the server takes it: trained, made hostile, clipped."""
        start = self.start(client) if start is None else start
        update = self.train(client, batches, rate, start) - start
        if client + 1 in self.federation["hostile"]["clients"]:
            assert self.federation["hostile"]["kind"] == "scaled"
            update = update * self.federation["hostile"]["factor"]
        bound, norm = self.federation["clip"], np.linalg.norm(update)
        return update * min(1.0, bound / norm) if bound else update

    def train(self, client, batches, rate, start):
        assert len(batches) == self.data.steps[client]
        model = start.copy()
        for batch in batches:
            gradient = self.data.gradient(client, batch, model)
            if self.scheme["local"] == "prox":
                gradient = gradient + PROX * (model - self.model)
            if self.scheme["local"] == "scaffold":
                gradient = gradient + self.control - self.controls.get(client, 0.0)
            if self.scheme["aggregation"] == "control":
                gradient = gradient + self.deviation(client)
            if self.scheme["aggregation"] == "amplified-scaffold":
                gradient = gradient + self.control - self.controls.get(client, 0.0)
            if self.scheme["aggregation"] == "feddyn":
                strength = ALPHA / (len(self.ended) * self.data.weights[client])
                own = self.controls.get(client, 0.0)
                gradient = gradient + strength * (own + model - self.model)
            model = model - rate * gradient
        return model

    def advance(self, old, clients, models, rate):
        """SCAFFOLD, option II: everyone who arrived advances from the same server variate."""
        server, step = self.control, 0.0
        for client, model in zip(clients, models, strict=True):
            own = self.controls.get(client, np.zeros_like(old))
            new = own - server + (old - model) / (self.data.steps[client] * rate)
            step = step + (new - own) / len(self.data.labels)
            self.controls[client] = new
        self.control = server + step

    # ------------------------------------------------------------------ rules of aggregation

    def mean(self, round_, clients, copies, updates):
        return self.model + copies / copies.sum() @ updates

    def weighted_mean(self, round_, clients, copies, updates):
        return self.mean(round_, clients, copies * self.data.weights[clients], updates)

    def tf_aggregation(self, round_, clients, copies, updates):
        reached = np.array(round_["selection"]) * (1 - np.array(round_["failure"]))
        factors = copies * self.data.weights[clients] / reached[clients] / self.federation["draws"]
        return factors @ (self.model + updates) if clients else np.zeros_like(self.model)

    def nova(self, round_, clients, copies, updates):
        shares, steps = copies / copies.sum(), self.data.steps[clients]
        return self.model + (shares @ steps) * (shares / steps @ updates)

    def yogi(self, round_, clients, copies, updates):
        change = copies / copies.sum() @ updates
        self.first = YOGI["beta1"] * self.first + (1 - YOGI["beta1"]) * change
        sign = np.sign(self.second - change**2)
        self.second = self.second - (1 - YOGI["beta2"]) * change**2 * sign
        step = self.first / (np.sqrt(self.second) + YOGI["adaptivity"])
        return self.model + YOGI["rate"] * step

    def target(self, round_):
        return self.data.weights if round_["target"] is None else np.array(round_["target"])

    def memory(self, round_, clients, copies, updates):
        self.latest |= dict(zip(clients, updates, strict=True))
        known = sorted(self.latest)
        shares = self.target(round_)[known]
        return self.model + shares / shares.sum() @ np.array([self.latest[c] for c in known])

    def deviation(self, client):
        """What the server adds to a client's gradients: nothing for one step, or before it was heard."""
        if client not in self.gradients or self.data.steps[client] == 1:
            return 0.0
        return self.share * (self.control - self.gradients[client])

    def control_rule(self, round_, clients, copies, updates):
        """Control variates as gradients, worked out from what was accepted."""
        for client, update in zip(clients, updates, strict=True):
            length = self.data.steps[client] * round_["rate"]
            gradient = -update / length - self.deviation(client)
            if self.share == 0.0:
                self.gains.append(gradient @ gradient * length)
            elif client in self.gradients and self.data.steps[client] > 1:
                change = gradient - self.gradients[client]
                if client in self.corrected:
                    small = change @ change <= 0.08 * (gradient @ gradient)
                    energy = change @ change * length
                    self.changes.append(min(energy, 0.3) if small else energy)
                self.corrected.add(client)
            self.gradients[client] = gradient
        if self.scheme["name"] != "control-full" and self.watch(round_["rate"]):
            self.gradients, self.control = {}, np.zeros_like(self.model)
            return self.calm
        known = sorted(self.gradients)
        shares = self.target(round_)[known]
        self.control = shares / shares.sum() @ np.array([self.gradients[c] for c in known])
        return self.model - self.data.steps[clients].mean() * round_["rate"] * self.control

    def watch(self, rate):
        """Whether corrections end: when corrected updates change by more than 0.5 nat."""
        if self.share == 1.0:
            self.calm = self.model if self.calm is None else self.calm
            change = np.median(self.changes[-20:]) if len(self.changes) >= 20 else 0.3
            self.calm = self.model if change <= 0.25 else self.calm
            if change > 0.5:
                self.share, self.gains, self.ends, self.ended_at = 0.0, [], self.ends + 1, rate
                return True
        elif rate <= self.ended_at / 2:
            self.share, self.changes, self.corrected, self.calm, self.ends = 1.0, [], set(), None, 0
        elif self.ends == 1 and len(self.gains) >= 40 and np.median(self.gains[-40:]) < 0.3:
            self.share, self.changes, self.corrected, self.calm = 1.0, [], set(), None
        return False

    def variance_reduced(self, round_, clients, copies, updates):
        change = sum(self.target(round_)[c] * update for c, update in self.latest.items())
        for client, share, update in zip(clients, copies / copies.sum(), updates, strict=True):
            change = change + share * (update - self.latest.get(client, 0.0))
        self.latest |= dict(zip(clients, updates, strict=True))
        return self.model + change

    def fedau(self, round_, clients, copies, updates):
        intervals = np.array([np.mean(self.ended[c]) if self.ended[c] else 1.0 for c in clients])
        for client in self.since:
            self.since[client] += 1
            if client in clients or self.since[client] == CUTOFF:
                self.ended[client].append(self.since[client])
                self.since[client] = 0
        return self.model + (self.target(round_)[clients] * intervals) @ updates

    def label_matched(self, round_, clients, copies, updates):
        """The convex problem by brute force: the best of all supports."""
        reference, labels = copies / copies.sum(), self.data.shares[clients]
        goal, inverse = self.data.goal, 1 / self.data.goal
        best = (np.inf, None)
        for size in range(1, len(clients) + 1):
            for support in map(list, itertools.combinations(range(len(clients)), size)):
                held, wanted = labels[support], reference[support]
                quadratic = (held * inverse) @ held.T + RIDGE * np.diag(1 / wanted)
                linear = (held * inverse) @ goal + RIDGE * np.ones(size)
                system = np.block(
                    [[quadratic, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]]
                )
                solved = np.linalg.solve(system, np.append(linear, 1.0))[:size]
                if (solved < -1e-12).any():
                    continue
                weights = np.zeros(len(clients))
                weights[support] = solved
                value = (((weights @ labels - goal) ** 2) * inverse).sum()
                value += RIDGE * ((weights - reference) ** 2 / reference).sum()
                if value < best[0]:
                    best = (value, weights)
        return self.model + best[1] @ updates

    def median(self, round_, clients, copies, updates):
        return self.model + np.median(updates, axis=0)

    def trimmed_mean(self, round_, clients, copies, updates):
        """A fifth at either end, rounded up, as long as something stays."""
        out = min(-(-len(clients) // 5), (len(clients) - 1) // 2)
        return self.model + np.sort(updates, axis=0)[out : len(clients) - out].mean(axis=0)

    def krum(self, round_, clients, copies, updates):
        """Of three arrivals or more, the one with the nearest n - f - 2 neighbours."""
        if len(clients) < 3:
            return self.model
        distances = ((updates[:, None] - updates[None]) ** 2).sum(-1)
        nearest = len(clients) - (len(clients) - 3) // 2 - 2
        scores = np.sort(distances, axis=1)[:, 1 : 1 + nearest].sum(1)
        return self.model + updates[np.argmin(scores)]

    # ------------------------------------------------- rules for clients that come and go

    def all(self, round_, clients, copies, updates):
        return self.model + self.target(round_)[clients] @ updates

    def odds(self, round_, clients, copies):
        """What arrived, divided by how many uploads of the client were to be expected."""
        reached = np.array(round_["selection"]) * (1 - np.array(round_["failure"]))
        return copies * self.target(round_)[clients] / reached[clients] / round_["draws"]

    def known(self, round_, clients, copies, updates):
        return self.model + self.odds(round_, clients, copies) @ updates

    def fedstale(self, round_, clients, copies, updates):
        if not clients:
            return self.model
        zero = np.zeros_like(self.model)
        odds, target = self.odds(round_, clients, copies), self.target(round_)
        stale = sum((target[c] * update for c, update in self.latest.items()), zero)
        stale = stale - odds @ np.array([self.latest.get(c, zero) for c in clients])
        self.latest |= dict(zip(clients, updates, strict=True))
        return self.model + odds @ updates + STALE * stale

    def f3ast(self, round_, clients, copies, updates):
        self.rates = (1 - SMOOTHING) * self.rates
        self.rates[clients] += SMOOTHING
        return self.model + (self.data.weights[clients] / self.rates[clients]) @ updates

    def fedawe(self, round_, clients, copies, updates):
        """The mean of the clients' own models and of their updates, once for every round missed."""
        if not clients:
            return self.model
        echoes = np.array([self.number - self.last[client] for client in clients])
        change = echoes @ updates / len(clients)
        change = change * min(1.0, ECHO_CLIP / np.linalg.norm(change))
        model = np.mean([self.own[client] for client in clients], axis=0) + change
        self.own |= dict.fromkeys(clients, model)
        self.last |= dict.fromkeys(clients, self.number)
        return model

    def fedpbc(self, round_, clients, copies, updates):
        """Everybody trains; those who get through end at the mean of their models."""
        if not clients:
            return self.model
        starts = np.array([self.own[client] for client in clients])
        model = (starts + updates).mean(axis=0)
        self.own |= dict.fromkeys(clients, model)
        return model

    def amplified(self, round_, clients, copies, updates):
        model = self.model + updates.mean(axis=0) if clients else self.model
        if self.number % PERIOD == 0:
            model = self.anchor = self.anchor + AMPLIFICATION * (model - self.anchor)
        return model

    def amplified_scaffold(self, round_, clients, copies, updates):
        for client, update in zip(clients, updates, strict=True):
            steps, (total, count) = self.data.steps[client], self.sums[client]
            raw = -update / round_["rate"] - steps * (self.control - self.controls.get(client, 0.0))
            self.sums[client] = total + raw, count + steps
        model = self.amplified(round_, clients, copies, updates)
        if self.number % PERIOD == 0:
            for client, (total, count) in self.sums.items():
                if count:
                    self.controls[client] = total / count
                self.sums[client] = np.zeros_like(self.model), 0
            self.control = sum(self.controls.values()) / len(self.ended)
        return model

    def feddyn(self, round_, clients, copies, updates):
        if not clients:
            return self.model
        for client, update in zip(clients, updates, strict=True):
            self.controls[client] = self.controls.get(client, 0.0) + update
        return self.model + updates.mean(axis=0) + sum(self.controls.values()) / len(self.ended)

    # ------------------------------------------------------- clients that are always under way

    def seconds(self, client):
        """Download, training and upload of a client."""
        batch = min(self.federation["batch"], len(self.data.labels[client]))
        computed = self.data.steps[client] * batch * self.federation["seconds_per_sample"][client]
        return 32 * self.model.size / DOWNLINK + computed + UPLOAD_SECONDS

    def buffered(self, round_):
        """FedBuff: clients end in the order of the clock, and two updates are a step."""
        waiting = list(round_["started"])
        taken, change = 0, np.zeros_like(self.model)
        while taken < self.federation["draws"] // 2:
            while len(self.flights) < self.federation["draws"]:
                begun = waiting.pop(0)
                end = self.now + self.seconds(begun["client"])
                self.flights.append(
                    (end, begun["client"], len(self.models) - 1, begun, round_["rate"])
                )
            first = min(self.flights, key=lambda flight: flight[:2])
            self.flights.remove(first)
            self.now, client, version, begun, rate = first
            if begun["arrives"]:
                start = self.models[version]
                update = self.upload(client, begun["batches"], rate, start)
                change = change + update / np.sqrt(len(self.models) - version)
                taken += 1
        assert not waiting, "somebody else started"
        return self.model + change / taken


@pytest.mark.parametrize(("federation", "scheme"), CASES)
def test_the_same_model_after_twenty_rounds(federation, scheme):
    ours = Federation(federation, scheme)
    for round_ in scheme["rounds"]:
        ours.play(round_)
    theirs = np.array(scheme["final"])
    assert np.abs(theirs - federation["initial"]).max() > 0.01, "nothing was learnt"
    scale = max(1.0, np.abs(ours.model).max())
    assert np.abs(theirs - ours.model).max() <= 1e-5 * scale


@pytest.mark.skipif(not FILE, reason="FEDCOTE_DRAWS names no file of draws")
def test_all_schemes_are_there():
    names = [scheme["name"] for scheme in FEDERATIONS[0]["schemes"]]
    assert len(names) == len(set(names)) and {"fedavg", "fedcote", "fedcote-memory"} <= set(names)
    assert {"fedawe", "fedbuff", "oort"} <= set(names)
    clipped = FEDERATIONS[1]
    assert clipped["clip"] and clipped["hostile"]["clients"]
