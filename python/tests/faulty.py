"""The example's ClientApp with faults: test_federation copies it into the app.

``faults`` in the run's configuration says what goes wrong, as ``client:round:fault,…``.
"""

import os
import signal
import time

import numpy as np
from flwr.app import ArrayRecord, Context, Message
from flwr.clientapp import ClientApp

from . import client

app = ClientApp()
app.query("label_histogram")(client.histogram)


@app.train()
def train(message: Message, context: Context) -> Message:
    number, _ = client.who(context)
    round_ = int(message.content["config"]["server-round"])
    faults = dict(fault.rsplit(":", 1) for fault in str(context.run_config["faults"]).split(","))
    fault = faults.get(f"{number}:{round_}")
    if fault == "raise":
        raise RuntimeError("out of memory")
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "sleep":
        time.sleep(float(context.run_config["timeout"]) + 5)
    reply = client.train(message, context)
    if fault == "nan":
        arrays = reply.content["arrays"].to_numpy_ndarrays()
        arrays[0][0, 0] = np.nan
        reply.content["arrays"] = ArrayRecord(arrays)
    return reply
