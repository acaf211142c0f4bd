"""How like pictures are, by the formulas written out; and pictures as files, read by somebody else's decoder."""

from __future__ import annotations

import base64
import io
from math import exp, inf, log10

import numpy as np
import pytest
import torch
from PIL import Image

from privet.attacks.likeness import correlation, psnr, ssim, total_variation
from privet.attacks.pictures import data_uri, montage, png
from privet.core.errors import InvalidInput


def direct(one: np.ndarray, other: np.ndarray, size: int, peak: float) -> float:
    """Wang et al. 2004, equations 13 to 17, window by window."""
    middle = size // 2
    weights = np.array(
        [[exp(-((i - middle) ** 2 + (j - middle) ** 2) / (2 * 1.5**2)) for j in range(size)] for i in range(size)]
    )
    weights /= weights.sum()
    found = []
    for top in range(one.shape[0] - size + 1):
        for left in range(one.shape[1] - size + 1):
            a, b = one[top : top + size, left : left + size], other[top : top + size, left : left + size]
            mean_a, mean_b = (weights * a).sum(), (weights * b).sum()
            var_a, var_b = (weights * (a - mean_a) ** 2).sum(), (weights * (b - mean_b) ** 2).sum()
            both = (weights * (a - mean_a) * (b - mean_b)).sum()
            c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
            light = (2 * mean_a * mean_b + c1) / (mean_a**2 + mean_b**2 + c1)
            found.append(light * (2 * both + c2) / (var_a + var_b + c2))
    return float(np.mean(found))


@pytest.mark.parametrize(("shape", "size", "peak"), [((28, 28), 11, 1.0), ((8, 10), 7, 16.0), ((13, 11), 11, 255.0)])
def test_structural_similarity_is_the_formula(shape: tuple[int, int], size: int, peak: float) -> None:
    """Fails when a constant, the window or a moment is another than the paper's, or the peak is not taken in."""
    drawn = np.random.default_rng(3)
    one = peak * drawn.random(shape)
    other = np.clip(one + 0.2 * peak * drawn.normal(size=shape), 0, peak)
    assert ssim(one, other, peak=peak) == pytest.approx(direct(one, other, size, peak), abs=1e-12)
    assert ssim(one, other, peak=peak) == pytest.approx(ssim(other, one, peak=peak))
    assert ssim(np.stack([one, one]), np.stack([one, other]), peak=peak) == pytest.approx(
        (1 + ssim(one, other, peak=peak)) / 2
    )


def test_signal_to_noise_and_correlation() -> None:
    """Fails when the logarithm, the root or the centring is left out."""
    drawn = np.random.default_rng(4)
    one, other = drawn.random((6, 5)), drawn.random((6, 5))
    assert psnr(one, other) == pytest.approx(-10 * log10(((one - other) ** 2).mean()))
    assert psnr(255 * one, 255 * other, peak=255) == pytest.approx(psnr(one, other))
    assert psnr(one, one) == inf
    assert correlation(one, other) == pytest.approx(np.corrcoef(one.ravel(), other.ravel())[0, 1])
    assert correlation(one, np.ones((6, 5))) == 0


def test_total_variation_is_that_of_neighbours() -> None:
    """Fails when a direction is forgotten: stripes and their transpose differ in one direction only."""
    stripes = torch.tensor([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    assert total_variation(stripes).item() == total_variation(stripes.T).item() == 1.0
    assert total_variation(torch.eye(2)).item() == 2.0


def test_files_hold_the_pixels() -> None:
    """Fails when a checksum, a length or the order of colours is wrong: Pillow reads what was written."""
    grey = np.arange(12).reshape(3, 4) / 11
    read = np.asarray(Image.open(io.BytesIO(png(grey))))
    assert (read == np.round(255 * grey)).all()
    colours = np.stack([grey, 1 - grey, np.zeros((3, 4))])
    read = np.asarray(Image.open(io.BytesIO(png(colours, scale=2))))
    assert read.shape == (6, 8, 3)
    assert (read[::2, ::2] == np.round(255 * np.moveaxis(colours, 0, -1))).all()
    wild = np.asarray(Image.open(io.BytesIO(png(torch.tensor([[[float("nan"), -1.0, 2.0]]])))))
    assert wild.tolist() == [[0, 0, 255]]
    assert base64.b64decode(data_uri(png(grey)).split(",")[1]) == png(grey)


def test_a_montage_puts_pictures_in_their_places() -> None:
    """Fails when rows and columns are exchanged, or the gap is not between pictures."""
    whole = montage([[np.zeros((2, 3)), np.full((2, 3), 0.5)], [np.full((2, 3), 0.25)]], gap=1)
    assert whole.shape == (5, 7)
    assert (whole[:2, :3] == 0).all()
    assert (whole[:2, 4:] == 0.5).all()
    assert (whole[3:, :3] == 0.25).all()
    assert (whole[2] == 1).all()
    assert (whole[3:, 4:] == 1).all()


def test_what_is_no_picture_is_refused() -> None:
    """Fails when other shapes or NaN give a number."""
    with pytest.raises(InvalidInput, match=r"pictures have the shapes \(4, 4\) and \(4, 5\)"):
        ssim(np.zeros((4, 4)), np.zeros((4, 5)))
    with pytest.raises(InvalidInput, match="pictures hold NaN"):
        psnr(np.full((4, 4), np.nan), np.zeros((4, 4)))
    with pytest.raises(InvalidInput, match=r"picture has the shape \(2, 4, 4\)"):
        png(np.zeros((2, 4, 4)))
    with pytest.raises(InvalidInput, match="rows have pictures of 2 shapes"):
        montage([[np.zeros((2, 2)), np.zeros((3, 3))]])
