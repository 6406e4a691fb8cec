"""Six clients in NVFlare's simulator on this computer; the uploads of two fail four times out of five.

python job.py --rounds 10
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from fedcote_controller import FedCoteController
from mnist_client import CLASSES, MnistClient, accuracy
from nvflare import FedJob

import fedcote

FAILURES = [0.0, 0.0, 0.8]  # of sites 1, 2, 3, and again of 4, 5, 6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--clients", type=int, default=6)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        initial, result = Path(folder) / "initial.npz", Path(folder) / "result.npz"
        model: dict[str, Any] = {
            "weights": np.zeros((784, CLASSES), np.float32),
            "bias": np.zeros(CLASSES, np.float32),
        }
        np.savez(initial, **model)
        job = FedJob("fedcote")
        job.to_server(FedCoteController(str(initial), arguments.rounds, result=str(result)))
        for number in range(arguments.clients):
            client = MnistClient(number, arguments.clients, FAILURES[number % 3])
            job.to(client, f"site-{number + 1}", tasks=["labels", "train"])
        job.simulator_run(
            str(Path(folder) / "workspace"), threads=arguments.clients, log_config="concise"
        )
        if not result.exists():
            raise SystemExit("job: the simulator did not finish; see its log above")
        with np.load(result) as arrays:
            found = dict(arrays)
    data = fedcote.mnist()
    print(
        f"test accuracy after {arguments.rounds} rounds: {accuracy(found, data.test_images, data.test_labels):.3f}"
    )


if __name__ == "__main__":
    main()
