"""What `privet calibrate` is asked for: which number is to be found, and what may stand beside it."""

from __future__ import annotations

from dataclasses import dataclass

from privet.cli import solve
from privet.cli.conditions import drawn_as
from privet.cli.described import Batches, described_batches, run_of, times
from privet.cli.options import FindWord, MechanismWord, SamplingWord
from privet.cli.other_neighbours import advised
from privet.core import checked
from privet.core.errors import InvalidInput
from privet.core.event import RandomizedResponse

__all__ = ["Asked"]

_RUN = ("noise_multiplier", "sample_rate", "batch_size", "population", "epochs", "steps")
_ALREADY = "is given, and it is what shall be found"


@dataclass(frozen=True)
class Asked:
    """Everything that was typed but the target; `None` is what was left out."""

    find: FindWord | None
    noise_multiplier: float | None
    sample_rate: float | None
    batch_size: int | None
    population: int | None
    epochs: float | None
    steps: int | None
    sampling: SamplingWord | None
    mechanism: MechanismWord | None
    answers: int | None
    categories: int | None

    def found(self, target: solve.Target) -> solve.Found:
        """The number that was left out, or an error that says why it cannot be found."""
        return self._in_run(target) if self.mechanism is None else self._in_answers(target, self.mechanism)

    def _in_answers(self, target: solve.Target, mechanism: MechanismWord) -> solve.Found:
        no_place = f"has no place with --mechanism {mechanism.value}"
        self._refuse(_RUN, no_place)
        if self.find not in (None, FindWord.NOISE):
            raise InvalidInput("find", "has no place with --mechanism, which finds its noise", "leave it out")
        self._refuse(("sampling",), no_place)
        if mechanism is not MechanismWord.RANDOMIZED_RESPONSE:
            self._refuse(("categories",), no_place)
        count = checked.count("answers", 1 if self.answers is None else self.answers)
        if mechanism is MechanismWord.GAUSSIAN:
            return solve.gaussian_noise(target, count)
        if mechanism is MechanismWord.LAPLACE:
            return solve.laplace_noise(target, count)
        several = checked.count("categories", 2 if self.categories is None else self.categories, 2)
        with advised(RandomizedResponse(1.0, several)):
            return solve.response(target, count, several)

    def _in_run(self, target: solve.Target) -> solve.Found:
        self._refuse(("answers", "categories"), "has no place in a run", "leave it out, or give --mechanism")
        wanted = self.find or self._left_out()
        if wanted is FindWord.RATE:
            return self._rate(target)
        row = drawn_as(target.unit)
        batches = described_batches(self._drawn, self.sample_rate, self.batch_size, self.population, row)
        return self._noise(target, batches) if wanted is FindWord.NOISE else self._most(target, batches)

    @property
    def _drawn(self) -> SamplingWord:
        return self.sampling or SamplingWord.POISSON

    def _left_out(self) -> FindWord:
        if self.noise_multiplier is None:
            return FindWord.NOISE
        if self._drawn is SamplingWord.POISSON and self.sample_rate is None and self.batch_size is None:
            return FindWord.RATE
        if self.epochs is None and self.steps is None:
            return FindWord.STEPS
        problem = "is given, and so are the batches and the steps: nothing is left to find"
        raise InvalidInput("noise_multiplier", problem, "leave one of them out, or use: privet account")

    def _rate(self, target: solve.Target) -> solve.Found:
        self._refuse(("sample_rate", "batch_size"), _ALREADY)
        if self._drawn is not SamplingWord.POISSON:
            problem = f"is {self._drawn.value}, and a rate is found for poisson alone"
            raise InvalidInput("sampling", problem, "find noise")
        if self.steps is None:
            raise InvalidInput("steps", "is missing; with --epochs it would depend on the rate", "give --steps")
        steps = checked.count("steps", self.steps)
        return solve.rate_of_run(target, self._given_noise(), steps, self.population)

    def _noise(self, target: solve.Target, batches: Batches) -> solve.Found:
        self._refuse(("noise_multiplier",), _ALREADY)
        repetitions = times(batches, self.epochs, self.steps)
        with advised(run_of(batches, 1.0, repetitions.count)):
            return solve.noise_of_run(target, batches, repetitions)

    def _most(self, target: solve.Target, batches: Batches) -> solve.Found:
        self._refuse(("epochs", "steps"), _ALREADY)
        with advised(batches.one(1.0)):
            return solve.most_often(target, batches, self._given_noise())

    def _given_noise(self) -> float:
        if self.noise_multiplier is None:
            raise InvalidInput("noise_multiplier", "is missing", "give it, or find it with --find noise")
        return checked.positive("noise_multiplier", self.noise_multiplier)

    def _refuse(self, names: tuple[str, ...], problem: str, advice: str = "leave it out") -> None:
        for name in names:
            if getattr(self, name) is not None:
                raise InvalidInput(name, problem, advice)
