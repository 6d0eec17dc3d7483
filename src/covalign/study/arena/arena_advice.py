"""What the arena says to a person who must choose a method: where ours lose first, then which method for which data.

Every number, every name and every comparison is computed from the results. Methods are compared on data sets that both
have; those whose difference a paired t-test does not find are called as good as each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

from covalign._core.messages import counted, in_words
from covalign.study.arena import entrants
from covalign.study.arena.collection import CONDITIONS
from covalign.study.arena.entrants import FEATURES, NO_T, THEN_T
from covalign.study.arena.standings import TIE, Results, table_of

OURS = ("iFA", FEATURES)
MOST = 0.75  # of the data sets of a kind: a method with fewer is not recommended for it
SHOWN = 3  # losses that are named
MEANINGS = f"""## Which method for my data?

A method is good if the dimensions of new samples correlate with their covariates and not with each other. The *area*
says how good: it is the mean alignment of new samples at couplings from 0 to 1. *Larger* and *loses* mean a difference
of more than {TIE:g}. *As good as these data sets can tell* means that a paired t-test at 5 % finds no difference."""
WITH = {
    "complete": "with complete data",
    "cells": "with a third of the cells missing",
    "views": "where half of the samples lack all views but the first",
}
PACKAGES = ("MOFA", "SOFA (sf=0.1)", "MOFA-FLEX", "MuVI", "iVAE", "sparse PLS")


def advice(found: Results) -> str:
    """The part of the page that gives advice."""
    parts = [
        MEANINGS,
        "### Where ours lose\n",
        *losses(found),
        "### Which to take\n",
        *recommendations(found),
        "### What else counts\n",
        *others(found),
    ]
    return (
        "\n".join(part if part.startswith("#") else f"- {part}" for part in parts).replace("\n### ", "\n\n### ")
        + "\n\n"
    )


# -- where ours lose --------------------------------------------------------------------------------------------------


def losses(found: Results) -> Iterator[str]:
    """On how many data sets each method of ours is behind the best of all, and where it loses most."""
    for name in OURS:
        lost = [text for condition in CONDITIONS if (text := lost_in(found, name, condition))]
        if lost:
            yield f"**{capital(spoken(name))} loses** {'. It loses '.join(lost)}."


def lost_in(found: Results, name: str, condition: str) -> str | None:
    """The losses of a method under a condition, or None if it has no number there."""
    areas = table_of(found.wide, condition)
    if name not in areas:
        return None
    areas = areas[areas[name].notna()]
    behind = areas.max(axis=1) - areas[name]
    lost = behind[behind > TIE].sort_values(ascending=False)
    where = f"on {len(lost)} of {len(areas)} data sets {WITH[condition]}"
    if lost.empty:
        return where
    best = [str(name) for name in areas.loc[lost.index].idxmax(axis=1)]
    shown = zip(lost.head(SHOWN).items(), best[:SHOWN], strict=True)
    worst = [f"{gap:.2f} on {data} to {spoken(to)}" for (data, gap), to in shown]
    return f"{where}{', most of all ' if len(lost) > SHOWN else ': '}{in_words(worst)}"


# -- which to take ----------------------------------------------------------------------------------------------------


def kinds(found: Results) -> Iterator[tuple[str, pd.DataFrame]]:
    """Kinds of data, with the areas of all methods."""
    features, samples = found.data["features"], found.data["samples"]
    wide = [data for data in found.areas.index if features[data] >= samples[data] / 2]
    tall = [data for data in found.areas.index if data not in wide]
    several = [data for data in found.areas.index if found.data.loc[data, "views"] > 1]
    yield "The data are complete, with more than twice as many samples as features", found.areas.loc[tall]
    yield "The data are complete, with at least half as many features as samples", found.areas.loc[wide]
    yield "The data are complete and have several views", found.areas.loc[several]
    yield "A third of the cells is missing", table_of(found.wide, "cells")
    yield "Half of the samples lack all views but the first", table_of(found.wide, "views")


def recommendations(found: Results) -> Iterator[str]:
    """The method with the least mean distance to the best, for every kind of data, and what is nearly as good."""
    for kind, areas in kinds(found):
        if len(areas):
            yield f"**{kind}** ({counted(len(areas), 'data set')}): {recommended(areas)}"


def recommended(areas: pd.DataFrame) -> str:
    """Sentences about the three methods that are nearest to the best."""
    enough = areas.loc[:, areas.notna().mean() >= MOST]
    behind = enough.rsub(areas.max(axis=1), axis=0).mean().sort_values(kind="stable")
    first, *others = behind.index[:3]
    alike = [other for other in others if not differs(areas, first, other)]
    texts = [f"take {spoken(first)}, {behind[first]:.3f} behind the best method on average"]
    if alike:
        names = in_words([f"{spoken(other)} ({behind[other]:.3f} behind)" for other in alike])
        texts.append(f"{capital(names)} {'is' if len(alike) == 1 else 'are'} as good as these data sets can tell")
    texts += [
        f"{capital(spoken(other))} ({behind[other]:.3f} behind) is worse" for other in others if other not in alike
    ]
    texts += [
        f"{capital(spoken(name))} has no number on {in_words(sorted(areas.index[areas[name].isna()]))}"
        for name in (first, *others)
        if areas[name].isna().any()
    ]
    return ". ".join(texts) + "."


def differs(areas: pd.DataFrame, one: str, other: str) -> bool:
    """Whether two methods differ on the data sets that both have: a paired t-test at 5 %."""
    gap = (areas[one] - areas[other]).dropna()
    return len(gap) > 1 and bool(abs(gap.mean()) > t.ppf(0.975, len(gap) - 1) * gap.std(ddof=1) / np.sqrt(len(gap)))


# -- what else counts -------------------------------------------------------------------------------------------------


def others(found: Results) -> Iterator[str]:
    """iFA or the aligner, T after a representation, published packages, missing cells, seconds."""
    for condition in CONDITIONS:
        areas = table_of(found.wide, condition)
        if {*OURS} <= {*areas}:
            yield f"**iFA or {spoken(FEATURES)}**, {WITH[condition]}: {duel(areas, 'iFA', FEATURES)}."
    yield from after_representations(found)
    for name in PACKAGES:
        yield from against_package(found, name)
    yield from filled_in(found)
    spent = found.wide[found.wide["condition"] == "complete"].groupby("method")["seconds"].median()
    quick = [f"{spoken(name)} {spent[name]:.2g} s" for name in (*OURS, "PCA", "PLS", *PACKAGES) if name in spent]
    if quick:
        times = in_words(quick)
        yield f"**Seconds of computation of one fit** (median of the complete data sets of a method): {times}."


def duel(areas: pd.DataFrame, ours: str, other: str) -> str:
    """How often one method is ahead of another, and by how much on average."""
    gap = (areas[ours] - areas[other]).dropna()
    ahead, behind = int((gap > TIE).sum()), int((gap < -TIE).sum())
    return (
        f"{spoken(ours)} has the larger area on {ahead} of {counted(len(gap), 'data set')} and the smaller on {behind} "
        f"({gap.mean():+.3f} on average)"
    )


def after_representations(found: Results) -> Iterator[str]:
    """What T does to the area of every representation."""
    pairs = {name: (name + THEN_T, name + NO_T) for name in entrants.REPRESENTATIONS}
    gains = {
        name: (found.areas[then] - found.areas[alone]).dropna()
        for name, (then, alone) in pairs.items()
        if then in found.areas and alone in found.areas
    }
    texts = [f"{name} {gain.mean():+.2f} ({len(gain)})" for name, gain in gains.items() if len(gain)]
    if texts:
        every = pd.concat(list(gains.values()))
        yield (
            f"**You have a representation already**: put T after it. The area is larger with T in "
            f"{(every > TIE).sum()} of {len(every)} pairs of a method and a complete data set, and smaller in "
            f"{(every < -TIE).sum()}. Mean change, and number of data sets: {in_words(texts)}."
        )


def against_package(found: Results, name: str) -> Iterator[str]:
    """A published method (alone, or followed by T where that is better on average) against both of ours."""
    there = [one for one in (name + NO_T, name + THEN_T) if one in found.areas and found.areas[one].notna().any()]
    if not there:
        return
    both = found.areas[there].dropna()
    better = there[-1] if both.empty else str(both.mean().idxmax())
    texts = [f"**{capital(spoken(better))}**, {WITH['complete']}"]
    texts[0] += ": " + "; ".join(duel(found.areas, ours, better) for ours in OURS if ours in found.areas)
    for failing, what in ((name, f"{name} failed"), (name + THEN_T, "T could not follow it")):
        data = found.failed[(found.failed["method"] == failing) & (found.failed["condition"] == "complete")]["data"]
        if len(data):
            texts.append(f"{what} on {in_words(list(dict.fromkeys(data)))}")
    yield ". ".join(texts) + "."


def filled_in(found: Results) -> Iterator[str]:
    """Error of hidden cells of new samples, on the data sets that all methods with such an error have."""
    gaps = found.wide[found.wide["condition"] == "cells"]
    if "imputation error" not in gaps:
        return
    errors = gaps.pivot_table(index="data", columns="method", values="imputation error")
    errors = errors.loc[:, errors.notna().mean() >= MOST].dropna()
    if not errors.empty:
        texts = [f"{name} {value:.2f}" for name, value in errors.mean().sort_values().items()]
        yield (
            f"**You want missing cells filled in**: the error of hidden cells of new samples is {in_words(texts)}; "
            f"the mean of the feature has 1 ({counted(len(errors), 'data set')} that all of these have)."
        )


# -- words ------------------------------------------------------------------------------------------------------------


def spoken(name: str) -> str:
    """A method as a part of a sentence."""
    return {FEATURES: f"the {FEATURES}"}.get(name, name.replace(THEN_T, " followed by T").replace(NO_T, " alone"))


def capital(text: str) -> str:
    """A sentence begins with a capital, unless it begins with the name iFA or iVAE."""
    return text if text.startswith(("iFA", "iVAE")) else text[:1].upper() + text[1:]


def number(value: Any, digits: int = 3) -> str:
    """A number, or a dash."""
    return "-" if not np.isfinite(value) else f"{value:.{digits}f}" if abs(value) < 100 else f"{value:.0f}"
