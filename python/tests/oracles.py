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


def chi_square(found, wanted):
    return float(((found - wanted) ** 2 / wanted).sum())


def instance(clients=6, classes=4, seed=0):
    """A federation with unequal clients and failures below the threshold."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 100, (clients, classes)).astype(float)
    labels[np.arange(clients), np.arange(clients) % classes] += 50
    return labels, generator.uniform(0.0, 0.8, clients)
