"""What users are told: the study, its methods, and the commands."""

from __future__ import annotations

from covalign.exceptions import PeerError


def absent_method(name: str, why: str) -> ValueError:
    return ValueError(f"{name} cannot run here: {why}")


def peer_failed(name: str, why: str) -> PeerError:
    return PeerError(f"{name} needs to answer with factors and loadings, got no usable answer: {why}")


def not_a_quantile(quantile: object) -> ValueError:
    return ValueError(f"quantile needs a number in [0, 1], got {quantile!r}: 0.5 keeps the better half of features.")


def unknown_kernel(kernel: object) -> ValueError:
    return ValueError(f"kernel needs 'rbf' or 'linear', got {kernel!r}: 'rbf' is the paper's.")
