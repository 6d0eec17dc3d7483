// The setting in words, and as code.
"use strict";

(() => {
  const { byId, known, shown, plain, lamShown, write } = drawing;
  const { facts, names, called, P, isModel, dimension, rows, state, first, last, height } = live;

  const granted = facts.regime_from === "model" ? " under the model" : facts.shrinkage > 0 ? ` at a shrinkage of ${plain(facts.shrinkage)}` : "";
  const MEANING = {
    independent: `The ${dimension}s are uncorrelated with each other. Among uncorrelated ${dimension}s they have the highest alignment${granted}.`,
    strongest: `Every ${dimension} is the best linear prediction of its covariate${granted}. It may correlate with the other ${dimension}s.`,
    exclusive: `Every ${dimension} correlates with its own covariate and with no other${facts.regime_from === "model" ? granted : ""}. Alignment is lower, most of all for covariates that resemble others.`,
    exact: facts.limits && `No other linear map has a higher ${facts.limits.code.includes("weights=") ? "weighted mean of the alignments" : "mean alignment"}${granted}, with ${facts.limits.words}.`,
    "as fitted": "The factors as the model found them, before any regime. Each is informed by its covariate; they may correlate.",
  };

  // A regime is exact for the moments it was made from: those of the model, or moments completed where covariates have gaps.
  function stray(now) {
    const matrix = { independent: now.among, exclusive: now.withY }[state.regime];
    if (matrix === undefined) return "";
    const most = Math.max(0, ...matrix.flatMap((row, p) => row.filter((value, q) => q !== p && known(value)).map(Math.abs)));
    return most < 0.005 ? "" : ` In these ${rows} the correlations that should be 0 are at most ${shown(most)}.`;
  }

  const listed = (items) => (items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items[items.length - 1]}`);
  const few = (items, most = 4) => (items.length > most ? `${items.slice(0, most).join(", ")} and ${items.length - most} more` : listed(items));

  function meaning(now) {
    if (P === 1) return null;
    if (state.regime !== "tunable") return `${MEANING[state.regime]}${stray(now)}`;
    const [gained, most] = [height(now) - height(first), height(last) - height(first)];
    const share = most > 0.0005
      ? `, ${Math.round((100 * gained) / most)} % of the largest possible gain (${shown(most, 3)})` : "";
    return `λ goes from uncorrelated ${dimension}s (0) to the strongest alignment (1). ${lamShown(state.lam)} gains ${shown(gained, 3)} of mean alignment${share}.`;
  }

  function cost(now) {
    if (P === 1) return `With one covariate every regime gives the same ${dimension}.`;
    const pairs = arithmetic.pairs(now.among);
    const worst = pairs.filter(({ value }) => Math.abs(value) > 0.1).slice(0, 3);
    if (!worst.length) return `No two ${dimension}s correlate by more than 0.1.`;
    const part = worst.reduce((sum, { value }) => sum + 2 * value * value, 0) / now.coupling;
    const list = worst.map(({ value, p, q }) =>
      `${called[p]} with ${called[q]} (${shown(value)}; between the covariates ${shown(facts.between_covariates[p][q])})`);
    return part < 0.25 ? `The coupling is spread over many pairs. The largest correlations are ${listed(list)}.`
      : `${part > 0.995 && worst.length < pairs.length ? "Nearly all" : `${Math.round(100 * part)} %`} of the coupling comes from ${listed(list)}.`;
  }

  // Which covariate loses most alignment compared with the strongest regime, and its nearest covariate.
  function price(now) {
    if (P === 1 || state.regime === "strongest") return null;
    const lost = names.map((_, p) => ({ p, by: last.alignment[p] - now.alignment[p] })).filter(({ by }) => known(by) && by > 0.02);
    lost.sort((a, b) => b.by - a.by);
    if (!lost.length) return null;
    const { p } = lost[0];
    const others = names.map((_, q) => q).filter((q) => q !== p && known(facts.between_covariates[p][q]));
    const q = others.reduce((best, at) => (Math.abs(facts.between_covariates[p][at]) > Math.abs(facts.between_covariates[p][best]) ? at : best), others[0]);
    const tied = q !== undefined && Math.abs(facts.between_covariates[p][q]) > 0.1;
    const tie = tied ? ` This covariate correlates with ${called[q]} (${shown(facts.between_covariates[p][q])}).` : "";
    return `Compared with the strongest regime, ${called[p]} loses most: ${shown(last.alignment[p])} becomes ${shown(now.alignment[p])}.${tie}`;
  }

  function trust(now) {
    const out = now.heldOut;
    if (!out) {
      const why = facts.why_not_held_out === null ? "" : ` (${facts.why_not_held_out})`;
      return state.regime === "exclusive" && facts.folds.length
        ? [`There are no held-out numbers: without some folds, exclusive ${dimension}s do not exist.`]
        : [`There are no held-out numbers${why}. Numbers of the fitted ${rows} are too good if there are many ${dimension}s.`];
    }
    const which = (holds) => called.filter((_, p) => holds(p));
    const unjudged = which((p) => !known(out.alignment[p]));
    const gap = arithmetic.mean(names.map((_, p) => now.alignment[p] - out.alignment[p]));  // of those that are known
    const overfitted = which((p) => known(out.high[p]) && now.alignment[p] > out.high[p] && now.alignment[p] - out.alignment[p] > 0.05);
    const verdict = gap > 0.05 ? `, ${shown(gap)} lower than on the fitted ${rows}: trust the held-out numbers`
      : gap < -0.05 ? `, ${shown(-gap)} higher than on the fitted ${rows}: the folds differ, or they are small`
        : `: fitted and held-out numbers agree${overfitted.length ? " on average" : ""}`;
    const said = unjudged.length === P ? [] : [`On new ${rows} the mean alignment is ${shown(height(out), 3)}${verdict}.`];
    if (facts.about_groups) said.push(facts.about_groups);
    if (overfitted.length && overfitted.length < P) said.push(`Much better on fitted ${rows} than on new ones (overfitted): ${few(overfitted)}.`);
    const lost = which((p) => known(out.low[p]) && out.low[p] <= 0 && out.high[p] >= 0);
    if (lost.length) said.push(`On new ${rows}, alignment cannot be distinguished from zero: ${few(lost)}.`);
    const turned = which((p) => known(out.high[p]) && out.high[p] < 0);
    if (turned.length) said.push(`On new ${rows}, the correlation is negative: ${few(turned)}.`);
    if (unjudged.length) said.push(`Without held-out numbers: ${few(unjudged)}.`);
    return said;
  }

  function reading(now) {
    const said = [meaning(now), cost(now), price(now), ...trust(now)].filter((text) => text !== null);
    byId("reading").replaceChildren();
    for (const text of said) write(byId("reading"), "p", text);
  }

  function code() {
    const { regime, lam, budget } = state;
    const exact = `lam=${Number(lam.toPrecision(12))}`;
    const name = isModel ? "fa" : "aligner";
    const turn = regime === "as fitted" ? null
      : regime === "exact" ? `${name}.at(${facts.limits.code})`
      : budget !== null && !isModel ? `aligner.at(max_coupling=${budget})`
        : `${name}.${isModel ? "realign" : "at"}(${regime === "tunable" ? exact : `regime="${regime}"`})`;
    const lines = ["import covalign as ca", "", facts.code];
    if (turn !== null) lines.push(`${name} = ${turn}`);
    lines.push(isModel ? "fa.factors_, fa.summary()" : `named = aligner.transform(Z${facts.confounders.length ? ", confounders=C" : ""})`);
    if (facts.command) {
      const setting = regime === "as fitted" ? "" : regime === "exact" ? ` ${facts.limits.flags}` : budget !== null && !isModel ? ` --max-coupling ${budget}`
        : regime === "tunable" ? ` --lam ${Number(lam.toPrecision(12))}` : ` --regime ${regime}`;
      lines.push("", "# or, in a shell:", ...`${facts.command}${setting}`.split(/\r?\n|\r/).map((line) => `# ${line}`));
    }
    byId("code").textContent = `${lines.join("\n")}\n`;
  }

  byId("words").classList.toggle("wide", P === 1);
  live.onChange((now) => {
    reading(now);
    code();
  });

  // Parameters of the model, and what was decided from the data.
  const decided = { shrinkage: facts.shrinkage, ...(isModel ? { supervision: facts.supervision, regression_share: facts.regression_share } : {}) };
  const used = Object.entries(decided).filter(([, value]) => known(value)).map(([name, value]) => [`${name}, as used`, plain(value)]);
  const confounders = facts.confounders.length ? [["confounders", facts.confounders.join(", ")]] : [];
  drawing.table("settings", ["setting", "value"], [...Object.entries(facts.parameters), ...used, ...confounders]);
})();
