"""Attacks: what somebody of today can find out from what was released."""

from __future__ import annotations

from privet.attacks.attributes import Attribute, AttributeInference, attributes, inferred
from privet.attacks.blind import blind
from privet.attacks.certified import certified_rows, poisoned_at_most
from privet.attacks.characters import Alphabet, CharacterModel, learn, letter_losses
from privet.attacks.clipbkd import ClipBKD, clipbkd, for_one_record
from privet.attacks.counting import at_least, at_most
from privet.attacks.extraction import Exposure, Secret, exposure, exposure_estimated, likeliest, written
from privet.attacks.guarded import Guarded, TooManyQuestions
from privet.attacks.inversion import Descent, Inversion, invert
from privet.attacks.label_only import label_only, noisy_versions
from privet.attacks.likeness import correlation, psnr, ssim
from privet.attacks.linkage import Linkage, LinkedAttribute, link
from privet.attacks.lira import lira
from privet.attacks.loss_threshold import calibrated, loss_threshold
from privet.attacks.matching import DLG, IDLG, Cosine, Reconstruction
from privet.attacks.membership import membership
from privet.attacks.memorisation import Memorisation, memorisation
from privet.attacks.outcome import Band, ConfidenceInterval, Limit, Outcome, limit_of
from privet.attacks.poisoning import (
    ColumnTrigger,
    PatchTrigger,
    Poisoned,
    backdoor,
    backdoor_success,
    flipped,
    mistakes,
)
from privet.attacks.pool import Pool, twins
from privet.attacks.reconstruction import Fit, Rebuilt, bits_found, rebuild, right_at_most
from privet.attacks.rmia import rmia
from privet.attacks.scoring import Scored
from privet.attacks.shadows import Shadows, confidences, shadows
from privet.attacks.shokri import shokri
from privet.attacks.stealing import CopyTraining, FidelityCurve, copied, fidelity, fidelity_curve, solved
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
    "Guarded",
    "Inversion",
    "Limit",
    "Linkage",
    "LinkedAttribute",
    "MembershipAttack",
    "Memorisation",
    "ModelTarget",
    "Outcome",
    "PatchTrigger",
    "Poisoned",
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
    "calibrated",
    "certified_rows",
    "clipbkd",
    "confidences",
    "copied",
    "correlation",
    "exposure",
    "exposure_estimated",
    "fidelity",
    "fidelity_curve",
    "flipped",
    "for_one_record",
    "inferred",
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
    "memorisation",
    "mistakes",
    "noisy_versions",
    "poisoned_at_most",
    "psnr",
    "rebuild",
    "right_at_most",
    "rmia",
    "shadows",
    "shokri",
    "solved",
    "ssim",
    "target",
    "twins",
    "written",
]
