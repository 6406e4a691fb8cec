"""Aggregation beside Flower's own, in the same process, interleaved.

python python/bench/aggregation.py [PARAMETERS] [UPDATES]
"""

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import fake_grid  # noqa: E402, F401  (sets up messages outside a run)
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict  # noqa: E402
from flwr.serverapp.strategy import FedAvg  # noqa: E402

from fedcote._memory import Memory  # noqa: E402
from fedcote._round import Bounds, Outcome, Round, next_model  # noqa: E402

parameters, updates = (int(a) for a in (*sys.argv[1:], *("25000000", "20")[len(sys.argv) - 1 :]))
generator = np.random.default_rng(1)
shapes = [(parameters // 2,), (parameters // 4,), (parameters - parameters // 2 - parameters // 4,)]


def update():
    arrays = {str(i): Array(generator.random(s, dtype=np.float32)) for i, s in enumerate(shapes)}
    return RecordDict({"arrays": ArrayRecord(arrays), "metrics": MetricRecord({"num-examples": 1})})


contents = {str(number): update() for number in range(updates)}
question = Message(RecordDict(), 7, "train")
replies = [Message(content, reply_to=question) for content in contents.values()]
fedavg = FedAvg()
current = Round(None, contents["0"]["arrays"], ConfigRecord(), drawn=dict.fromkeys(contents, 1))
current.outcomes = {name: Outcome(True, "arrived") for name in contents}
current.target = dict.fromkeys(contents, 1 / updates)
ours, flowers, remembering = [], [], []
for _ in range(5):
    start = time.perf_counter()
    wanted, _ = fedavg.aggregate_train(1, replies)
    flowers.append(time.perf_counter() - start)
    start = time.perf_counter()
    found = next_model(contents, current, Bounds(), None, 1)
    ours.append(time.perf_counter() - start)
    start = time.perf_counter()
    memory = Memory(forget_after=1)
    stepped = next_model(contents, current, Bounds(), memory, 1)
    remembering.append(time.perf_counter() - start)
for name in found:
    np.testing.assert_allclose(found[name].numpy(), wanted[name].numpy(), rtol=2e-6)
    np.testing.assert_allclose(stepped[name].numpy(), wanted[name].numpy(), rtol=1e-5, atol=1e-6)
print(
    f"{updates} updates of {parameters} float32: Flower's FedAvg {min(flowers):.2f} s, "
    f"FedCote {min(ours):.2f} s, ratio {min(flowers) / min(ours):.1f}, with memory {min(remembering):.2f} s for "
    f"{memory.bytes / 1e9:.1f} GB (best of 5, interleaved)"
)
