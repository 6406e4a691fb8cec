"""The same quantities by other means: enumeration, simulation and NumPy."""

import itertools

import numpy as np


def appearance_by_enumeration(selection, failure, selected, uploads):
    """Sums over every list of draws and every pattern of failures."""
    clients = len(selection)
    total = np.zeros(clients)
    for drawn in itertools.product(range(clients), repeat=selected):
        chance = np.prod([selection[client] for client in drawn])
        # Who uploads: every draw, or every distinct client with its count.
        if uploads == "per-draw":
            senders = [(client, 1) for client in drawn]
        else:
            senders = [(client, drawn.count(client)) for client in sorted(set(drawn))]
        share, somebody = np.zeros(clients), 0.0
        for pattern in itertools.product((False, True), repeat=len(senders)):
            if not any(pattern):
                continue
            odds, weights = 1.0, np.zeros(clients)
            for (client, count), arrived in zip(senders, pattern, strict=True):
                odds *= (1 - failure[client]) if arrived else failure[client]
                weights[client] += count * arrived
            share += odds * weights / weights.sum()
            somebody += odds
        total += chance * share / somebody
    return total


def npy(header, data=bytes(16)):
    """An ``.npy`` file with any header."""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


def _header(shape, dtype="<f4"):
    return f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n"


#: Files that are no arrays, and with what the reader of headers fails.
DAMAGED = {
    "overflow": npy(_header("(2**70,)")),
    "large": npy(_header(f"({2**70},)")),
    "product": npy(_header(f"({2**40}, {2**40})")),
    "parentheses": npy("(" * 300),
    "brackets": npy("[" * 9000),
    "minus": npy(_header("(" + "-" * 9000 + "4,)")),
    "unhashable": npy("{[]: 1}"),
    "no dictionary": npy("4"),
    "dtype": npy(_header("(4,)", "nonsense")),
    "no text": npy(_header("('a',)")),
    "cut": npy(_header("(4,)"), bytes(15)),
    "version": b"\x93NUMPY\x09\x00" + bytes(30),
    "empty": b"",
}


def chi_square(found, wanted):
    return float(((found - wanted) ** 2 / wanted).sum())


def instance(clients=6, classes=4, seed=0):
    """A federation with unequal clients and failures below the threshold."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 100, (clients, classes)).astype(float)
    labels[np.arange(clients), np.arange(clients) % classes] += 50
    return labels, generator.uniform(0.0, 0.8, clients)
