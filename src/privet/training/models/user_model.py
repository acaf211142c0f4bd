"""A model of the user's own, found in a file, with the losses that training asks for."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import torch
from torch import Tensor, nn

from privet.core import InvalidInput
from privet.training.models.linear import task_losses

__all__ = ["UserModel"]


class UserModel(nn.Module):
    """Any module from features to one number for each class, or to one number where there are no classes."""

    def __init__(self, inner: nn.Module, classes: int) -> None:
        super().__init__()
        self.inner, self.classes = inner, classes

    @staticmethod
    def load(place: str, shape: tuple[int, ...], classes: int) -> UserModel:
        """Return the model that `factory(shape, classes)` makes, for a place such as `module.py:factory`.

        The file is executed: it is the user's own code. It receives public values only.

        Args:
            place: Path of the file and name of the function, separated by a colon.
            shape: Shape of one row of features.
            classes: Number of classes; 0 for regression.

        Raises:
            InvalidInput: The file or the function does not exist, or the model does not fit the shape and the classes.
        """
        path, colon, name = place.rpartition(":")
        if not colon or not path.endswith(".py") or not name:
            raise InvalidInput("model", f"is {place!r}", "name a family, or a file and a function: module.py:factory")
        factory = getattr(_module(Path(path)), name, None)
        if not callable(factory):
            raise InvalidInput("model", f"is {place!r}, and the file has no function {name!r}", "check the spelling")
        made = factory(shape, classes)
        if not isinstance(made, nn.Module):
            problem = f"is {place!r}, which made a {type(made).__name__}"
            raise InvalidInput("model", problem, "return a torch.nn.Module")
        own = UserModel(made, classes)
        own.check(place, shape)
        return own

    def check(self, place: str, shape: tuple[int, ...]) -> None:
        """Refuse a model that does not fit, by a trial on two rows of zeros.

        Args:
            place: Path of the file and name of the function, for the message.
            shape: Shape of one row of features.

        Raises:
            InvalidInput: The model fails on such rows, or its output has a wrong shape.
        """
        want = (2, self.classes) if self.classes else (2,)
        with torch.no_grad():
            try:
                found = tuple(self(torch.zeros(2, *shape)).shape)
            except (RuntimeError, TypeError, ValueError, IndexError) as error:
                problem = f"is {place!r}, which fails on rows of shape {shape}: {error}"
                raise InvalidInput("model", problem, "let it take a batch of such rows") from error
        if found != want:
            problem = f"is {place!r}, which makes {found} of two rows, where {want} is wanted"
            raise InvalidInput("model", problem, "return one number for each class, or one for regression")

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs of the user's module.

        Args:
            inputs: Rows of features.

        Returns:
            One score for each row and class, or one prediction for each row.
        """
        found: Tensor = self.inner(inputs)
        return found[:, 0] if not self.classes and found.ndim == 2 else found

    def losses(self, inputs: Tensor, targets: Tensor, pull: float = 0.0) -> Tensor:
        """Return one loss for each row.

        Args:
            inputs: Rows of features.
            targets: Target of each row: a class number, or a number for regression.
            pull: Not used: this model has no center.
        """
        del pull
        return task_losses(self(inputs), targets, self.classes)


def _module(path: Path) -> object:
    if not path.is_file():
        raise InvalidInput("model", f"is in {str(path)!r}, which is no file", "check the path")
    name = f"privet_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidInput("model", f"is in {str(path)!r}, which is no Python file", "end its name in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
