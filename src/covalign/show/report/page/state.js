// The facts, the setting that is chosen, and who is told when it changes.
"use strict";

const live = (() => {
  const { byId, quoted } = drawing;
  const facts = JSON.parse(byId("facts").textContent);
  const names = facts.covariates;
  const isModel = facts.kind === "InformedFactorAnalysis";
  const along = (lam) => (lam === 0 ? "independent" : lam === 1 ? "strongest" : "tunable");
  const state = { regime: facts.regime === "tunable" ? along(facts.lam) : facts.regime, lam: facts.lam, budget: null };
  const listeners = [];

  const steps = 50;
  const curve = Array.from({ length: steps + 1 }, (_, i) => arithmetic.point(facts, "tunable", i / steps));
  const corner = facts.why_no_exclusive === null ? arithmetic.point(facts, "exclusive", 0) : null;
  const height = (found) => (found.mean === undefined ? arithmetic.mean(found.alignment) : found.mean);

  function update() {
    const now = arithmetic.measured(facts, state.regime, state.lam);
    window.covalign = { ...window.covalign, facts, state: { ...state }, now };
    for (const listener of listeners) listener(now, state);
  }

  let waiting = false;
  function choose(regime, lam, budget = null) {
    Object.assign(state, { regime, lam, budget });
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; update(); });
  }

  return {
    facts,
    names,
    called: names.map(quoted),  // in sentences
    P: names.length,
    isModel,
    dimension: isModel ? "factor" : "dimension",
    rows: isModel ? "samples" : "rows",
    state,
    curve,
    corner,
    first: curve[0],
    last: curve[steps],
    height,
    update,
    choose,
    slide: (lam, budget = null) => choose(along(lam), lam, budget),
    onChange: (listener) => listeners.push(listener),  // before the first update
  };
})();
