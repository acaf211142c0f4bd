"""Gradient matching: reconstruct the rows from which an observed gradient was computed.

The attacker has the network and the gradient of its loss, as a server in federated learning has, and searches for
images that have the same gradient. A failed search proves nothing: the next one may start from a better point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from privet.attacks.gradient_sharing import Gradient, gradient_tensors, squared_norm
from privet.attacks.matching import DLG, MatchingMethod, Problem, Reconstruction
from privet.attacks.target import Target, class_labels, network_of
from privet.core import InvalidInput, checked
from privet.ensemble import generator

__all__ = ["Attempt", "match_gradient", "shared_gradient"]

_KINKED = ("Relu", "Prelu", "MaxPool", "Hardtanh", "Threshold")


@dataclass(frozen=True)
class Attempt:
    """Progress of a search, for progress bars."""

    restart: int
    """Number of the search, from 1."""
    restarts: int
    step: int
    steps: int
    distance: float


def match_gradient(
    target: Target,
    gradient: Gradient,
    shape: Sequence[int],
    *,
    method: MatchingMethod = DLG(),  # noqa: B008 (a frozen record)
    examples: int = 1,
    labels: Tensor | None = None,
    restarts: int = 1,
    partial: bool = False,
    key: str = "privet",
    progress: Callable[[Attempt], None] | None = None,
) -> Reconstruction:
    """Reconstruct images from the gradient of the mean cross-entropy over them.

    Of several searches, the one whose gradient is closest to the observed gradient is returned: an attacker has no
    ground truth to choose by.

    Args:
        target: A white-box target, which is not changed; the network should be smooth (sigmoid, tanh, softplus, GELU).
        gradient: The observed gradient.
        shape: The shape of one image, as the network takes it, such as (1, 28, 28).
        method: `DLG()`, `IDLG()` or `Cosine()`.
        examples: The number of images that the gradient was computed from.
        labels: The labels of these images, if the attacker knows them.
        restarts: The number of searches.
        partial: Whether zeros of the gradient are entries that were withheld; only the others are then matched.
        key: Seed of the random starts.
        progress: Called after every step.

    Raises:
        InvalidInput: If the target does not show its weights or has no trained parameters; the gradient does not fit
            the network, is zero or is not finite; the network does not take the shape; labels are not one class for
            each example, or are needed and missing; or a count is below 1.
    """
    network = _copied(target).to("cpu", torch.float64)
    wanted = (checked.count("examples", examples), *(checked.count("shape", each) for each in shape))
    given = None if labels is None else class_labels(labels, target.classes, examples)
    problem = Problem(network, _fitting(gradient, network), wanted[1:], target.classes, examples, given, partial)
    notes = _notes(problem)
    best: Reconstruction | None = None
    for restart in range(checked.count("restarts", restarts)):

        def tell(step: int, distance: float, restart: int = restart) -> None:
            if progress is not None:
                progress(Attempt(restart + 1, restarts, step, method.steps, distance))

        found = method.find(problem, generator(key, "match", restart), tell)
        if best is None or found.distance < best.distance:
            best = replace(found, notes=notes)
    if best is None:
        raise InvalidInput("restarts", "is 0", "search at least once")
    return best


def shared_gradient(target: Target, inputs: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
    """Return the gradient that a participant shares: that of the mean cross-entropy over these rows.

    Args:
        target: A white-box target, which is not changed.
        inputs: [rows, …].
        labels: [rows]: the true classes.

    Raises:
        InvalidInput: If the target does not show its weights, or has no trained parameters.

    >>> from privet.attacks.target import target
    >>> seen = target(nn.Linear(4, 2), 2)
    >>> [tuple(part.shape) for part in shared_gradient(seen, torch.zeros(1, 4), torch.tensor([1]))]
    [(2, 4), (2,)]
    """
    network = _copied(target)
    trained = [each for each in network.parameters() if each.requires_grad]
    found = torch.autograd.grad(F.cross_entropy(network(inputs), labels.long()), trained, allow_unused=True)
    return tuple(torch.zeros_like(own) if each is None else each for own, each in zip(trained, found, strict=True))


def _copied(target: Target) -> nn.Module:
    network = deepcopy(network_of(target)).eval()
    if not any(each.requires_grad for each in network.parameters()):
        raise InvalidInput("target", "has no trained parameters", "there is no gradient")
    return network


def _fitting(gradient: Gradient, network: nn.Module) -> tuple[Tensor, ...]:
    """Return the gradient in the order of the network's trained parameters, in double precision."""
    trained = {name: each for name, each in network.named_parameters() if each.requires_grad}
    if isinstance(gradient, Mapping):
        if set(gradient) != set(trained):
            odd = ", ".join(sorted(set(gradient) ^ set(trained)))
            raise InvalidInput("gradient", f"and the network differ in {odd}", "give one for each trained parameter")
        gradient = [gradient[name] for name in trained]
    found = gradient_tensors(gradient)
    if len(found) != len(trained):
        problem = f"has {len(found)} tensors, and the network {len(trained)} trained parameters"
        raise InvalidInput("gradient", problem, "give one for each")
    for (name, own), each in zip(trained.items(), found, strict=True):
        if own.shape != each.shape:
            problem = f"has the shape {tuple(each.shape)} for {name}, which has {tuple(own.shape)}"
            raise InvalidInput("gradient", problem, "give them in the network's order")
    found = tuple(each.to("cpu", torch.float64) for each in found)
    if not float(squared_norm(found)) > 0:
        raise InvalidInput("gradient", "is zero everywhere", "nothing can be rebuilt from it")
    return found


def _notes(problem: Problem) -> tuple[str, ...]:
    """Run the network once: refuse a shape that it does not take, and report layers whose gradient is not smooth."""
    blank = torch.zeros(problem.examples, *problem.shape, dtype=torch.float64)
    try:
        said = problem.network(blank)
    except (RuntimeError, ValueError, IndexError) as error:
        why = str(error).splitlines()[0]
        raise InvalidInput("shape", f"is {problem.shape}, and the network does not take it: {why}") from error
    seen, waiting, kinks = set(), [said.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            kinks |= {word for word in _KINKED if word in node.name()}
            waiting += [before for before, _ in node.next_functions]
    if not kinks:
        return ()
    where = ", ".join(sorted(kinks))
    return (f"the network has {where}, whose second derivative is zero: searches seldom succeed, and it means little",)
