"""Local training with PyTorch, for :mod:`fedcote.torch`: a module that takes models in and gives them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.func import functional_call, grad, vmap

from ._task import Job
from ._torch_data import Data

#: Arrays by name, as models cross to the engine.
Arrays: TypeAlias = Mapping[str, NDArray[np.float32]]
Tensors: TypeAlias = dict[str, torch.Tensor]
#: From outputs and targets to a number.
Score: TypeAlias = Callable[[Any, Any], Any]


def exchanged(module: nn.Module) -> Tensors:
    """What the federation exchanges of a module: parameters, and floating-point buffers of its state."""
    state = module.state_dict()
    parameters = {name: leaf.detach() for name, leaf in module.named_parameters()}
    buffers = {
        name: buffer
        for name, buffer in module.named_buffers()
        if name in state and buffer.is_floating_point()
    }
    return {**parameters, **buffers}


def arrays(tensors: Tensors) -> dict[str, NDArray[np.float32]]:
    """The tensors for the engine, without copies if they are float32 on the CPU."""
    return {name: one.detach().to("cpu", torch.float32).numpy() for name, one in tensors.items()}


class Local:
    """Trains clients on a device, one by one or several at once."""

    def __init__(
        self,
        module: nn.Module,
        data: Data,
        samples: Sequence[NDArray[Any]],
        loss: Score,
        momentum: float,
        weight_decay: float,
    ) -> None:
        self.module, self.data, self.samples, self.loss = module, data, samples, loss
        self.momentum, self.weight_decay = momentum, weight_decay
        self.types = {name: tensor.dtype for name, tensor in exchanged(module).items()}
        #: Looked up once: walking through a module takes as long as a small step. Buffers may be other tensors later.
        self.parameters = dict(module.named_parameters())
        self.trained = [name for name, leaf in self.parameters.items() if leaf.requires_grad]
        self.buffers = [name for name in self.types if name not in self.parameters]
        #: Buffers that are not exchanged: before every training they are as the model's maker left them.
        self.fixed = {
            name: buffer.clone()
            for name, buffer in module.named_buffers()
            if name not in self.buffers
        }

    def load(self, model: Arrays) -> None:
        """Puts a model into the module, in new tensors: those of the last result are still in use."""
        tensors = self._complete(model)
        for name, tensor in (*self.parameters.items(), *self._buffers().items()):
            tensor.data = tensors[name]

    def one(self, model: Arrays, job: Job) -> Tensors:
        """The model after a client's training."""
        self.load(model)
        self.module.train()
        samples = self.samples[job.client]
        batches = iter(samples[job.batches(len(samples))])
        leaves: Tensors = {name: self.parameters[name] for name in self.trained}

        def gradients() -> None:
            inputs, targets = self.data.batch(next(batches))
            for leaf in leaves.values():
                leaf.grad = None
            self.loss(self.module(inputs), targets).backward()

        correction = {} if job.correction is None else self.tensors(job.correction)
        self._descend(leaves, gradients, correction, job)
        now = {**self.parameters, **self._buffers()}
        found = {name: now[name].detach() for name in self.types}
        return self._corrected(found, correction, job)

    def together(self, model: Arrays, jobs: Sequence[Job]) -> Tensors:
        """The models after the training of several clients, with one more dimension, the first, for clients.

        All make equally many steps with equally many samples.
        """
        self.module.train()
        rows = [self.samples[job.client] for job in jobs]
        drawn = np.stack([own[job.batches(len(own))] for own, job in zip(rows, jobs, strict=True)])
        batches = iter(drawn.swapaxes(0, 1))
        given = self._complete(model).items()
        stacked = {name: one.expand(len(jobs), *one.shape).clone() for name, one in given}
        leaves = {name: stacked[name] for name in self.trained}
        others = {name: one for name, one in stacked.items() if name not in leaves}

        def loss(leaves: Tensors, others: Tensors, inputs: Any, targets: Any) -> torch.Tensor:
            outputs = functional_call(self.module, (leaves, others), (inputs,))
            found: torch.Tensor = self.loss(outputs, targets)
            return found

        slopes = vmap(grad(loss), randomness="different")

        def gradients() -> None:
            found = slopes(leaves, others, *self.data.batch(next(batches)))
            for name, leaf in leaves.items():
                leaf.grad = found[name]

        correction: Tensors = {}
        if any(job.correction is not None for job in jobs):
            nothing = {name: np.zeros_like(array) for name, array in model.items()}
            each = [self.tensors(job.correction or nothing) for job in jobs]
            correction = {name: torch.stack([one[name] for one in each]) for name in model}
        self._descend(leaves, gradients, correction, jobs[0])
        return self._corrected({name: stacked[name] for name in model}, correction, jobs[0])

    def tensors(self, model: Any) -> Tensors:
        """Copies of a model's arrays on the device, in the types of the module."""
        device = self.data.device
        return {
            name: torch.tensor(array, dtype=self.types[name], device=device)
            for name, array in model.items()
        }

    def _buffers(self) -> Tensors:
        return dict(self.module.named_buffers()) if self.buffers or self.fixed else {}

    def _complete(self, model: Arrays) -> Tensors:
        """All tensors of the module, new ones."""
        tensors = {**{name: one.clone() for name, one in self.fixed.items()}, **self.tensors(model)}
        for name in self.buffers:
            # Servers that extrapolate may lead below zero.
            if name.rpartition(".")[2] == "running_var":
                tensors[name].clamp_(min=0.0)
        return tensors

    def _descend(
        self,
        leaves: Tensors,
        gradients: Callable[[], None],
        correction: Tensors,
        job: Job,
    ) -> None:
        """The steps of a job; ``gradients`` computes those of one step."""
        optimiser = torch.optim.SGD(
            list(leaves.values()),
            lr=job.rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
        )
        anchor = self.tensors(job.anchor) if job.proximal else {}
        moved = list(leaves.values())
        moves = [correction[name] for name in leaves] if correction else []
        for _ in range(job.steps):
            gradients()
            with torch.no_grad():
                for name, leaf in leaves.items():
                    if leaf.grad is None:  # a parameter that the loss does not depend on
                        leaf.grad = torch.zeros_like(leaf)
                    if job.proximal:
                        leaf.grad.add_(leaf - anchor[name], alpha=job.proximal)
                optimiser.step()
                # Servers count on every step moving by rate × correction, so it stays out of the momentum.
                if moves:
                    torch._foreach_sub_(moved, moves, alpha=job.rate)

    def _corrected(self, found: Tensors, correction: Tensors, job: Job) -> Tensors:
        """Buffers take no steps, so they get the corrections of all steps at the end."""
        for name in self.buffers if correction else ():
            found[name] = found[name].sub(correction[name], alpha=job.rate * job.steps)
        return found
