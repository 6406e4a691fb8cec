"""A long federation in trouble, beside an undisturbed twin that sees the same clients.

``python soak.py ROUNDS SEED`` plays it for some strategies and prints a line for each. Clients join,
leave, come back as other nodes, change their names, claim those of others, lie, fail and keep silent;
the server is killed (SIGKILL) at random moments and goes on from its state file. What it has saved
whenever it was killed must be what the twin had after that round, bit for bit: model, estimates,
memory and names. Neither process may grow.
"""

import hashlib
import logging
import os
import random
import select
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from attack import Hostile
from fake_grid import FIRST_NODE, FakeGrid, initial
from flwr.app import Message, MetricRecord, RecordDict

from fedcote import _directory, _state
from fedcote._wireless import ATTEMPT
from fedcote.flower import FedCote

#: Each with the share of the rounds that it gets.
STRATEGIES = [
    ("memory, Adam, clipped", 1.0, {"aggregation": "memory", "server_optimizer": "adam"}),
    ("mean", 0.1, {}),
    ("control variates", 0.1, {"aggregation": "control"}),
    ("mean, window of outcomes", 0.1, {"estimator": "window"}),
]
#: Clients at a time, those that are never absent, and labels.
CLIENTS, STEADY, CLASSES = 24, 6, 3
#: Names of clients that are gone and still known: a round costs time for each, 10,000 in earnest.
MOST_GONE = 100
#: What a process may grow by after the first tenth of its rounds, in bytes: a part that is fixed,
#: and what reports and metrics of a round take, which Flower and the strategy keep for all rounds.
GROWTH, GROWTH_PER_ROUND = 24 << 20, 6 << 10


@dataclass(frozen=True)
class Client:
    """What one client is like in some rounds."""

    node: int
    name: str
    labels: tuple[int, ...]
    failure: float
    lies: bool = False
    mute: bool = False
    present: bool = True


def timeline(rounds, seed):
    """The clients of every round, from 0; a function of the seed alone."""
    dice, nodes, names = random.Random(seed), 0, 0

    def somebody(node):
        nonlocal names
        names += 1
        labels = tuple(dice.randrange(0, 40) for _ in range(CLASSES))
        return Client(
            FIRST_NODE + 7 * node,
            f"client {names}",
            labels if any(labels) else (1,) * CLASSES,
            dice.choice([0.0, 0.1, 0.4, 0.9]),
            lies=dice.random() < 0.2,
            mute=dice.random() < 0.1,
        )

    clients = [somebody(place) for place in range(CLIENTS)]
    clients[:STEADY] = [replace(one, lies=False, mute=False) for one in clients[:STEADY]]
    nodes, found = CLIENTS, [tuple(clients)]
    for _ in range(rounds):
        for place in range(STEADY, CLIENTS):
            client, event = clients[place], dice.random()
            if event < 0.04:
                client = replace(client, present=not client.present)
            elif event < 0.10:
                node, nodes = FIRST_NODE + 7 * nodes, nodes + 1
                if event < 0.06:  # the same client after a restart
                    client = replace(client, node=node, present=True)
                elif event < 0.07:  # under another name
                    names += 1
                    client = replace(client, node=node, name=f"client {names}", present=True)
                elif event < 0.08:  # under the name of somebody else
                    other = clients[dice.randrange(CLIENTS)].name
                    client = replace(client, node=node, name=other, present=True)
                else:
                    client = somebody(nodes - 1)
            clients[place] = client
        found.append(tuple(clients))
    return found


class World(Hostile):
    """The clients of a timeline, as of the round that a strategy is in."""

    def __init__(self, found, seed):
        FakeGrid.__init__(self, [()])
        self.timeline, self.seed = found, seed

    def get_node_ids(self):
        now = min(self.strategy._done + 1, len(self.timeline) - 1)
        self.clients = self.timeline[now]
        self.nodes = [client.node for client in self.clients]
        self.names = [client.name for client in self.clients]
        self.labels = [list(client.labels) for client in self.clients]
        # What a test would look at, and what would grow.
        self.queries, self.asked, self.corrections = [], [], []
        return [client.node for client in self.clients if client.present]

    def behave(self, name, round_):
        return self.dice.choice(["silent", 2, 3, 6, 99]) if self.fails else None

    def _throw(self, client, what):
        """Dice of this message alone, whatever was played before it."""
        self.dice = random.Random(f"{self.seed} {what} {self.clients[client].node}")
        self.fails = self.dice.random() < self.clients[client].failure

    def _query(self, message, client):
        self._throw(client, "query")
        one = self.clients[client]
        if one.mute:
            return None
        if one.lies:
            return self._odd(message, self._answer())
        return FakeGrid._query(self, message, client)

    def _train(self, message, client):
        config = message.content["config"]
        kind = message.metadata.message_type
        self._throw(client, f"{kind} {config['server-round']} {config.get(ATTEMPT, 0)}")
        if self.clients[client].lies and self.dice.random() < 0.5:
            return self._odd(message, self._upload())
        if kind == "train":
            return FakeGrid._train(self, message, client)
        metrics = MetricRecord({"num-examples": 3, "loss": self.dice.random()})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    def learn(self, model, client, round_):
        """A step towards what this client's labels say."""
        wanted = np.float32([*self.labels[client], sum(self.labels[client])])
        return model + np.float32(0.25) * (wanted - model)


def digest(state, model, updates, calm, moments):
    """All that a strategy knows, in a line."""
    found = hashlib.sha256(_state._checksum(state).encode())
    kept = [model, *(updates[name] for name in sorted(updates)), calm or {}]
    for arrays in kept + [moments[name] for name in sorted(moments)]:
        for name in sorted(arrays):
            found.update(np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()[:32]


class Watched(FedCote):
    """Writes a line after every round: its number, what is known, and the size of the process."""

    def _save(self, arrays):
        super()._save(arrays)
        if self.diary is None:
            os.write(self.tell, b".")
        else:
            model = {name: array.numpy() for name, array in arrays.items()}
            memory = self.memory
            calm = getattr(memory, "calm", None)
            known = digest(
                self.state(),
                model,
                {} if memory is None else memory.updates,
                None if calm is None else calm[1],
                {} if self.optimizer is None else self.optimizer.arrays,
            )
            print(self._done, known, resident(os.getpid()), file=self.diary)


def resident(process):
    """The memory of a process in bytes."""
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def play(found, seed, options, rounds, file=None, diary=None):
    """All rounds, in a process of its own; its number, and a pipe with a byte for every round."""
    told, tell = os.pipe()
    process = os.fork()
    if process:
        os.close(tell)
        return process, told
    status, strategy = 1, None
    os.close(told)
    try:
        strategy = Watched(
            selected=8, seed=seed, clip=50.0, classes=CLASSES, query_timeout=1.0, state_file=file,
            fraction_evaluate=0.2, min_available_nodes=2, **options,
        )  # fmt: skip
        strategy.diary = None if diary is None else open(diary, "w")
        strategy.tell = tell
        world = World(found, seed)
        world.strategy = strategy
        strategy.start(world, initial(), num_rounds=rounds, timeout=5)
        if strategy.diary is not None:
            strategy.diary.close()
        status = 0
    except BaseException:
        logging.getLogger("soak").exception("round %d", getattr(strategy, "_done", 0) + 1)
    finally:
        os._exit(status)


def lived(server, rounds, dice):
    """Lets a server play so many rounds and a part of the next, and kills it; false if it ended before."""
    process, told = server
    begun = time.monotonic()
    for _ in range(rounds):
        begun = time.monotonic()
        if not os.read(told, 1):
            return False
    # Anywhere in the next round, which takes about as long as the last.
    wait = dice.uniform(0, 1.2) * max(0.001, time.monotonic() - begun)
    if select.select([told], [], [], wait)[0] and not os.read(told, 1):
        return False
    os.kill(process, signal.SIGKILL)
    return True


def soak(options, rounds, seed, folder, life):
    """One federation and its twin; ``life`` is how many rounds the server lives on average."""
    found, dice = timeline(rounds, seed), random.Random(seed)
    file, diary = Path(folder, "state.json"), Path(folder, "diary")
    twin, _ = play(found, seed, options, rounds, diary=diary)
    kills, seen, largest, killed = 0, {}, 0, True
    while killed:
        process, told = play(found, seed, options, rounds, file=file)
        killed = lived((process, told), dice.randrange(2 * life), dice)
        kills += killed
        os.close(told)
        _, status, used = os.wait4(process, 0)
        largest = max(largest, used.ru_maxrss << 10)
        if not killed and status:
            raise SystemExit(f"the server ended with {status} after {kills} kills")
        read = _state.read(file)
        if read is not None:
            state, *arrays = read
            for key in ("arrays", "array_names", "updates", "calm", "moments", "moment_arrays"):
                del state[key]
            seen.setdefault(state["round"], set()).add(digest(state, *arrays))
    if os.waitpid(twin, 0)[1] != 0:
        raise SystemExit("the twin did not play to its end")
    lines = [line.split() for line in diary.read_text().splitlines()]
    known = {int(round_): (found, int(size)) for round_, found, size in lines}
    for round_, digests in sorted(seen.items()):
        if digests != {known[round_][0]}:
            raise SystemExit(f"after round {round_} the state is not that of the twin")
    if len(known) != rounds or rounds not in seen:
        raise SystemExit(f"{len(known)} rounds of {rounds} were played")
    early, late = known[max(1, rounds // 10)][1], max(size for _, size in known.values())
    bound = GROWTH + GROWTH_PER_ROUND * rounds
    if max(late, largest) - early > bound:
        raise SystemExit(
            f"memory grew from {early} to {max(late, largest)} bytes in {rounds} rounds"
        )
    left = sorted(path.name for path in Path(folder).iterdir())
    named = _state._named(file) | {"state.json", "diary"}
    if set(left) != named:
        raise SystemExit(f"files were left behind: {set(left) ^ named}")
    people = len({client.node for clients in found for client in clients})
    return people, kills, len(seen), early, late, file.stat().st_size


def main(rounds, seed, life):
    logging.getLogger("flwr").setLevel(logging.CRITICAL + 1)
    _directory.MOST_GONE = MOST_GONE
    for name, share, options in STRATEGIES:
        begun, some = time.monotonic(), max(20, int(share * rounds))
        with tempfile.TemporaryDirectory() as folder:
            people, kills, compared, early, late, size = soak(options, some, seed, folder, life)
        print(
            name, some, people, kills, compared, f"{early / 1e6:.0f} → {late / 1e6:.0f}",
            f"{size / 1e3:.0f}", f"{time.monotonic() - begun:.0f}", sep="\t", flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 20)
