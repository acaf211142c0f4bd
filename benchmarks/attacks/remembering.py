"""Who was in: an over-fitted network and the same network trained privately, both attacked with 16 shadow models."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import privet
from benchmarks.attacks.speed import network
from privet.attacks import (
    Outcome,
    Pool,
    Shadows,
    blind_baseline,
    confidences,
    limit_of,
    membership,
    memorization,
    shadows,
    target,
)
from privet.attacks.shadows import Bits
from privet.audit import guess_membership, one_run
from privet.core.random import SeededRng
from privet.core.release import Release
from privet.data import Images
from privet.ensemble import Stacked, train
from privet.ensemble.seeding import generator, initial_weights

EXAMPLES, HIDDEN, MODELS, ALARMS, SEED = 5000, 64, 16, 0.01, 0
PLAIN = {"steps": 1200, "batch_size": 64, "learning_rate": 0.003}
EPSILON, DELTA, BATCH, EPOCHS, CLIP, RATE = 2.0, 1e-5, 250, 20, 1.0, 1.0
GUESSES = 500


def membership_part(images: Images, fresh: Images) -> dict[str, Any]:
    """Both models, all attacks."""
    begun = time.perf_counter()
    drawn = np.random.default_rng(SEED)
    chosen = drawn.permutation(len(images.x))[:EXAMPLES]
    rows, labels = _tensors(images, chosen)
    test = _tensors(fresh, np.arange(len(fresh.x)))
    # Each example is in by a fair coin of its own, so that the one-run test of a guarantee is sound.
    pool = Pool(rows, labels, drawn.random(EXAMPLES) < 0.5)
    plain = _plain(pool, test)
    private = _private(pool, test)
    baseline = _row(blind_baseline(pool))
    return {
        "data": f"MNIST, {EXAMPLES} training pictures, each a member by a fair coin: {int(pool.inside.sum())} members",
        "network": f"784-{HIDDEN}-10",
        "shadow_models": MODELS,
        "seed": SEED,
        "blind_baseline": baseline,
        "over_fitted": plain,
        "private": private,
        "seconds": round(time.perf_counter() - begun, 1),
    }


def _plain(pool: Pool, test: tuple[Tensor, Tensor]) -> dict[str, Any]:
    learner = Stacked(network(HIDDEN), **PLAIN, key="target")  # type: ignore[arg-type]
    taught = train(learner, pool.inputs, pool.labels, [np.flatnonzero(pool.inside)], classes=10)
    model = network(HIDDEN)
    model.load_state_dict({name: each[0] for name, each in taught.parameters.items()})  # type: ignore[attr-defined]
    begun = time.perf_counter()
    others = Stacked(network(HIDDEN), **PLAIN)  # type: ignore[arg-type]
    seen = shadows(others, pool.inputs, pool.labels, classes=10, models=MODELS)
    trained = time.perf_counter() - begun
    found = _attacked(model, pool, test, seen)
    scores = memorization(seen, pool.labels.numpy())
    remembered = {
        "share_of_examples_above_a_half": round(float((scores.correctness > 0.5).mean()), 4),
        "mean": round(float(scores.correctness.mean()), 4),
        "median_standard_error": round(float(np.median(scores.correctness_error)), 3),
    }
    return {"training": PLAIN, "shadow_seconds": round(trained, 1), "memorisation": remembered} | found


def _private(pool: Pool, test: tuple[Tensor, Tensor]) -> dict[str, Any]:
    release = _fitted(pool.inputs, pool.labels, pool.inside, "private target", SEED)
    begun = time.perf_counter()
    coins = np.random.default_rng(SEED + 1).random((MODELS // 2, EXAMPLES)) < 0.5
    inside: Bits = np.stack([coins, ~coins], axis=1).reshape(MODELS, EXAMPLES)
    outputs = []
    for number, own in enumerate(inside):
        model = _fitted(pool.inputs, pool.labels, own, f"shadow {number}", SEED + 1 + number).value
        with torch.no_grad():
            outputs.append(model(pool.inputs).double())
    said = torch.stack(outputs)
    seen = Shadows(confidences(said, pool.labels), inside, said.numpy())
    trained = time.perf_counter() - begun
    assert release.guarantee is not None
    limits = {
        "of_the_whole_run": round(limit_of(release.event, release.unit)(ALARMS), 4),
        "of_epsilon_and_delta": round(limit_of(release.guarantee)(ALARMS), 4),
    }
    return {
        "training": {
            "guarantee": str(release.guarantee),
            "batch_size": BATCH,
            "epochs": EPOCHS,
            "clip": CLIP,
            "learning_rate": RATE,
        },
        "shadow_models": "of the private kind: the same plan, on halves of the same examples",
        "shadow_seconds": round(trained, 1),
        f"limit_at_{ALARMS:g}": limits,
    } | _attacked(release.value, pool, test, seen, release)


def _fitted(rows: Tensor, labels: Tensor, inside: Bits, key: str, seed: int) -> Release[nn.Module]:
    own = torch.from_numpy(np.flatnonzero(inside))
    model = network(HIDDEN)
    model.load_state_dict(initial_weights(model, generator("privet", key)))
    plan = privet.DPSGD(
        epsilon=EPSILON, delta=DELTA, clip=CLIP, batch_size=BATCH, epochs=EPOCHS, population=EXAMPLES // 2
    )
    return privet.fit(
        model,
        (rows[own], labels[own]),
        plan,
        loss=lambda output, wanted: F.cross_entropy(output, wanted, reduction="none"),
        optimizer=torch.optim.SGD(model.parameters(), lr=RATE),
        rng=SeededRng(seed),
    )


def _attacked(
    model: nn.Module,
    pool: Pool,
    test: tuple[Tensor, Tensor],
    seen: Shadows,
    release: Release[nn.Module] | None = None,
) -> dict[str, Any]:
    seen_by = target(model, 10)
    accuracy = {
        name: round(100 * float((seen_by.labels(rows) == labels).double().mean()), 2)
        for name, (rows, labels) in {"members": pool.part(members=True), "test": test}.items()
    }
    outcomes = membership(seen_by, pool, seen)
    rows = [_row(each, release) for each in outcomes]
    return {"accuracy": accuracy, "attacks": rows}


def _row(outcome: Outcome, release: Release[nn.Module] | None = None) -> dict[str, Any]:
    hits, auc = outcome.hits(ALARMS), outcome.auc()
    audited = one_run(
        EXAMPLES, *guess_membership(*outcome.coins(), guesses=GUESSES), delta=DELTA, attack=outcome.attack
    )
    row: dict[str, Any] = {
        "attack": outcome.attack,
        f"hits_at_{ALARMS:g}": [round(each, 4) for each in (hits.value, hits.lower, hits.upper)],
        "auc": [round(each, 4) for each in (auc.value, auc.lower, auc.upper)],
        "one_run_epsilon_at_least": round(audited.epsilon, 3),
    }
    if release is not None and release.guarantee is not None:
        row["band_above_the_limit"] = outcome.exceeds(limit_of(release.event, release.unit))
        row["refuted"] = audited.refutes(release.guarantee)
    return row


def _tensors(images: Images, chosen: Any) -> tuple[Tensor, Tensor]:
    rows = torch.from_numpy(images.x[chosen]).flatten(1).float() / 255
    return rows, torch.from_numpy(np.asarray(images.y)[chosen]).long()
