"""Attacks: what present-day attackers can learn from a release."""

from __future__ import annotations

from privet.attacks.attributes import Attribute, AttributeInference, attributes, infer_attribute
from privet.attacks.blind_baseline import blind_baseline
from privet.attacks.characters import Alphabet, CharacterModel, letter_losses, train_character_model
from privet.attacks.clipbkd import ClipBKD, clipbkd, for_one_record
from privet.attacks.counting import Reals as Reals
from privet.attacks.counting import at_least, at_most
from privet.attacks.counting import checked_scores as checked_scores
from privet.attacks.counting import checked_successes as checked_successes
from privet.attacks.counting import lower_limits as lower_limits
from privet.attacks.extraction import Exposure, Secret, estimate_exposure, exposure, extraction_rate, likeliest
from privet.attacks.guarded_target import GuardedTarget, TooManyQuestions
from privet.attacks.inversion import Descent, Inversion, invert
from privet.attacks.label_only import label_only, noisy_versions
from privet.attacks.likeness import correlation, psnr, ssim
from privet.attacks.linkage import Linkage, LinkedAttribute, link
from privet.attacks.linkage_scoring import LinkageScoring
from privet.attacks.lira import lira
from privet.attacks.loss_threshold import calibrated_loss, loss_threshold
from privet.attacks.matching import DLG, IDLG, Cosine, Reconstruction
from privet.attacks.membership import membership
from privet.attacks.memorization import Memorization, memorization
from privet.attacks.outcome import Band, ConfidenceInterval, Limit, Outcome, limit_of
from privet.attacks.pictures import montage as montage
from privet.attacks.pictures import png as png
from privet.attacks.poisoning import (
    ColumnTrigger,
    PatchTrigger,
    PoisonedData,
    backdoor,
    backdoor_success,
    error_rate,
    flip_labels,
)
from privet.attacks.poisoning_bounds import certified_rows, poisoning_bound
from privet.attacks.pool import Pool, overlapping_rows
from privet.attacks.reconstruction import BitReconstruction, Fit, guess_bound, reconstruct_bits, recovered_bits
from privet.attacks.rmia import rmia
from privet.attacks.row_matching import MISSING as MISSING
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
    "BitReconstruction",
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
    "LinkageScoring",
    "LinkedAttribute",
    "MembershipAttack",
    "Memorization",
    "ModelTarget",
    "Outcome",
    "PatchTrigger",
    "PoisonedData",
    "Pool",
    "Reconstruction",
    "Secret",
    "Shadows",
    "Target",
    "TooManyQuestions",
    "at_least",
    "at_most",
    "attributes",
    "backdoor",
    "backdoor_success",
    "blind_baseline",
    "calibrated_loss",
    "certified_rows",
    "clipbkd",
    "confidences",
    "copy_model",
    "correlation",
    "error_rate",
    "estimate_exposure",
    "exposure",
    "extraction_rate",
    "fidelity",
    "fidelity_curve",
    "flip_labels",
    "for_one_record",
    "guess_bound",
    "infer_attribute",
    "invert",
    "label_only",
    "letter_losses",
    "likeliest",
    "limit_of",
    "link",
    "lira",
    "loss_threshold",
    "losses",
    "membership",
    "memorization",
    "noisy_versions",
    "overlapping_rows",
    "poisoning_bound",
    "psnr",
    "reconstruct_bits",
    "recovered_bits",
    "rmia",
    "shadows",
    "shokri",
    "solve_linear_model",
    "ssim",
    "target",
    "train_character_model",
]
