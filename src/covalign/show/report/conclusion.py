"""What a report says first, in sentences to quote: what is captured on new rows, what the slider buys, what to look at.

The sentences are about the model as it was saved. They do not follow the slider.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from covalign._core.messages import counted, in_words
from covalign.closed_form.aligned_model import overfitting
from covalign.closed_form.crowded import least_coupling
from covalign.closed_form.pooled_correlation import LEVEL, SMALL, VERDICTS, verdict
from covalign.closed_form.regimes import mean_or_nan
from covalign.show.report.facts import has_slider, is_crowded, lam_shown, measured

NAMED = 6  # covariates or samples in a sentence
LITTLE = 0.01  # a smaller change of the mean alignment is called none
UNCORRELATED = 0.1  # smaller correlations between dimensions are called none
TURNING = {"R", "AL", "RLE", "RLO", "RLI", "LRO", "LRE"}  # directions of letters that reorder what follows


def of(facts: dict[str, Any]) -> dict[str, Any]:
    """``headline``, ``said`` (sentences), ``meaning`` (of the words used) and ``warnings``."""
    now = measured(facts, facts["regime"], facts["lam"])
    judged = now["held_out"] is not None
    return {
        "headline": _headline(facts, now) if judged else f"Nothing is known about new {_rows(facts)}",
        "said": [*(_by_verdict(facts, now) if judged else _fitted_only(facts, now)), _slider(facts)],
        "meaning": _meaning(facts, now, judged),
        "warnings": _warnings(facts, now),
    }


def verdicts(facts: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The verdict of every covariate; a factor model has its own (``informed_``)."""
    if "informed" in facts:
        return [one["verdict"] for one in facts["informed"]]
    held = now["held_out"]
    return [verdict(low, high) for low, high in zip(held["low"], held["high"], strict=True)]


def called(name: str) -> str:
    """A name within a sentence: in quotes if it has spaces; isolated if its letters would turn numbers beside it."""
    turned = any(unicodedata.bidirectional(letter) in TURNING for letter in name)
    isolated = f"\u2068{name}\u2069" if turned else name
    return f"“{isolated}”" if any(letter.isspace() for letter in name) else isolated


# -- what is captured -------------------------------------------------------------------------------------------------


def _headline(facts: dict[str, Any], now: dict[str, Any]) -> str:
    said, new = verdicts(facts, now), f"on new {_rows(facts)}"
    if len(said) == 1:
        name = called(facts["covariates"][0])
        whether = f"Whether {name} is captured {new} is unclear"
        return whether if said[0] == VERDICTS[1] else f"{name} is {said[0]} {new}"
    count = said.count(VERDICTS[0])
    if count in (0, len(said)):
        return f"{'All' if count else 'None of the'} {len(said)} covariates {'are' if count else 'is'} captured {new}"
    return f"{count} of {len(said)} covariates {'are' if count > 1 else 'is'} captured {new}"


def _by_verdict(facts: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """A sentence for each verdict: its covariates with their held-out alignment, the strongest first."""
    held, said, made = now["held_out"], verdicts(facts, now), []
    for word in VERDICTS:
        which = [p for p, one in enumerate(said) if one == word]
        which.sort(key=lambda p: -np.nan_to_num(held["alignment"][p], nan=-2.0))
        if which:
            names = [f"{called(facts['covariates'][p])} ({_number(held['alignment'][p])})" for p in which]
            made.append(f"{word.capitalize()}: {_few(names)}.")
    return made


def _fitted_only(facts: dict[str, Any], now: dict[str, Any]) -> list[str]:
    why = "" if facts["why_not_held_out"] is None else f" ({facts['why_not_held_out']})"
    mean = _number(mean_or_nan(now["alignment"]))
    return [f"No {_rows(facts)} were left out{why}. On the fitted {_rows(facts)} the mean alignment is {mean}."]


def _meaning(facts: dict[str, Any], now: dict[str, Any], judged: bool) -> str:
    setting = f"These numbers are those of the saved model ({_setting(facts)}, coupling {_plain(now['coupling'])})."
    if not judged:
        return setting
    return (
        f"A number in brackets is the correlation of a covariate with its {_dimension(facts)} in {_rows(facts)} that "
        f"were not fitted. Captured: its {100 * LEVEL:.0f} % interval excludes 0. Not captured: it excludes everything "
        f"above {SMALL}. Unclear: neither. {setting}"
    )


# -- what the slider buys ---------------------------------------------------------------------------------------------


def _slider(facts: dict[str, Any]) -> str:
    if len(facts["covariates"]) == 1:
        return f"With one covariate the slider changes nothing: every setting gives the same {_dimension(facts)}."
    if is_crowded(facts):
        p, k = len(facts["covariates"]), facts["dimensions"]
        least = _plain(least_coupling(p, k))
        return f"{p:,} covariates in {k:,} dimensions have no λ: their coupling is at least {least}, whatever the map."
    ends = [measured(facts, regime, lam) for regime, lam in (("independent", 0.0), ("strongest", 1.0))]
    judged = all(end["held_out"] is not None for end in ends)
    each = [np.asarray((end["held_out"] if judged else end)["alignment"]) for end in ends]
    means, where = [mean_or_nan(one) for one in each], f"on {'new' if judged else 'the fitted'} {_rows(facts)}"
    couplings = [_plain(end["coupling"]) for end in ends]
    gain, (a, b, r) = means[1] - means[0], _closest(ends[1]["among"])
    largest = f"{called(facts['covariates'][a])} and {called(facts['covariates'][b])} then correlate by {r:.2f}"
    alignment = f"mean alignment {where} goes from {_number(means[0])} to {_number(means[1])}"
    subject = "The slider" if has_slider(facts) else "A larger λ"
    if abs(gain) < LITTLE and abs(r) < UNCORRELATED:
        return (
            f"{subject} changes almost nothing: from λ = 0 to λ = 1, {alignment} and coupling from {couplings[0]} "
            f"to {couplings[1]}; no two {_dimension(facts)}s correlate by more than {abs(r):.2f}."
        )
    if not gain >= LITTLE:
        return (
            f"{subject} does not raise alignment: from λ = 0 to λ = 1, {alignment}, but coupling rises from "
            f"{couplings[0]} to {couplings[1]} ({largest}). λ = 0 loses nothing."
        )
    most = int(np.nanargmax(each[1] - each[0]))
    best = f"{called(facts['covariates'][most])} ({_number(each[0][most])} to {_number(each[1][most])})"
    return (
        f"{subject} raises alignment and coupling: from λ = 0 to λ = 1, {alignment}, most for {best}, and coupling "
        f"from {couplings[0]} to {couplings[1]} ({largest})."
    )


def _closest(among: Any) -> tuple[int, int, float]:
    """The two dimensions that correlate most, and by how much."""
    off = np.nan_to_num(np.asarray(among, dtype=np.float64) - np.diag(np.diag(among)))
    a, b = np.unravel_index(int(np.abs(off).argmax()), off.shape)
    return int(min(a, b)), int(max(a, b)), float(off[a, b])


# -- what to look at first --------------------------------------------------------------------------------------------


def _warnings(facts: dict[str, Any], now: dict[str, Any]) -> list[str]:
    said = []
    if now["held_out"] is not None:
        both = np.array([now["alignment"], now["held_out"]["alignment"]])
        both = both[:, ~np.isnan(both).any(axis=0)]
        in_sample, held_out = both.mean(axis=1) if both.size else (np.nan, np.nan)
        said += overfitting(in_sample, held_out, _rows(facts))
        said += [facts["about_groups"]] if facts["few_groups"] else []
    if "factors" not in facts:
        return said
    bound = facts["factors"]["bound"]
    if not bound["converged"]:
        said.append(f"The fit did not converge in {bound['sweeps']} sweeps: raise max_iter.")
    return [*said, *facts["factors"]["ownership"], *_far_off(facts["factors"]["weights"])]


def _far_off(weights: dict[str, Any] | None) -> list[str]:
    """Samples that count little, because noise has heavy tails."""
    if weights is None or not weights["samples"]:
        return []
    named = [f"{called(one['name'])} ({one['weight']:.2g} in {called(one['view'])})" for one in weights["samples"]]
    count = weights["count"]
    one = f"{counted(count, 'sample')} of {weights['of']:,} {'are' if count > 1 else 'is'} far off and "
    count_less = "count" if count > 1 else "counts"
    return [f"{one}{count_less} less than {weights['below']:g} in a view: {_few(named, count)}."]


# -- words ------------------------------------------------------------------------------------------------------------


def _few(items: Sequence[str], count: int | None = None) -> str:
    """The first few items, and how many more there are of ``count``."""
    count = len(items) if count is None else count
    if count > NAMED:
        return f"{', '.join(items[:NAMED])} and {count - NAMED} more"
    return in_words(items)


def _setting(facts: dict[str, Any]) -> str:
    if facts["limits"] is not None:
        return f"exact: {facts['limits']['words']}"
    return lam_shown(facts["lam"]) if facts["regime"] == "tunable" else str(facts["regime"])


def _rows(facts: dict[str, Any]) -> str:
    return "samples" if "factors" in facts else "rows"


def _dimension(facts: dict[str, Any]) -> str:
    return "factor" if "factors" in facts else "dimension"


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}".replace("-0.00", "0.00")


def _plain(coupling: float) -> str:
    """Two digits that count; 0 if rounding alone is left."""
    return f"{coupling:,.0f}" if coupling >= 100 else "0" if coupling < 5e-5 else f"{coupling:.2g}"
