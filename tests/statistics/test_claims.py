"""Verdicts on the claims about samples: each rule can give every verdict, and says what was run."""

from __future__ import annotations

from pathlib import Path

import pytest

from covalign.study import claims, paper_tables, sample_claims
from covalign.study.claim_verdicts import FAILS, HOLDS, IN_PART
from covalign.study.profiles import SIMULATED, TINY, Inputs, Profile
from covalign.study.results_store import Row, Store, Unit, setting

FAMILY = ("iFA (lam=0)", "iFA (lam=1)")
SCORES = sample_claims.SCORES


def simulated(store: Store, values: dict[str, dict[str, float]], scenario: str, alpha: float, b: float) -> None:
    """Metrics by method, as rows of one repetition of a setting."""
    at = setting(scenario=scenario, alpha=alpha, b=b, n=TINY.n, budget=TINY.budget)
    store.append(Unit("methods", "all", at, 0), every(values))


def real(store: Store, values: dict[str, dict[str, float]], fold: int = 0) -> None:
    """The same for breast cancer."""
    at = setting(fold=fold, k=TINY.real_k, budget=TINY.real_budget)
    store.append(Unit("tcga", "all", at, 0), every(values))


def every(values: dict[str, dict[str, float]]) -> list[Row]:
    return [Row(method, name, value) for method, metrics in values.items() for name, value in metrics.items()]


def at(alignment: float, coupling: float) -> dict[str, float]:
    return {"alignment": alignment, "coupling": coupling}


FRONT = {FAMILY[0]: at(0.5, 0.0), FAMILY[1]: at(0.7, 2.0)}


@pytest.mark.parametrize(
    ("pca", "expected"), [((0.4, 0.0), HOLDS), ((0.6, 0.0), FAILS)], ids=["behind", "above the front"]
)
def test_the_front(tmp_path: Path, pca: tuple[float, float], expected: str) -> None:
    store = Store(tmp_path)
    others = {
        "PCA": at(*pca),
        "iVAE": at(0.55, 1.0) if expected == HOLDS else at(0.9, 1.0),
        "Y as factors": at(1.0, 3.0),
    }
    for scenario in SIMULATED:
        for alpha, b in Profile.panels(scenario):
            simulated(store, FRONT | others, scenario, alpha, b)
    real(store, FRONT | others)
    answer = sample_claims.most_lie_behind(store, TINY)
    assert answer.verdict == expected
    assert "past its end: Y as factors" in answer.measured
    assert ("on or above: PCA, iVAE" in answer.measured) == (expected == FAILS)


@pytest.mark.parametrize(
    ("sofa", "expected"),
    [((0.6, 0.6), HOLDS), ((0.6, 0.71), IN_PART), ((0.8, 0.8), FAILS)],
    ids=["less", "mostly", "more"],
)
def test_sofa_against_iFA_on_breast_cancer(tmp_path: Path, sofa: tuple[float, ...], expected: str) -> None:
    store = Store(tmp_path)
    for fold, alignment in enumerate(sofa):
        real(store, FRONT | {"SOFA (sf=0.1)": at(alignment, 1.0)}, fold)
    answer = sample_claims.sofa_aligns_less(store, TINY)
    assert answer.verdict == expected
    assert "1 repetition of SOFA" in answer.measured


@pytest.mark.parametrize(("shift", "expected"), [(0.1, HOLDS), (0.3, IN_PART), (0.5, FAILS)])
def test_scores_of_sofa_along_alpha(tmp_path: Path, shift: float, expected: str) -> None:
    store = Store(tmp_path)
    for scenario, low in sample_claims.sofa_panels():
        for alpha in (low, 1.0):
            moved = {"SOFA (sf=0.1)": shift, "iFA (lam=0)": 0.4, "iFA (lam=1)": 0.4}
            values = {name: dict.fromkeys(SCORES, 0.2 + by * (alpha == 1)) for name, by in moved.items()}
            simulated(store, values, scenario, alpha, 1.0)
    assert sample_claims.sofa_does_not_shift(store, TINY).verdict == expected


@pytest.mark.parametrize(("top", "expected"), [(0.9, HOLDS), (0.3, FAILS)])
def test_range_of_sofa(tmp_path: Path, top: float, expected: str) -> None:
    store = Store(tmp_path)
    levels = {"SOFA (sf=0.01)": 0.1, "SOFA (sf=0.1)": top, "iFA (lam=0)": 0.2, "iFA (lam=1)": 0.5}
    for scenario in SIMULATED:
        simulated(store, {name: dict.fromkeys(SCORES, level) for name, level in levels.items()}, scenario, 1.0, 1.0)
    assert sample_claims.sofa_spans_more(store, TINY).verdict == expected


@pytest.mark.parametrize(("low", "expected"), [(0.095, HOLDS), (0.07, FAILS)])
def test_variance_per_factor(tmp_path: Path, low: float, expected: str) -> None:
    store = Store(tmp_path)
    shares = {"iFA (no T)": 0.1, FAMILY[0]: low, FAMILY[1]: 0.12}
    values = {name: {"variance": share} for name, share in shares.items()}
    simulated(store, values, "PN", 1.0, 1.0)
    real(store, values)
    assert sample_claims.variance_stays_high(store, TINY).verdict == expected


@pytest.mark.parametrize("loading_based", [0.08, 0.05])
def test_the_share_of_variance_matters(tmp_path: Path, loading_based: float) -> None:
    """C11 needs both shares: one that rises and one that falls is 'holds in part', and both are shown."""
    store = Store(tmp_path)
    real(store, {FAMILY[0]: {"variance": 0.07, "loading variance": 0.06}})
    real(store, {FAMILY[1]: {"variance": 0.10, "loading variance": loading_based}})
    answer = claims.informed_variance_rises(store, TINY)
    assert answer.verdict == (HOLDS if loading_based > 0.06 else IN_PART)
    assert "0.100" in answer.measured
    assert f"{loading_based:.3f}" in answer.measured


@pytest.mark.parametrize(("falling", "expected"), [(True, HOLDS), (False, IN_PART)])
def test_disentanglement_in_samples(tmp_path: Path, falling: bool, expected: str) -> None:
    store = Store(tmp_path)
    values = {
        FAMILY[0]: {"disentanglement": 0.1, "completeness": 0.1, "informativeness": 0.4, "sap": 0.4, "nsap": 0.8},
        FAMILY[1]: {"disentanglement": 0.9, "completeness": 0.9, "informativeness": 0.4, "sap": 0.2, "nsap": 0.5},
    }
    values[FAMILY[1]]["nsap"] = 0.5 if falling else 0.9
    for scenario in SIMULATED:
        simulated(store, values, scenario, 1.0, 1.0)
    answer = sample_claims.sample_scores(store, TINY)
    assert answer.verdict == expected
    assert ("fails: nSAP falls" in answer.measured) == (not falling)


@pytest.mark.parametrize(("step", "expected"), [(0.1, HOLDS), (-0.1, IN_PART)])
def test_informativeness_along_alpha_and_b(tmp_path: Path, step: float, expected: str) -> None:
    """The population always rises here; the samples do or do not."""
    store = Store(tmp_path)
    for scenario in SIMULATED:
        for alpha, b in ((0.0, 1.0), (1.0, 0.5), (1.0, 1.0)):
            value = 0.5 + step * (alpha + b)
            simulated(store, {name: {"informativeness": value} for name in FAMILY}, scenario, alpha, b)
            rows = [Row(T, "informativeness", 0.1 * (alpha + b)) for T in ("T_0", "T_1")]
            store.append(Unit("population", "T", setting(scenario=scenario, alpha=alpha, b=b), 0), rows)
    assert sample_claims.informativeness_grows(store, TINY).verdict == expected


@pytest.mark.parametrize(
    ("exclusive", "order", "all_beat"), [(0.5, HOLDS, HOLDS), (0.45, HOLDS, IN_PART), (0.7, IN_PART, HOLDS)]
)
def test_the_exclusive_regime_of_a_representation(tmp_path: Path, exclusive: float, order: str, all_beat: str) -> None:
    """C5 and C23 have T_ex in them, and name the representation."""
    levels = {"max-correlation dimensions": 0.3, "Procrustes": 0.47}
    for route in ("Procrustes", "ridge"):
        levels |= {
            f"{route}, then {T}": a
            for T, a in zip(("T_ex", "T_0", "T_0.5", "T_1"), (exclusive, 0.6, 0.61, 0.62), strict=True)
        }
    rows = [
        Row(name, f"{metric}, {label}", value)
        for name, a in levels.items()
        for label in ("in sample", "held out")
        for metric, value in (("alignment", a), ("coupling", 5.0 if name == "Procrustes" else 0.0))
    ]
    store = Store(tmp_path)
    store.append(Unit("embedding", "net", setting(embedding="net"), 0), rows)
    found = [check(store, TINY) for check in (sample_claims.order_of_embeddings, claims.pretrained)]
    assert [answer.verdict for answer in found] == [order, all_beat]
    assert all(answer.measured.startswith("net (") for answer in found)


def test_a_fifth_of_a_fit_is_not_next_to_nothing(tmp_path: Path) -> None:
    store, where = Store(tmp_path), setting(scenario="PN", alpha=1.0, b=1.0, n=TINY.n, budget=TINY.budget)
    seconds = {"iFA": 0.1, "iFA, a further lambda": 0.02, "SOFA (sf=0.1)": 60.0, "PLS": 0.01}
    store.append(Unit("runtime", "all", where, 0), [Row(name, "seconds", value) for name, value in seconds.items()])
    answer = claims.faster(store, TINY)
    assert answer.verdict == IN_PART
    assert "20% of a fit" in answer.measured
    assert "1 repetition" in answer.measured


@pytest.mark.parametrize(
    ("gain", "expected"), [(0.0, "no recovery in any scenario"), (0.2, "recovery in PN, AR, P, N")]
)
def test_what_the_higher_bound_buys(tmp_path: Path, gain: float, expected: str) -> None:
    store, metrics = Store(tmp_path), {"weakest": 0.5, "sweeps": 5.0, "seconds": 0.1}
    for scenario in SIMULATED:
        where = setting(scenario=scenario, alpha=1.0, b=1.0, n=TINY.n)
        for rep in range(4):
            noise = 0.01 * (-1) ** rep
            both = {
                "paper": {**metrics, "bound": -100.0, "recovery": 0.7 - noise},
                "full, converged": {**metrics, "bound": -60.0, "recovery": 0.7 + gain + noise},
            }
            store.append(Unit("inference", "all", where, rep), every(both))
    text = paper_tables.inference(store, TINY, Inputs())
    assert f"+40 to +40 nats at N = {TINY.n} buy {expected}" in text
