"""The identifiable variational autoencoder of Khemakhem et al. (2020), Gaussian throughout.

p(z | y) = N(m(y), diag s(y)),  p(x | z) = N(f(z), diag v),  q(z | x, y) = N(g(x, y), diag r(x, y)),
where (m, s), f and (g, r) are three networks, and v is one learned noise variance per feature, as in factor analysis.
All parameters maximise the evidence lower bound by Adam.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module, util
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from covalign._core.linalg import Array
from covalign.study.baselines.method import Fitted, stacked, versions_of

HIDDEN = (64, 64)
SLOPE = 0.1  # of LeakyReLU for negative input
RATE = 1e-3  # of Adam
BATCH = 256
FIRST_NOISE = 0.1  # v before training: with v = 1 all of x counts as noise, and the factors may never be used
LEAST_NOISE = 1e-4  # the smallest v, 1 % of the sd of a feature: with v -> 0 the bound would have no maximum


@dataclass(frozen=True)
class IVAE:
    """iVAE: a VAE whose prior depends on the covariates; the factors are the posterior means g(x, y).

    >>> import covalign as ca
    >>> from covalign import baselines
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> baselines.run(baselines.IVAE(), s.X, s.Y, n_factors=10, budget=100)  # doctest: +SKIP
    """

    name = "iVAE"
    paired = False

    def absent(self) -> str | None:
        """It needs PyTorch."""
        return None if util.find_spec("torch") else "it needs PyTorch: pip install 'covalign[torch]'"

    def fit(self, views: dict[str, Array], Y: Array, n_factors: int, seed: int, budget: int) -> Fitted:
        """``budget`` epochs. A network has no loadings; ``curve`` is the mean bound per sample, epoch by epoch."""
        X = stacked(views)
        with one_thread():
            model, curve = train(X, Y, n_factors, seed, budget)
        return Fitted(posterior_mean(model, X, Y), None, curve, versions=versions_of("torch", "numpy"))


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread in PyTorch: for networks this small a second thread costs time, much more so on a busy machine."""
    torch: Any = import_module("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Model(NamedTuple):
    """Three networks and a vector, of types of PyTorch, which is imported only when it is needed."""

    encoder: Any  # (x, y) -> (g, log r)
    prior: Any  # y -> (m, log s)
    decoder: Any  # z -> f
    log_noise: Any  # D: log(v - LEAST_NOISE)

    def parameters(self) -> list[Any]:
        """All learned parameters."""
        return [*self.encoder.parameters(), *self.prior.parameters(), *self.decoder.parameters(), self.log_noise]


def train(X: Array, Y: Array, n_factors: int, seed: int, epochs: int) -> tuple[Model, Array]:
    """The model after ``epochs`` passes over the rows in random order, and the mean bound of each pass.

    All random numbers come from one generator, so the random state of the caller is neither used nor changed.
    """
    torch: Any = import_module("torch")
    generator = torch.Generator().manual_seed(seed)
    model = initial(X.shape[1], Y.shape[1], n_factors, generator)
    optimiser = adam(model.parameters())
    rows, curve = as_tensor(np.hstack([X, Y])), np.empty(epochs)
    for epoch in range(epochs):
        # Shuffled and drawn once per epoch, then sliced: for networks this small, calls cost as much as arithmetic.
        shuffled = rows.index_select(0, torch.randperm(len(rows), generator=generator))
        noise = torch.randn(len(rows), n_factors, generator=generator, dtype=rows.dtype)
        total = 0.0
        for xy, e in zip(shuffled.split(BATCH), noise.split(BATCH), strict=True):
            bound = elbo(model, xy, e)
            optimiser.zero_grad()
            (-bound / len(xy)).backward()
            optimiser.step()
            total += bound.detach()
        curve[epoch] = float(total) / len(rows)
    return model, curve


def elbo(model: Model, xy: Any, e: Any) -> Any:
    """sum_i log p(x_i | z_i) - KL(q(z_i | x_i, y_i) || p(z_i | y_i)) with one draw z = g + sqrt(r) e per row."""
    D = len(model.log_noise)
    g, log_r = model.encoder(xy).chunk(2, dim=1)
    m, log_s = model.prior(xy[:, D:]).chunk(2, dim=1)
    z = g + (log_r / 2).exp() * e
    return loglik(xy[:, :D], model.decoder(z), model.log_noise.exp() + LEAST_NOISE) - kl(g, log_r, m, log_s)


def loglik(x: Any, f: Any, v: Any) -> Any:
    """sum_id log N(x_id; f_id, v_d)."""
    squares = (x - f).square().sum(dim=0)
    return -0.5 * ((squares / v).sum() + len(x) * (v.log().sum() + len(v) * math.log(2 * math.pi)))


def kl(g: Any, log_r: Any, m: Any, log_s: Any) -> Any:
    """sum_ik KL(N(g, r) || N(m, s)) = (1/2) sum_ik (r + (g - m)^2) / s - log(r / s) - 1."""
    log_ratio = log_r - log_s
    return 0.5 * (log_ratio.exp() + (g - m).square() * (-log_s).exp() - log_ratio - 1).sum()


def posterior_mean(model: Model, X: Array, Y: Array) -> Array:
    """g(x, y) for every row (n x K)."""
    g, _ = model.encoder(as_tensor(np.hstack([X, Y]))).detach().chunk(2, dim=1)
    return np.asarray(g.numpy(), dtype=np.float64)


def initial(D: int, P: int, K: int, generator: Any) -> Model:
    """Random networks of the right sizes, and v = FIRST_NOISE."""
    torch: Any = import_module("torch")
    encoder = network((D + P, *HIDDEN, 2 * K), generator)
    prior = network((P, *HIDDEN, 2 * K), generator)
    decoder = network((K, *HIDDEN, D), generator)
    log_noise = torch.full((D,), math.log(FIRST_NOISE), dtype=torch.float32, requires_grad=True)
    return Model(encoder, prior, decoder, log_noise)


def network(sizes: tuple[int, ...], generator: Any) -> Any:
    """Linear layers with LeakyReLU between them, entries U(-1, 1) / sqrt(inputs): PyTorch's default, but seeded."""
    torch: Any = import_module("torch")
    layers: list[Any] = []
    for inputs, outputs in pairwise(sizes):
        linear = torch.nn.utils.skip_init(torch.nn.Linear, inputs, outputs, dtype=torch.float32)
        for parameter in linear.parameters():
            parameter.detach().uniform_(-1 / math.sqrt(inputs), 1 / math.sqrt(inputs), generator=generator)
        layers += [linear, torch.nn.LeakyReLU(SLOPE)]
    return torch.nn.Sequential(*layers[:-1])


def adam(parameters: list[Any]) -> Any:
    """Adam, with all parameters updated in one call (a fifth faster) if this PyTorch can do so on a CPU."""
    torch: Any = import_module("torch")
    try:
        return torch.optim.Adam(parameters, lr=RATE, fused=True)
    except RuntimeError:
        return torch.optim.Adam(parameters, lr=RATE)


def as_tensor(A: Array) -> Any:
    """A in single precision."""
    return import_module("torch").from_numpy(np.ascontiguousarray(A, dtype=np.float32))
