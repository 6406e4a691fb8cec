"""Hostile clients and hostile state files for the Flower strategy, made by a seed.

``python attack.py CASES SEED`` makes half of the cases of each kind, and prints a line for each:
what it is, how many, how they ended. A case that is not answered as it should be ends it.
"""

import json
import logging
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from fake_grid import FakeGrid, initial
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict

from fedcote import _state
from fedcote.flower import FedCote

LABELS = [[9, 1, 0], [0, 8, 2], [3, 3, 3], [0, 0, 7]]
TEXTS = [
    "",
    "\x1b[2J",
    "a\nb",
    "\u202e",
    "x" * 5000,
    "../../etc",
    "node-1",
    "0",
    "null",
    "'\">",
    "é",
]
NUMBERS = [0, -1, 1, 2**31, 2**62, 1e308, -1e308, 5e-324, float("nan"), float("inf"), 0.5]
OPTIONS = [
    {},
    {"aggregation": "memory"},
    {"aggregation": "control"},
    {"clip": 1.0},
    {"max_norm": 1.0},
    {"clip": 1.0, "noise_multiplier": 0.5},
    {"aggregation": "memory", "server_optimizer": "adam"},
    {"classes": 3},
    {"groups": {"ap": 0.3, "0": 0.1}},
]


class Hostile(FakeGrid):
    """Clients 0 and 1 are honest, 2 and 3 answer as the dice fall."""

    def __init__(self, dice):
        super().__init__(LABELS)
        self.dice = dice

    def send_and_receive(self, messages, *, timeout=None):
        replies = super().send_and_receive(messages, timeout=timeout)
        if self.dice.random() < 0.2 and replies:
            replies.append(self.dice.choice(replies))  # twice
        return replies

    def _query(self, message, client):
        if client < 2:
            return super()._query(message, client)
        return self._odd(message, self._answer())

    def _train(self, message, client):
        evaluating = message.metadata.message_type == "evaluate"
        if client < 2 and not evaluating:
            return super()._train(message, client)
        if client < 2:
            metrics = MetricRecord({"num-examples": 3, "loss": 0.5})
            return Message(RecordDict({"metrics": metrics}), reply_to=message)
        return self._odd(message, self._upload())

    def _odd(self, message, records):
        kind = self.dice.random()
        if kind < 0.1:
            return None
        if kind < 0.25:
            code = self.dice.choice([0, 1, 2, 3, 6, 99, 2**31 - 1])
            return Message(Error(code, self.dice.choice(TEXTS)), reply_to=message)
        return Message(RecordDict(records), reply_to=message)

    def _value(self):
        dice = self.dice
        number = dice.choice(NUMBERS)
        return dice.choice(
            [
                number,
                dice.choice(TEXTS),
                b"\x00\xff",
                True,
                [float(one) for one in dice.choices(NUMBERS, k=dice.randrange(6))],
                [dice.randrange(100) for _ in range(dice.choice([1, 3, 3, 3, 40, 20_000]))],
                dice.choices(TEXTS, k=2),
            ]
        )

    def _answer(self):
        keys = self.dice.sample(["labels", "name", "group", "corrected", "length", "x"], k=3)
        record = ConfigRecord({key: self._value() for key in {"labels", *keys}})
        return {self.dice.choice(["fedcote", "fedcote", "fedcote", "else"]): record}

    def _upload(self):
        dice, records = self.dice, {}
        for name in dice.sample(["arrays", "more"], k=dice.choice([0, 1, 1, 1, 2])):
            arrays = {"w": self._array((4,)), "steps": Array(np.array(5, np.int64))}
            if dice.random() < 0.2:
                arrays.pop(dice.choice(list(arrays)))
            if dice.random() < 0.1:
                arrays[dice.choice(TEXTS) or "y"] = self._array((2, 2))
            records[name] = ArrayRecord(arrays)
        for name in dice.sample(["metrics", "others"], k=dice.choice([0, 1, 1, 2])):
            numbers = {"num-examples": dice.choice(NUMBERS), "loss": dice.choice(NUMBERS)}
            if dice.random() < 0.3:
                numbers["loss"] = [dice.choice([1.0, float("nan")])] * dice.randrange(4)
            records[name] = MetricRecord(numbers)
        if dice.random() < 0.5:
            records.update(self._answer())
        return records

    def _array(self, shape):
        dice = self.dice
        kind = dice.randrange(6)
        if kind == 0:
            return Array("float32", shape, "numpy.ndarray", dice.randbytes(dice.randrange(300)))
        sound = Array(np.ones(shape, np.float32))
        if kind == 1:
            data = bytearray(sound.data)
            for _ in range(dice.randrange(1, 4)):
                data[dice.randrange(len(data))] = dice.randrange(256)
            return Array("float32", shape, "numpy.ndarray", bytes(data))
        if kind == 2:
            return Array(dice.choice(TEXTS), shape, dice.choice(TEXTS), sound.data)
        if kind == 3:
            wrong = dice.choice([(), (0,), (5,), (4, 1), (2**40,)])
            return Array("float32", wrong, "numpy.ndarray", sound.data)
        if kind == 4:
            return Array(np.full(shape, dice.choice([np.nan, -np.inf, 3e38]), np.float32))
        return Array(np.ones(shape, dice.choice([np.float64, np.complex64, np.int8, np.bool_])))


def one_line(problem):
    text = str(problem)
    assert text and "\n" not in text and len(text) < 5000, repr(text)


def replies(seed):
    """A federation with hostile clients goes on, and its model stays finite."""
    dice = random.Random(seed)
    strategy = FedCote(selected=4, seed=seed % 7, query_timeout=1.0, **dice.choice(OPTIONS))
    result = strategy.start(Hostile(dice), initial(), num_rounds=2, timeout=5)
    model = {name: array.numpy() for name, array in result.arrays.items()}
    assert all(np.isfinite(array).all() for array in model.values()), model
    state = json.dumps(strategy.state())
    assert len(state) < 200_000 and "\\u001b" not in state
    return "went on"


def mutated(data, dice):
    data = bytearray(data)
    for _ in range(dice.randrange(1, 5)):
        at = dice.randrange(len(data) + 1)
        kind = dice.randrange(4)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            data[at : at + dice.randrange(9)] = dice.randbytes(dice.randrange(9))
        elif kind == 2 and at < len(data):
            data[at] ^= 1 << dice.randrange(8)
        else:
            data[at:at] = str(dice.choice(NUMBERS)).encode()
    return bytes(data)


def rewritten(document, dice):
    """Something else in one place of a document, which is sealed again."""
    document.pop("checksum", None)
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = dice.choice(keys)
        inner = place[key]
        if isinstance(inner, (dict, list)) and inner and dice.random() < 0.75:
            place = inner
            continue
        if dice.random() < 0.3 and isinstance(place, dict):
            del place[key]
        else:
            place[key] = dice.choice([None, [], {}, "../x", *NUMBERS, *TEXTS])
        break
    document["checksum"] = _state._checksum(document)
    return json.dumps(document).encode()


def states(seed):
    """A hostile state file is refused by name in one line, or is sound enough to go on."""
    dice = random.Random(seed)
    options = dice.choice(OPTIONS)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "state.json")

        def run(rounds):
            strategy = FedCote(
                selected=4, seed=3, fraction_evaluate=0.0, state_file=file, **options
            )
            return strategy.start(FakeGrid(LABELS), initial(), num_rounds=rounds, timeout=5)

        run(2)
        victim = dice.choice([file, file, *sorted(Path(folder).glob("*.npz"))])
        sealed = victim == file and dice.random() < 0.6
        sound = victim.read_bytes()
        if sealed:
            victim.write_bytes(rewritten(json.loads(sound), dice))
        else:
            victim.write_bytes(mutated(sound, dice))
        try:
            run(3)
        except ValueError as problem:
            one_line(problem)
            return "refused in one line"
        return "went on"


def main(cases, seed):
    logging.getLogger("flwr").setLevel(logging.CRITICAL + 1)
    for name, case in [("replies of Flower clients", replies), ("states of the strategy", states)]:
        ends = Counter()
        for number in range(cases):
            try:
                ends[case(seed * 1_000_003 + number)] += 1
            except BaseException:
                print(f"{name}, case {number} with seed {seed}", file=sys.stderr)
                raise
        print(name, cases, ", ".join(f"{end}: {n}" for end, n in sorted(ends.items())), sep="\t")


if __name__ == "__main__":
    main(max(1, int(sys.argv[1]) // 2), int(sys.argv[2]))
