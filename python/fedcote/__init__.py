"""Client selection for federated learning over unreliable networks.

Clients drop out, and those that drop out are not like the others. FedCote chooses with which
probability each client is asked, so that the labels of what arrives match the labels of all
the data.

- :func:`select`: label counts and failure probabilities in, selection probabilities out
- :func:`appearance`, :func:`evaluate`: what given selection probabilities lead to
- :class:`Selector`: the same for a running federation, learning who fails
- :class:`Memory`, :func:`average`: everyone's latest update, and means of arrays
- :class:`fedcote.flower.FedCote`: a strategy for Flower (needs ``pip install 'flwr>=1.21'``)
- :func:`outage`, :class:`Network`: wireless uplinks that fail
- :func:`simulate`: whole comparisons of schemes, with the built-in tasks or your own (:class:`Task`)
- :func:`track`: the runs of a comparison in MLflow or Weights & Biases
- :func:`mnist`: the data set that travels with the package; :func:`partition`: samples for clients
- :class:`fedcote.torch.Task`: any PyTorch model and data (needs ``pip install 'fedcote[torch]'``)
"""

from ._data import mnist, partition
from ._fedcote import __version__
from ._memory import Memory, average
from ._network import Network, outage
from ._scheme import Arrival, Round, Scheme
from ._select import Evaluation, Selection, appearance, evaluate, select
from ._selector import Selector
from ._simulate import Figure, Simulation, Sweep, simulate
from ._task import Arrays, Job, Task, TaskError
from ._track import track

__all__ = [
    "Arrays",
    "Arrival",
    "Evaluation",
    "Figure",
    "Job",
    "Memory",
    "Network",
    "Round",
    "Scheme",
    "Selection",
    "Selector",
    "Simulation",
    "Sweep",
    "Task",
    "TaskError",
    "__version__",
    "appearance",
    "average",
    "evaluate",
    "mnist",
    "outage",
    "partition",
    "select",
    "simulate",
    "track",
]
