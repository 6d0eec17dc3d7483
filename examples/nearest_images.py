"""Draw images along named dimensions, before and after alignment: discs, encoded by a network without training.

The discs differ in colour, size and number, which are correlated, and in place and background, which are no covariates.
The encoder is a fixed two-layer convolutional network with random filters. It replaces a pretrained encoder and needs
no download. All results are for images that were not fitted.

python examples/nearest_images.py --out docs/img
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import covalign as ca

SIDE, N, SHOWN = 32, 3000, 9
NAMES = ["redness", "size", "count"]
CORRELATION = np.array([[1, 0.5, 0.2], [0.5, 1, 0.6], [0.2, 0.6, 1]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo_output"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    images, Y = draw(np.random.default_rng(0), N)
    Z = encode(images)
    fitted, others = np.arange(N) < N // 2, np.arange(N) >= N // 2
    aligner = ca.LatentAligner(regime="exclusive").fit(Z[fitted], Y[fitted])
    seen, truth = images[others], Y[others].reset_index(drop=True)
    raw = best_dimensions(Z[fitted], Y[fitted])
    before = pd.DataFrame(Z[others][:, raw], columns=NAMES)
    regimes = {
        "before: best raw dimension": before,
        **{regime: named(aligner.at(regime=regime), Z[others]) for regime in ("strongest", "independent", "exclusive")},
    }
    for title, values in regimes.items():
        print(f"\n{title}: correlation of each dimension (row) with each covariate (column), held out")
        print(correlations(values, truth).round(2).to_string())
    pairs = {f"{name}\n{when}": (values[name], seen) for name in NAMES for when, values in paired(regimes)}
    strips(pairs, truth, out / "nearest_images.png")
    by_regime = {f"size\n{title.split(':')[0]}": (values["size"], seen) for title, values in regimes.items()}
    strips(by_regime, truth, out / "nearest_regimes.png")


def paired(regimes: dict[str, pd.DataFrame]) -> list[tuple[str, pd.DataFrame]]:
    return [("before", regimes["before: best raw dimension"]), ("after", regimes["independent"])]


def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, pd.DataFrame]:
    """n pictures (n x 32 x 32 x 3, in [0, 1]) of discs, and what they were drawn from."""
    wanted = rng.multivariate_normal(np.zeros(3), CORRELATION, n)
    redness = 1 / (1 + np.exp(-1.5 * wanted[:, 0]))
    radius = 2.2 + 2.6 / (1 + np.exp(-1.2 * wanted[:, 1]))
    count = np.clip(np.round(3 + 1.2 * wanted[:, 2]), 1, 6).astype(int)
    images = np.empty((n, SIDE, SIDE, 3))
    for i in range(n):
        images[i] = picture(rng, redness[i], radius[i], count[i])
    return images, pd.DataFrame({"redness": redness, "size": radius, "count": count.astype(float)})


def picture(rng: np.random.Generator, redness: float, radius: float, count: int) -> np.ndarray:
    """Discs of one colour (blue to red) at random places, on a grey of random shade."""
    y, x = np.mgrid[:SIDE, :SIDE] + 0.5
    image = np.full((SIDE, SIDE, 3), rng.uniform(0.55, 0.95))
    for centre_x, centre_y in places(rng, radius, count):
        # Edges fade over a pixel, so that a small change of size is a small change of the picture.
        inside = np.clip(radius + 0.5 - np.hypot(x - centre_x, y - centre_y), 0, 1)[..., None]
        image = (1 - inside) * image + inside * np.array([redness, 0.15, 1 - redness])
    return np.clip(image + 0.02 * rng.standard_normal(image.shape), 0, 1)


def places(rng: np.random.Generator, radius: float, count: int) -> list[np.ndarray]:
    """Centres at least two radii apart, as far as that is to be had."""
    centres: list[np.ndarray] = []
    for _ in range(200):
        if len(centres) == count:
            break
        new = rng.uniform(radius + 0.5, SIDE - radius - 0.5, 2)
        if all(np.hypot(*(new - old)) > 2 * radius + 0.5 for old in centres):
            centres.append(new)
    return centres


def encode(images: np.ndarray) -> np.ndarray:
    """Two convolutions with random filters, ReLU after each, then means over a 3 x 3 grid: 432 numbers a picture."""
    rng = np.random.default_rng(1)
    hidden = images - 0.5
    for filters, side in ((24, 5), (48, 3)):
        weights = rng.standard_normal((side * side * hidden.shape[-1], filters))
        weights /= np.linalg.norm(weights, axis=0)
        hidden = np.maximum(convolve(hidden, weights, side), 0)
    blocks = hidden.reshape(len(hidden), 3, 2, 3, 2, -1)
    return blocks.mean(axis=(2, 4)).reshape(len(images), -1)


def convolve(images: np.ndarray, weights: np.ndarray, side: int) -> np.ndarray:
    """Every second patch of ``side`` x ``side``, times the filters."""
    windows = np.lib.stride_tricks.sliding_window_view(images, (side, side), axis=(1, 2))[:, ::2, ::2]
    n, rows, columns = windows.shape[:3]
    return windows.reshape(n, rows, columns, -1) @ weights


def best_dimensions(Z: np.ndarray, Y: pd.DataFrame) -> list[int]:
    """For each covariate the dimension of Z that correlates with it most."""
    correlation = np.corrcoef(Z.T, Y.T)[: Z.shape[1], Z.shape[1] :]
    return [int(np.argmax(np.abs(np.nan_to_num(column)))) for column in correlation.T]


def named(aligner: ca.LatentAligner, Z: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(aligner.transform(Z), columns=NAMES)


def correlations(values: pd.DataFrame, Y: pd.DataFrame) -> pd.DataFrame:
    both = np.corrcoef(values.T, Y.T)[: len(NAMES), len(NAMES) :]
    return pd.DataFrame(both, index=NAMES, columns=NAMES)


def strips(rows: dict[str, tuple[pd.Series, np.ndarray]], Y: pd.DataFrame, path: Path) -> None:
    """A line of pictures a dimension: those nearest to evenly spaced values between its 2 % and 98 % quantiles."""
    figure, axes = plt.subplots(len(rows), SHOWN, figsize=(SHOWN * 0.75 + 1.6, len(rows) * 0.82), layout="constrained")
    for line, (title, (values, images)) in zip(axes, rows.items(), strict=True):
        name = title.split("\n")[0]
        sign = np.sign(np.corrcoef(values, Y[name])[0, 1])  # a raw dimension may point the other way
        along = sign * values.to_numpy()
        for ax, target in zip(line, np.linspace(*np.quantile(along, [0.02, 0.98]), SHOWN), strict=True):
            ax.imshow(images[np.argmin(np.abs(along - target))], interpolation="nearest")
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        line[0].set_ylabel(title, rotation=0, ha="right", va="center", fontsize=9)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(f"\n{path}")


if __name__ == "__main__":
    plt.style.use(ca.plot.STYLE)
    main()
