"""Outage and networks against the standard library and by simulation."""

import os
import subprocess
import sys
from statistics import NormalDist

import numpy as np
import pytest

import fedcote


def test_outage_is_the_normal_tail():
    margin, sigma = np.linspace(-20, 30, 11)[:, None], np.array([2.0, 4.0, 8.0])
    found = fedcote.outage(margin, sigma)
    wanted = [[NormalDist().cdf(-m / s) for s in sigma] for m in margin[:, 0]]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-15)
    assert fedcote.outage(0, 0) == 1.0 and fedcote.outage(0.1, 0) == 0.0
    for wrong in [(np.nan, 1.0), (1.0, -1.0), (1.0, np.nan)]:
        with pytest.raises(ValueError):
            fedcote.outage(*wrong)


def test_the_papers_cell():
    network = fedcote.Network(20, outdoor_excess_loss_db=22.0, seed=3)
    places = network.positions()
    assert [place["standard"] for place in places[:4]] == ["wifi24", "wifi5", "4g", "5g"]
    assert sum(place["indoor"] for place in places) == 8
    np.testing.assert_array_equal([p["failure"] for p in places], network.failures())
    np.testing.assert_array_equal(
        fedcote.Network(20, outdoor_excess_loss_db=22.0, seed=3).failures(), network.failures()
    )
    assert not network.moves and fedcote.Network(20, mobility="walk").moves


def test_uploads_fail_as_often_as_said():
    network = fedcote.Network(2, kind="fixed", failure=np.array([0.2, 0.7]))
    arrived = np.mean([[network.arrives(r, c) for c in (0, 1)] for r in range(5000)], axis=0)
    np.testing.assert_allclose(arrived, [0.8, 0.3], atol=0.035)
    with pytest.raises(IndexError):
        network.arrives(0, 2)


def test_wrong_networks_are_refused():
    for text, config in [
        ("network.failure: is missing", dict(kind="fixed")),
        ("network", dict(kind="pigeon")),
        ("network", dict(colour="blue")),
    ]:
        with pytest.raises(ValueError, match=text):
            fedcote.Network(2, **config)


def test_more_clients_than_fit_are_refused():
    """Regression: the process was aborted for want of memory."""
    for clients in (10**15, 10**9):
        with pytest.raises(ValueError, match="clients: must be from 1 to 100000000"):
            fedcote.Network(clients)


FORKED = """
import os, sys
import numpy as np
import fedcote

def work():
    network = fedcote.Network(100_000, kind="fixed", failure=0.5)
    labels = np.ones((50_000, 2))
    found = fedcote.select(labels, failure=np.full(50_000, 0.25), selected=10)
    return network.failures(3).sum() + found.selection.sum() + len(fedcote.mnist().train_images)

before = work()
for _ in range(2):
    child = os.fork()
    if child == 0:
        os._exit(0 if work() == before else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_computes_on_threads_of_its_own():
    """Regression: after a large call a forked process waited for ever for its parent's threads."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "done\n", done.stderr
