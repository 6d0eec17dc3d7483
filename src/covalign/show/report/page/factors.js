// Factors of a model: the variance they explain, their features and gene sets.
"use strict";

(() => {
  const { byId, shown, lamShown, quoted, write, words, grid, table, options } = drawing;
  const { facts, P } = live;
  const { names, active, views, sets } = facts.factors;
  const NOT = facts.verdicts.names[2];
  const LEADING = 3;  // features in the table
  const nameOf = (k) => `${names[k]}${active[k] ? "" : " (off)"}${k < P && facts.informed[k].verdict === NOT ? ` (${NOT})` : ""}`;
  const setting = facts.regime === "tunable" ? lamShown(facts.lam) : facts.regime;

  // -- variance explained ---------------------------------------------------------------------------------------------

  const leading = (k) => views.flatMap((one) => one.top[k].map(([feature, loading]) => ({ feature, loading, share: Math.abs(loading) / largest(one) })))
    .sort((a, b) => b.share - a.share).slice(0, LEADING).map(({ feature, loading }) => `${feature}\u00a0${loading < 0 ? "−" : "+"}`).join(", ");
  const largest = (one) => Math.max(1e-300, ...one.top.flat().map(([, loading]) => Math.abs(loading)));
  const best = (k) => sets.best[k].filter(({ q }) => q < sets.below).map((one) => `${one.set} (${one.direction})`).slice(0, 2).join(", ") || "–";
  const notes = [["leading features", leading], ...(sets ? [["gene sets", best]] : [])];

  const most = Math.max(1e-6, ...views.flatMap((one) => one.shares)) * 1.05;
  const recolour = grid("shares", names.map((_, k) => nameOf(k)), views.map((one) => one.name || "share"), "Variance explained, by factor and view",
    { signed: false, most, head: "factor", upright: true, notes });
  byId("factors").classList.toggle("tall", names.length > 24);
  live.onChange((_, state) => {
    const shares = views.map((one) => arithmetic.allShares(one, facts.fitted, state.regime, state.lam));
    recolour(names.map((__, k) => shares.map((of) => of[k])));
    window.covalign.shares = shares;
  });
  const follow = !views.every((one) => one.live !== null) ? `Shares are those of the fitted model (${setting}).`
    : facts.regime_from === "features" ? "Shares follow the chosen regime."
      : `Shares of informed factors follow the chosen regime; shares of free factors are those of the fitted model (${setting}).`;
  const total = views.map((one) => `${one.name ? `${quoted(one.name)} ` : ""}${shown(one.total)}`).join(", ");
  byId("shares-said").textContent = `Share of each view's variance: R² of each feature on one factor alone, averaged over features. All factors together: ${total}. ${follow} + and − are the signs of loadings.`;

  // -- one factor -----------------------------------------------------------------------------------------------------

  const factor = options("top-factor", names.map((_, k) => nameOf(k)), 0);
  byId("top-said").textContent = `Largest loadings with their standard deviations, in the fitted model (${setting}). Features with less than a hundredth of the largest loading of their view are not listed.`;

  // Digits that tell the smallest listed loading from 0.
  const digitsOf = (one) => Math.max(2, Math.min(8, 2 - Math.floor(Math.log10(largest(one)))));

  function features(place, one, k) {
    const box = write(place, "div");
    write(box, "h3", one.name ? `${quoted(one.name)} (${one.features} features)` : `${one.features} features`);
    const top = one.top[k];
    if (!top.length) {
      write(box, "p", "No feature of this view has a loading on this factor.");
      return;
    }
    const reach = Math.max(...top.map(([, loading, std]) => Math.abs(loading) + std));
    const at = (value) => `${(50 * (1 + value / reach)).toFixed(1)}%`;
    const rows = write(write(box, "table", null, { class: "bars" }), "tbody");
    for (const [feature, loading, std] of top) {
      const row = write(rows, "tr");
      words(row, "th", feature, { scope: "row" });
      const track = write(write(row, "td", null, { class: "plot", "aria-hidden": "true" }), "div", null, { class: "track" });
      const bar = write(track, "i", null, { class: loading < 0 ? "negative" : "positive" });
      Object.assign(bar.style, { left: at(Math.min(0, loading)), width: `${((50 * Math.abs(loading)) / reach).toFixed(1)}%` });
      Object.assign(write(track, "u").style, { left: at(loading - std), width: `${((100 * std) / reach).toFixed(1)}%` });
      const cell = write(row, "td", shown(loading, digitsOf(one)));
      cell.said = () => `${quoted(feature)}: ${shown(loading, 3)} ± ${shown(std, 3)}`;
    }
  }

  const ofChance = (p) => (p >= 0.0005 ? shown(p, 3) : p.toExponential(1));

  function setsOf(place, k) {
    write(place, "h3", "Gene sets");
    const unmatched = Object.values(sets.unmatched).reduce((sum, count) => sum + count, 0);
    const about = `${sets.tested} tests of ${sets.given} sets for this factor, ${sets.found[k]} with q < ${sets.below}.${unmatched ? ` ${unmatched === 1 ? "1 name of the sets is no feature" : `${unmatched} names of the sets are no features`}.` : ""}${sets.note ? ` Note: ${sets.note}.` : ""}`;
    if (sets.best[k].length) {
      const box = write(place, "div", null, { class: "scroll", tabindex: "0", role: "region", "aria-label": "Gene sets" });
      table(write(box, "table"), ["set", "view", "genes", "direction", "statistic", "p", "q"], sets.best[k].map((one) =>
        [one.set, one.view, String(one.size), one.direction, shown(one.statistic), ofChance(one.p), ofChance(one.q)]));
    }
    write(place, "p", sets.best[k].length ? `${about} Up: the loadings of the set are above those of other genes. q: false discovery rate.` : "Not tested: this factor is off.", { class: "key" });
  }

  function chosen() {
    const k = Number(factor.value);
    byId("top").replaceChildren();
    for (const one of views) features(byId("top"), one, k);
    byId("sets").replaceChildren();
    if (sets) setsOf(byId("sets"), k);
  }
  factor.addEventListener("change", chosen);
  chosen();
})();
