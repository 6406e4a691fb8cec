#!/usr/bin/env python3
"""Recomputes positions and failures without any of the crate's code: `python3 oracle.py` writes paper.csv and
grid.csv beside itself. Standard library only; parameters typed in from the paper's tables, random numbers from
the ChaCha definition (RFC 8439, eight rounds), the normal distribution from math.erfc."""

import math
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
TASKS = {"mnist": (23860, 0.1), "cifar10": (269722, 1.0)}
#            W (MHz) P (dBm) f (GHz) wall (dB)
STANDARDS = {
    "wifi24": (10, 23, 2.4, 12),
    "wifi5": (10, 23, 5, 18),
    "4g": (1.8, 20, 2.6, 10),
    "5g": (2.88, 23, 3.5, 15),
}


def chacha8(key):
    """The uniform numbers in [0, 1) of the stream with a 32-byte key."""

    def rotate(value, bits):
        return ((value << bits) | (value >> (32 - bits))) & 0xFFFFFFFF

    def quarter(s, a, b, c, d):
        for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[x] = (s[x] + s[y]) & 0xFFFFFFFF
            s[z] = rotate(s[z] ^ s[x], bits)

    counter = 0
    while True:
        start = list(struct.unpack("<4I", b"expand 32-byte k")) + list(struct.unpack("<8I", key))
        start += [counter & 0xFFFFFFFF, counter >> 32, 0, 0]
        s = list(start)
        for _ in range(4):
            for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)):
                quarter(s, a, b, c, d)
            for a, b, c, d in ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
                quarter(s, a, b, c, d)
        block = struct.pack("<16I", *((x + y) & 0xFFFFFFFF for x, y in zip(s, start)))
        for (word,) in struct.iter_unpack("<Q", block):
            yield (word >> 11) / 2**53
        counter += 1


def placement(seed, client):
    """Client (from 0) of twenty: eight uniform in the 20 m square around (30, 0), twelve in the disc around it."""
    numbers = chacha8(struct.pack("<QQIIII", seed, client, 3, 0, 0, 0))
    if client < 8:
        return 20 + 20 * next(numbers), -10 + 20 * next(numbers)
    while True:
        x, y = 400 * next(numbers) - 200, 400 * next(numbers) - 200
        if math.hypot(x, y) <= 200 and not (20 <= x <= 40 and -10 <= y <= 10):
            return x, y


def link(name, task, x, y, indoor, centre, excess):
    """Distance, deviation, margin and failure of a client."""
    mhz, power, ghz, wall = STANDARDS[name]
    wifi = name.startswith("wifi")
    station = (centre, 0, 3) if wifi else (0, 0, 20)
    distance = math.dist((x, y, 1.5), station)
    loss = 20 * math.log10(1 / 1000) + 20 * math.log10(ghz * 1000) + 32.44
    loss += 3 * 10 * math.log10(distance)
    loss += wall if indoor != wifi else 0
    loss += 0 if indoor else excess
    sigma = 4 if distance <= 100 else 8
    parameters, delay = TASKS[task]
    rate = 32 * parameters / delay
    # C <= R  <=>  P - loss + shadow <= noise power + (2^(R/W) - 1), all in dB.
    needed = -174 + 10 * math.log10(mhz * 1e6) + 10 * math.log10(2 ** (rate / (mhz * 1e6)) - 1)
    margin = power - loss - needed
    return distance, sigma, margin, math.erfc(margin / sigma / math.sqrt(2)) / 2


def write(file, header, rows):
    lines = [",".join(header)] + [",".join(str(value) for value in row) for row in rows]
    (HERE / file).write_text("\n".join(lines) + "\n")


def paper():
    names = list(STANDARDS)
    for seed in (1, 2, 3):
        for excess in (0, 22):
            for task in TASKS:
                for client in range(20):
                    x, y = placement(seed, client)
                    values = link(names[client % 4], task, x, y, client < 8, 30, excess)
                    yield (seed, excess, task, client, names[client % 4], x, y, int(client < 8), *values)


def grid():
    """Every standard, both sides of the wall, both shadowing ranges, both tasks, in a long flat building of
    400 m by 40 m around (250, 0)."""
    wifi = ((260, 0, 1), (440, 0, 1), (250, 50, 0), (250, 300, 0))
    cellular = ((60, 0, 1), (300, 0, 1), (0, 50, 0), (0, 500, 0))
    for task in TASKS:
        for name in STANDARDS:
            for x, y, indoor in wifi if name.startswith("wifi") else cellular:
                yield (task, name, x, y, indoor, *link(name, task, x, y, bool(indoor), 250, 5))


write("paper.csv", "seed excess task client standard x y indoor distance sigma margin failure".split(), paper())
write("grid.csv", "task standard x y indoor distance sigma margin failure".split(), grid())
