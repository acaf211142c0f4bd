"""Attacks: what somebody of today can find out from what was released."""

from __future__ import annotations

from privet.attacks.attributes import Attribute, AttributeInference, attributes, infer_attribute
from privet.attacks.blind import blind
from privet.attacks.certified import certified_rows, poisoned_at_most
from privet.attacks.characters import Alphabet, CharacterModel, learn, letter_losses
from privet.attacks.clipbkd import ClipBKD, clipbkd, for_one_record
from privet.attacks.counting import at_least, at_most
from privet.attacks.extraction import Exposure, Secret, estimate_exposure, exposure, extraction_rate, likeliest
from privet.attacks.guarded_target import GuardedTarget, TooManyQuestions
from privet.attacks.inversion import Descent, Inversion, invert
from privet.attacks.label_only import label_only, noisy_versions
from privet.attacks.likeness import correlation, psnr, ssim
from privet.attacks.linkage import Linkage, LinkedAttribute, link
from privet.attacks.lira import lira
from privet.attacks.loss_threshold import calibrated_loss, loss_threshold
from privet.attacks.matching import DLG, IDLG, Cosine, Reconstruction
from privet.attacks.membership import membership
from privet.attacks.memorization import Memorization, memorization
from privet.attacks.outcome import Band, ConfidenceInterval, Limit, Outcome, limit_of
from privet.attacks.poisoning import (
    ColumnTrigger,
    PatchTrigger,
    PoisonedData,
    backdoor,
    backdoor_success,
    flip_labels,
    mistakes,
)
from privet.attacks.pool import Pool, twins
from privet.attacks.reconstruction import Fit, Rebuilt, bits_found, rebuild, right_at_most
from privet.attacks.rmia import rmia
from privet.attacks.scoring import Scored
from privet.attacks.shadows import Shadows, confidences, shadows
from privet.attacks.shokri import shokri
from privet.attacks.stealing import (
    CopyTraining,
    FidelityCurve,
    copy_model,
    fidelity,
    fidelity_curve,
    solve_linear_model,
)
from privet.attacks.table import MEMBERSHIP_ATTACKS, MembershipAttack
from privet.attacks.target import Access, ModelTarget, Target, losses, target
from privet.attacks.view import AttackerView

__all__ = [
    "DLG",
    "IDLG",
    "MEMBERSHIP_ATTACKS",
    "Access",
    "Alphabet",
    "AttackerView",
    "Attribute",
    "AttributeInference",
    "Band",
    "CharacterModel",
    "ClipBKD",
    "ColumnTrigger",
    "ConfidenceInterval",
    "CopyTraining",
    "Cosine",
    "Descent",
    "Exposure",
    "FidelityCurve",
    "Fit",
    "GuardedTarget",
    "Inversion",
    "Limit",
    "Linkage",
    "LinkedAttribute",
    "MembershipAttack",
    "Memorization",
    "ModelTarget",
    "Outcome",
    "PatchTrigger",
    "PoisonedData",
    "Pool",
    "Rebuilt",
    "Reconstruction",
    "Scored",
    "Secret",
    "Shadows",
    "Target",
    "TooManyQuestions",
    "at_least",
    "at_most",
    "attributes",
    "backdoor",
    "backdoor_success",
    "bits_found",
    "blind",
    "calibrated_loss",
    "certified_rows",
    "clipbkd",
    "confidences",
    "copy_model",
    "correlation",
    "estimate_exposure",
    "exposure",
    "extraction_rate",
    "fidelity",
    "fidelity_curve",
    "flip_labels",
    "for_one_record",
    "infer_attribute",
    "invert",
    "label_only",
    "learn",
    "letter_losses",
    "likeliest",
    "limit_of",
    "link",
    "lira",
    "loss_threshold",
    "losses",
    "membership",
    "memorization",
    "mistakes",
    "noisy_versions",
    "poisoned_at_most",
    "psnr",
    "rebuild",
    "right_at_most",
    "rmia",
    "shadows",
    "shokri",
    "solve_linear_model",
    "ssim",
    "target",
    "twins",
]
