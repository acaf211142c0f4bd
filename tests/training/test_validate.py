"""What is refused before a step, held against what torch really does with the same objects."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import distribute_module
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parametrizations

from privet.core.errors import InvalidInput
from privet.training.validate import ModelFinding, Severity, check, listing, require, running_statistics


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1)


def found(kind: Severity, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> list[ModelFinding]:
    return [each for each in check(model, optimizer or sgd(model)) if each.kind is kind]


def refusals(model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> list[ModelFinding]:
    return found(Severity.REFUSAL, model, optimizer)


def notes(model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> list[ModelFinding]:
    return found(Severity.NOTE, model, optimizer)


def only(findings: list[ModelFinding]) -> ModelFinding:
    assert len(findings) == 1, [str(each) for each in findings]
    return findings[0]


# --- Layers that normalise, in every mode they have --------------------------------------------------------------


def no_longer_tracking(norm: nn.Module) -> nn.Module:
    vars(norm)["track_running_stats"] = False
    return norm


class Mine(nn.BatchNorm2d):
    """A BatchNorm by another name."""


NORMS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "batch 1d": (lambda: nn.BatchNorm1d(6), (4, 6)),
    "batch 2d": (lambda: nn.BatchNorm2d(6), (4, 6, 3, 3)),
    "batch 3d": (lambda: nn.BatchNorm3d(6), (4, 6, 2, 2, 2)),
    "batch, cumulative": (lambda: nn.BatchNorm1d(6, momentum=None), (4, 6)),
    "batch, momentum 0": (lambda: nn.BatchNorm1d(6, momentum=0.0), (4, 6)),
    "batch, untracked": (lambda: nn.BatchNorm1d(6, track_running_stats=False), (4, 6)),
    "batch, no longer tracking": (lambda: no_longer_tracking(nn.BatchNorm1d(6)), (4, 6)),
    "batch, subclass": (lambda: Mine(6), (4, 6, 3, 3)),
    "batch, synchronised": (lambda: nn.SyncBatchNorm(6), (4, 6, 3)),
    "instance": (lambda: nn.InstanceNorm1d(6), (4, 6, 5)),
    "instance, tracking": (lambda: nn.InstanceNorm2d(6, track_running_stats=True), (4, 6, 3, 3)),
    "instance, no longer tracking": (
        lambda: no_longer_tracking(nn.InstanceNorm1d(6, track_running_stats=True)),
        (4, 6, 5),
    ),
    "group": (lambda: nn.GroupNorm(3, 6), (4, 6, 3, 3)),
    "layer": (lambda: nn.LayerNorm(6), (4, 6)),
    "RMS": (lambda: nn.RMSNorm(6), (4, 6)),
    "local response": (lambda: nn.LocalResponseNorm(2), (4, 6, 3, 3)),
}


def leaks(norm: nn.Module, shape: tuple[int, ...]) -> bool:
    """Whether one example's output, or a buffer, depends on another example: by trying it."""
    rows = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    changed = rows.clone()
    changed[1] = 3 * changed[1] + 1
    one, other = copy.deepcopy(norm), copy.deepcopy(norm)
    outputs = one(rows)[0], other(changed)[0]
    same_buffers = all(torch.equal(a, b) for a, b in zip(one.buffers(), other.buffers(), strict=True))
    return not (torch.equal(*outputs) and same_buffers)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", NORMS)
def test_refuses_exactly_the_norms_that_mix_or_remember_examples(name: str, training: bool) -> None:
    """Catches a rule that goes by class or by mode alone.

    BatchNorm without running statistics mixes in eval mode, too; InstanceNorm whose tracking was switched off goes on
    writing its buffers; frozen BatchNorm is harmless (opacus#315) and must not be refused.
    """
    make, shape = NORMS[name]
    norm = make().train(training)
    assert (running_statistics(norm) is not None) == leaks(norm, shape)
    model = nn.Sequential(nn.Linear(2, 2), nn.ModuleDict({"inner": norm}))
    assert [each.path for each in refusals(model)] == ["1.inner"] * leaks(norm, shape)


def test_says_when_eval_would_not_help() -> None:
    """Catches the advice `.eval()` for a layer that goes on mixing examples in eval mode."""
    assert "or, if its running statistics are public, freeze" in only(refusals(nn.BatchNorm1d(3))).fix
    untracked = only(refusals(nn.BatchNorm1d(3, track_running_stats=False).eval()))
    assert ".eval() does not help" in untracked.fix
    assert all("replace_batchnorm(model)" in each.fix for each in refusals(nn.BatchNorm1d(3)))


class HomeMade(nn.Module):
    """BatchNorm written by hand, with torch's names for the buffers."""

    def __init__(self, *buffers: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        for name in buffers:
            self.register_buffer(name, torch.zeros(3))


def test_running_statistics_of_other_peoples_layers() -> None:
    """Catches home-made BatchNorm passing, and detection models' frozen BatchNorm (no counter) being refused."""
    counting = HomeMade("running_mean", "running_var", "num_batches_tracked")
    assert "num_batches_tracked" in only(refusals(counting)).problem
    assert not refusals(counting.eval())
    assert not refusals(HomeMade("running_mean", "running_var"))


def test_power_iteration_is_no_running_statistic() -> None:
    """Catches refusing every module that writes a buffer in its forward: spectral norm's follow from the weights."""
    for model in (parametrizations.spectral_norm(nn.Linear(4, 3)), parametrizations.weight_norm(nn.Linear(4, 3))):
        assert check(model, sgd(model)) == ()


# --- Embeddings --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
@pytest.mark.parametrize("frozen", [True, False])
def test_refuses_max_norm_because_it_writes_the_weights(kind: type[nn.Embedding], frozen: bool) -> None:
    """Catches a rule that looks at trainable or training-mode embeddings only: torch rescales frozen ones, too."""
    table = kind(5, 3, max_norm=0.1).eval().requires_grad_(not frozen)
    before = table.weight.detach().clone()
    table(torch.tensor([[1, 2]]))
    assert not torch.equal(table.weight, before)
    model = nn.Sequential(table, nn.Linear(3, 1))
    assert "max_norm" in only(refusals(model)).problem


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_refuses_gradients_scaled_by_counts_of_the_batch(kind: type[nn.Embedding]) -> None:
    """Catches scale_grad_by_freq passing: the gradient of one example changes with what the others look up."""
    table = kind(5, 3, scale_grad_by_freq=True)

    def first_gradient(rows: torch.Tensor) -> torch.Tensor:
        (gradient,) = torch.autograd.grad(table(rows)[0].sum(), table.weight)
        return gradient

    assert not torch.equal(first_gradient(torch.tensor([[1], [2]])), first_gradient(torch.tensor([[1], [1]])))
    model = nn.Sequential(table, nn.Linear(3, 1))
    assert "scale_grad_by_freq" in only(refusals(model)).problem
    table.requires_grad_(False)
    assert not refusals(model)


def test_sparse_embedding_is_a_note() -> None:
    """Catches refusing a model that trains well, and staying silent about an option without effect."""
    model = nn.Embedding(5, 3, sparse=True)
    assert not refusals(model)
    assert "sparse=True" in only(notes(model)).problem


# --- Parameters --------------------------------------------------------------------------------------------------


def one_parameter(value: torch.Tensor, requires_grad: bool = True) -> nn.Linear:
    """A layer with one parameter more, called `extra`."""
    model = nn.Linear(2, 2)
    model.register_parameter("extra", nn.Parameter(value, requires_grad=requires_grad))
    return model


ODD = {
    "torch.autocast": torch.zeros(3, dtype=torch.float16),
    "keep the weights in float32": torch.zeros(3, dtype=torch.float8_e4m3fn),
    "real and imaginary parts": torch.zeros(3, dtype=torch.complex64),
    "to_dense()": torch.eye(3).to_sparse(),
    "a real device": torch.zeros(3, device="meta"),
}
"""Odd tensors, each under a phrase of the fix for it."""


@pytest.mark.parametrize("name", ODD)
def test_refuses_parameters_without_exact_private_gradients(name: str) -> None:
    """Catches float16 noise lost to rounding, and types that the engine would fail on in the middle of a run.

    Frozen and outside the optimizer the same tensor is a constant, as under an adapter: it must pass.
    """
    model = one_parameter(ODD[name])
    assert name in only([each for each in refusals(model) if each.path == "extra"]).fix
    frozen = one_parameter(ODD[name], requires_grad=False)
    assert not refusals(frozen, torch.optim.SGD([frozen.weight, frozen.bias], lr=0.1))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_accepts_the_types_that_noise_survives_in(dtype: torch.dtype) -> None:
    """Catches a rule that lets float32 alone pass."""
    model = nn.Linear(2, 2, dtype=dtype)
    assert check(model, sgd(model)) == ()


def test_whole_numbers_may_be_kept_but_not_trained() -> None:
    """Catches integer weights in the optimizer, which would quietly stay as they are."""
    model = one_parameter(torch.zeros(3, dtype=torch.int64), requires_grad=False)
    assert only(refusals(model)).path == "extra"
    assert not refusals(model, torch.optim.SGD([model.weight, model.bias], lr=0.1))


def test_an_odd_parameter_that_nobody_trains_should_be_frozen() -> None:
    """Catches advice to convert a weight that is only forgotten."""
    model = one_parameter(ODD["torch.autocast"])
    optimizer = torch.optim.SGD([model.weight, model.bias], lr=0.1)
    assert only(refusals(model, optimizer)).fix.startswith("freeze it with requires_grad_(False)")


def test_refuses_several_devices() -> None:
    """Catches a model spread over devices, whose norms could not be added; frozen parts may live elsewhere."""
    model = one_parameter(ODD["a real device"])
    spread = next(each for each in refusals(model) if each.path == "")
    assert "weight on cpu" in spread.problem
    assert "extra on meta" in spread.problem
    elsewhere = one_parameter(ODD["a real device"], requires_grad=False)
    assert not refusals(elsewhere, torch.optim.SGD([elsewhere.weight], lr=0.1))


@pytest.mark.parametrize(
    "lazy",
    [
        lambda: nn.LazyLinear(3),
        lambda: nn.LazyBatchNorm1d(affine=False),
        lambda: nn.LazyInstanceNorm2d(track_running_stats=True).eval(),
    ],
)
def test_refuses_modules_without_a_shape(lazy: Callable[[], nn.Module]) -> None:
    """Catches lazy modules, those with shapeless buffers only included; and a check that crashes on them."""
    model = nn.Sequential(nn.Linear(2, 2), lazy())
    shapeless = [each for each in refusals(model) if "without a shape" in each.problem]
    assert only(shapeless).path == "1"


# --- Wrappers ----------------------------------------------------------------------------------------------------


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))


def compiled(model: nn.Module) -> nn.Module:
    result = torch.compile(model, backend="eager")
    assert isinstance(result, nn.Module)
    return result


def inner_compiled(model: nn.Sequential) -> nn.Module:
    model[2].compile(backend="eager")
    return model


def forward_compiled(model: nn.Sequential) -> nn.Module:
    model[2].forward = torch.compile(model[2].forward, backend="eager")
    return model


def sharded(model: nn.Module) -> nn.Module:
    fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
    return model


def traced(model: nn.Module) -> nn.Module:
    result: nn.Module = torch.jit.trace(model, torch.zeros(1, 2))  # type: ignore[no-untyped-call]
    return result


class Sharing(DistributedDataParallel):
    """A user's subclass of a wrapper."""


WRAPPED: dict[str, tuple[Callable[[nn.Sequential], nn.Module], str, str]] = {
    "torch.compile": (compiled, "", "torch.compile"),
    "Module.compile": (inner_compiled, "2", "torch.compile"),
    "forward": (forward_compiled, "2", "torch.compile"),
    "DataParallel": (nn.DataParallel, "", "plain model"),
    "DDP": (DistributedDataParallel, "", "torchrun"),
    "DDP subclass": (Sharing, "", "torchrun"),
    "FSDP": (lambda model: FullyShardedDataParallel(model, device_id=torch.device("cpu")), "", "FSDP"),
    "fully_shard": (sharded, "", "FSDP"),
    "script": (torch.jit.script, "", "TorchScript"),
    "trace": (traced, "", "TorchScript"),
    "quantisation": (lambda model: nn.Sequential(torch.ao.quantization.QuantStub(), model), "0", "post-processing"),
}


@pytest.fixture
def one_process() -> Iterator[None]:
    store = dist.HashStore()  # type: ignore[attr-defined]
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


# torch has warnings of its own for TorchScript, FSDP on a CPU and its compiler's imports.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("name", WRAPPED)
def test_refuses_wrapped_models_by_name_with_the_fix(name: str) -> None:
    """Catches a wrapper of torch's (as torch makes it, not a stand-in) getting through, or only its inside named."""
    wrap, path, word = WRAPPED[name]
    model = wrap(network())
    wrapped = [each for each in refusals(model) if word in str(each)]
    assert only(wrapped).path == path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("one_process")
def test_refuses_distributed_tensors() -> None:
    """Catches tensor-parallel parameters, which no module in the model gives away."""
    model = distribute_module(nn.Linear(2, 2), init_device_mesh("cpu", (1,)))
    assert [each.path for each in refusals(model) if "DTensor" in each.problem] == ["weight", "bias"]


@pytest.mark.filterwarnings("ignore")
def test_refuses_opacus_models_and_optimizers() -> None:
    """Catches clipping and noise applied twice, by two libraries."""
    opacus = pytest.importorskip("opacus")
    wrapped = opacus.GradSampleModule(network())
    assert "Opacus" in only(refusals(wrapped)).problem
    model = network()
    noisy = opacus.optimizers.DPOptimizer(sgd(model), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=4)
    assert "a second time" in only(refusals(model, noisy)).problem


def test_checkpoint_wrapper_is_not_taken_for_sharding() -> None:
    """Catches a rule on everything under torch.distributed: activation checkpointing lives there and shares nothing."""
    model = nn.Sequential(checkpoint_wrapper(nn.Linear(2, 2)))
    assert check(model, sgd(model)) == ()


# --- Optimizers --------------------------------------------------------------------------------------------------


def test_refuses_an_optimizer_of_another_model() -> None:
    """Catches the copy that is trained while the other is clipped (opacus#313), also if it is one parameter of many."""
    model = network()
    whole = only(refusals(model, sgd(copy.deepcopy(model))))
    assert whole.path == "optimizer"
    assert "4 of its 4" in whole.problem
    temperature = nn.Parameter(torch.ones(7))
    part = only(refusals(model, torch.optim.SGD([*model.parameters(), temperature], lr=0.1)))
    assert "1 of its 5" in part.problem
    assert "(7,)" in part.problem


def test_refuses_a_parameter_held_twice() -> None:
    """Catches two groups that move one weight twice for one noisy gradient."""
    model = network()
    optimizer = sgd(model)
    optimizer.param_groups.append({**optimizer.param_groups[0], "params": [model[0].weight]})
    assert "0.weight twice" in only(refusals(model, optimizer)).problem


def test_refuses_nothing_to_train() -> None:
    """Catches a run that spends its budget on a frozen model."""
    model = network().requires_grad_(False)
    assert "no parameter that can be trained" in only(refusals(model)).problem


class Demanding(torch.optim.SGD):
    """Somebody's optimizer that cannot do without a closure."""

    def step(self, closure: Callable[[], float]) -> float:  # type: ignore[override]
        return closure()


@pytest.mark.parametrize("make", [torch.optim.LBFGS, Demanding])
def test_refuses_optimizers_that_ask_for_the_loss_again(make: type[torch.optim.SGD]) -> None:
    """Catches private rows read inside `step`, beyond what was accounted; by signature, not by name only."""
    model = network()
    assert "closure" in only(refusals(model, make(model.parameters()))).problem


def test_refuses_sparse_adam() -> None:
    """Catches an optimizer that fails at its first dense gradient, after the data were read."""
    model = network()
    assert "torch.optim.Adam" in only(refusals(model, torch.optim.SparseAdam(model.parameters()))).fix


@pytest.mark.parametrize(
    "make", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad]
)
def test_accepts_ordinary_training(make: type[torch.optim.SGD]) -> None:
    """Catches needless refusals and notes: tied weights, a schedule (which wraps `step`), two groups."""
    table, norm, out = nn.Embedding(5, 3), nn.LayerNorm(3), nn.Linear(3, 5, bias=False)
    out.weight = table.weight
    model = nn.Sequential(table, norm, out)
    groups: list[dict[str, Any]] = [{"params": table.parameters()}, {"params": norm.parameters(), "lr": 0.2}]
    optimizer = make(groups, lr=0.1)
    torch.optim.lr_scheduler.ConstantLR(optimizer)
    optimizer.state.clear()  # Adagrad fills its state when it is made
    assert check(model, optimizer) == ()
    require(model, optimizer)


# --- Notes, and how all of it is told ----------------------------------------------------------------------------


def test_notes_what_is_sound_but_perhaps_not_meant() -> None:
    """Catches notes that are missing, in the wrong place, or turned into refusals."""
    model = network()
    optimizer = torch.optim.SGD(list(model.parameters())[:3], lr=0.1, momentum=0.9)
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    model[2].weight.grad = torch.ones(1, 3)
    model[0].weight.requires_grad_(False)
    model.eval()
    told = {each.path: each.problem for each in notes(model, optimizer)}
    assert told.keys() == {"", "0.weight", "2.weight", "2.bias", "optimizer"}
    assert "eval mode" in told[""]
    assert "frozen" in told["0.weight"]
    assert "already has a .grad" in told["2.weight"]
    assert "no group" in told["2.bias"]
    assert "history" in told["optimizer"]
    assert not refusals(model, optimizer)
    require(model, optimizer)


def test_one_error_tells_everything() -> None:
    """Catches an error that stops at the first trouble, or leaves out the place, the reason or the fix."""
    model = nn.ModuleDict({
        "a": nn.BatchNorm1d(3),
        "b": nn.BatchNorm1d(3),
        "c": nn.Embedding(2, 3, max_norm=1.0),
        "d": nn.Linear(2, 2, dtype=torch.float16),
    })  # fmt: skip
    optimizer = torch.optim.LBFGS(model.parameters())
    with pytest.raises(InvalidInput) as caught:
        require(model, optimizer)
    told = str(caught.value)
    expected = refusals(model, optimizer)
    assert {each.path for each in expected} == {"a", "b", "c", "d.weight", "d.bias", "optimizer"}
    for each in expected:
        assert each.problem in told
        assert each.fix in told
    assert "- a, b: BatchNorm1d" in told
    assert "- d.weight, d.bias: " in told
    assert caught.value.argument == "model"
    with pytest.raises(InvalidInput, match=r"^optimizer cannot"):
        require(network(), sgd(network()))


def test_root_has_a_name() -> None:
    """Catches a line that begins with nothing where the model itself is the trouble."""
    assert str(only(refusals(nn.BatchNorm1d(3)))).startswith("the model: BatchNorm1d")
    assert listing(refusals(nn.BatchNorm1d(3))).startswith("- the model: BatchNorm1d")


def test_checking_changes_nothing() -> None:
    """Catches a check that runs the model, draws random numbers, or touches modes, gradients and state."""
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout())
    optimizer = torch.optim.Adam(model.parameters())
    before, drawn = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    calls: list[str] = []
    model.register_forward_pre_hook(lambda *_: calls.append("forward"))
    check(model, optimizer)
    assert calls == []
    assert torch.equal(drawn, torch.get_rng_state())
    assert len(optimizer.state) == 0
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(module.training for module in model.modules())


def test_takes_a_model_and_an_optimizer() -> None:
    """Catches an AttributeError deep inside for arguments in the wrong order."""
    model = network()
    with pytest.raises(InvalidInput, match=r"^model is a SGD"):
        check(sgd(model), model)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"^optimizer is a generator"):
        check(model, model.parameters())  # type: ignore[arg-type]
