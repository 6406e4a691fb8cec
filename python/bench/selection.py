"""How long `Selector.select` takes for many clients, once it is under way.

python python/bench/selection.py [CLIENTS] [SELECTED]
"""

import sys
import time

import numpy as np

import fedcote

clients, selected = (int(a) for a in (*sys.argv[1:], *("100000", "1000")[len(sys.argv) - 1 :]))
generator = np.random.default_rng(1)
ids = [f"client-{number}" for number in range(clients)]
selector = fedcote.Selector(1)
selector.set_all_labels(
    ids, generator.integers(0, 100, (clients, 10)) + np.eye(10)[np.arange(clients) % 10]
)
failure = generator.uniform(0, 0.8, clients)
times = []
for _ in range(12):
    start = time.perf_counter()
    drawn = selector.select(ids, selected)
    times.append(1e3 * (time.perf_counter() - start))
    for client, _count in drawn:
        selector.observe(client, generator.random() >= failure[int(client[7:])])
print(
    f"{clients} clients, {selected} draws: first {times[0]:.0f} ms, then best {min(times[1:]):.1f} ms, median {np.median(times[1:]):.1f} ms"
)
