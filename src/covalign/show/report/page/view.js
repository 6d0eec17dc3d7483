// The part of the page that every model has. Numbers come from arithmetic.js, elements from drawing.js.
"use strict";

const view = (() => {
  const { byId, roomOf, known, shown, plain, lamShown, quoted, draw, write, canvas, axes, padded, heat, ticks } = drawing;
  const facts = JSON.parse(byId("facts").textContent);
  const names = facts.covariates;
  const called = names.map(quoted);  // in sentences
  const P = names.length;
  const isModel = facts.kind === "InformedFactorAnalysis";
  const dimension = isModel ? "factor" : "dimension";
  const along = (lam) => (lam === 0 ? "independent" : lam === 1 ? "strongest" : "tunable");
  const state = { regime: facts.regime === "tunable" ? along(facts.lam) : facts.regime, lam: facts.lam, budget: null };
  const listeners = [];

  const steps = 50;
  const curve = Array.from({ length: steps + 1 }, (_, i) => arithmetic.point(facts, "tunable", i / steps));
  const corner = facts.why_no_exclusive === null ? arithmetic.point(facts, "exclusive", 0) : null;
  const [first, last] = [curve[0], curve[curve.length - 1]];
  const height = (found) => (found.mean === undefined ? arithmetic.mean(found.alignment) : found.mean);

  // -- the frontier ---------------------------------------------------------------------------------------------------

  function frontierFrame() {
    const box = { W: roomOf("frontier", 560), H: 340, left: 58, right: 14, top: 12, bottom: 46 };
    const svg = canvas("frontier", box.W, box.H, "Mean alignment against coupling, along lambda");
    const reach = Math.max(...curve.flatMap((found) => [found.coupling, found.heldOut ? found.heldOut.coupling : 0]), 1e-3);
    const near = corner !== null && corner.coupling <= 2.5 * reach;  // a point far away would squeeze the curve
    const points = [...curve, ...(near ? [corner] : [])];
    const held = points.map((found) => found.heldOut).filter((found) => found !== null);
    const xs = [...points, ...held].map((found) => found.coupling);
    const ys = [...points, ...held].map(height).filter(known);
    const [right, [low, high]] = [Math.max(...xs, 1e-3) * 1.05, padded(Math.min(...ys), Math.max(...ys))];
    const scale = axes(svg, box, [0, right], [low, high], [`coupling of the ${dimension}s`, "mean alignment"]);
    const x = (value) => scale.x(Math.min(value, right));
    const y = (value) => scale.y(Math.max(low, Math.min(high, value)));
    const path = (list) => list.map((found, i) => `${i ? "L" : "M"}${x(found.coupling).toFixed(1)} ${y(height(found)).toFixed(1)}`).join("");
    draw(svg, "path", { d: path(curve), class: "line fitted" });
    if (first.heldOut) draw(svg, "path", { d: path(curve.map((found) => found.heldOut)), class: "line held" });
    const corners = near ? [[corner, "fitted"], [corner.heldOut, "held"]] : [];
    for (const [found, kind] of corners.filter(([found]) => found)) {
      const [a, b] = [x(found.coupling), y(height(found))];
      draw(svg, "path", { d: `M${a} ${b - 6}L${a + 6} ${b}L${a} ${b + 6}L${a - 6} ${b}Z`, class: `corner ${kind}` });
    }
    byId("diamonds").textContent = near ? "; diamonds: exclusive"
      : corner ? `; exclusive lies outside this figure: coupling ${plain(corner.coupling)}, alignment ${shown(height(corner))}` : "";
    const bar = draw(svg, "line", { class: "interval" });
    const dots = Object.fromEntries(["held", "fitted"].map((kind) => [kind, draw(svg, "circle", { r: kind === "held" ? 6 : 7, class: `now ${kind}` })]));
    return (now) => {
      for (const [found, kind] of [[now, "fitted"], [now.heldOut, "held"]]) {
        dots[kind].style.display = found ? "" : "none";
        if (!found) continue;
        dots[kind].setAttribute("cx", x(found.coupling));
        dots[kind].setAttribute("cy", y(height(found)));
      }
      const limits = now.heldOut && known(now.heldOut.meanLow);
      bar.style.display = limits ? "" : "none";
      if (limits) {
        const at = { x1: x(now.heldOut.coupling), x2: x(now.heldOut.coupling) };
        const ends = { y1: y(now.heldOut.meanLow), y2: y(now.heldOut.meanHigh) };
        for (const [name, value] of Object.entries({ ...at, ...ends })) bar.setAttribute(name, value);
      }
      svg.setAttribute("aria-label", `Mean alignment ${shown(height(now), 3)} at a coupling of ${shown(now.coupling, 3)}`);
    };
  }

  // -- alignment of every covariate -----------------------------------------------------------------------------------

  function alignmentRows() {
    const every = [...curve, ...(corner ? [corner] : [])].flatMap((found) =>
      [...found.alignment, ...(found.heldOut ? found.heldOut.low : [])]).filter(known);
    const low = Math.max(-1, Math.min(0, ...every));
    const [W, H] = [400, 24];
    const x = (value) => 8 + ((Math.max(low, Math.min(1, value)) - low) / (1 - low)) * (W - 16);
    const marks = ticks(low, 1, 5);
    const scale = canvas(draw(byId("scale"), "svg", { role: "presentation" }), W, H, "");
    for (const tick of marks.at) draw(scale, "text", { x: x(tick), y: 17, class: "tick", "text-anchor": "middle" }, marks.text(tick));
    const rows = names.map((name, p) => {
      const row = write(byId("numbers"), "tr");
      const lost = isModel && facts.informed[p].verdict === "not captured";
      write(row, "th", lost ? `${name} (not captured)` : name, { scope: "row" });
      const svg = canvas(draw(write(row, "td", null, { class: "plot" }), "svg", { "aria-hidden": "true" }), W, H, "");
      for (const tick of marks.at) draw(svg, "line", { x1: x(tick), x2: x(tick), y1: 0, y2: H, class: "grid" });
      const parts = { bar: draw(svg, "line", { y1: H / 2, y2: H / 2, class: "interval" }) };
      for (const kind of ["held", "fitted"]) parts[kind] = draw(svg, "circle", { cy: H / 2, r: kind === "held" ? 4.5 : 5.5, class: `dot ${kind}` });
      const gone = facts.rows - facts.pairs[p];
      if (gone) row.firstChild.said = () => `${called[p]}: missing in ${gone} of ${facts.rows} rows`;
      return { ...parts, cells: ["fitted", "held", "limits"].map((kind) => write(row, "td", "", { class: kind })) };
    });
    const place = (dot, value) => {
      dot.style.display = known(value) ? "" : "none";
      if (known(value)) dot.setAttribute("cx", x(value));
    };
    return (now) => rows.forEach(({ bar, fitted, held, cells }, p) => {
      const out = now.heldOut;
      const limits = out && known(out.low[p]);
      place(fitted, now.alignment[p]);
      place(held, out ? out.alignment[p] : NaN);
      bar.style.display = limits ? "" : "none";
      if (limits) {
        bar.setAttribute("x1", x(out.low[p]));
        bar.setAttribute("x2", x(out.high[p]));
      }
      cells[0].textContent = shown(now.alignment[p], 3);
      cells[1].textContent = out ? shown(out.alignment[p], 3) : "–";
      cells[2].textContent = limits ? `${shown(out.low[p], 3)} to ${shown(out.high[p], 3)}` : "–";
    });
  }

  // -- in words -------------------------------------------------------------------------------------------------------

  const rows = isModel ? "samples" : "rows";
  const granted = facts.regime_from === "model" ? " under the model" : facts.shrinkage > 0 ? ` at a shrinkage of ${plain(facts.shrinkage)}` : "";
  const MEANING = {
    independent: `The ${dimension}s are uncorrelated with each other. Among uncorrelated ${dimension}s they have the highest alignment${granted}.`,
    strongest: `Every ${dimension} is the best linear prediction of its covariate${granted}. It may correlate with the other ${dimension}s.`,
    exclusive: `Every ${dimension} correlates with its own covariate and with no other${facts.regime_from === "model" ? granted : ""}. Alignment is lower, most of all for covariates that resemble others.`,
    "as fitted": "The factors as the model found them, before any regime. Each is informed by its covariate; they may correlate.",
  };

  // A regime is exact for the moments it was made from: those of the model, or moments completed where covariates have gaps.
  function stray(now) {
    const matrix = { independent: now.among, exclusive: now.withY }[state.regime];
    if (matrix === undefined) return "";
    const most = Math.max(0, ...matrix.flatMap((row, p) => row.filter((value, q) => q !== p && known(value)).map(Math.abs)));
    return most < 0.005 ? "" : ` In these ${rows} the correlations that should be 0 are at most ${shown(most)}.`;
  }

  function pairsOf(matrix) {
    const found = [];
    for (let p = 0; p < P; p += 1) {
      for (let q = 0; q < p; q += 1) if (known(matrix[p][q])) found.push({ value: matrix[p][q], p: q, q: p });
    }
    return found.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
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
    const pairs = pairsOf(now.among);
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
    const said = [meaning(now), cost(now), price(now), ...trust(now), ...facts.about_categories].filter((text) => text !== null);
    byId("reading").replaceChildren();
    for (const text of said) write(byId("reading"), "p", text);
  }

  function code() {
    const { regime, lam, budget } = state;
    const exact = `lam=${Number(lam.toPrecision(12))}`;
    const name = isModel ? "fa" : "aligner";
    const turn = regime === "as fitted" ? null
      : budget !== null && !isModel ? `aligner.at(max_coupling=${budget})`
        : `${name}.${isModel ? "realign" : "at"}(${regime === "tunable" ? exact : `regime="${regime}"`})`;
    const lines = ["import covalign as ca", "", facts.code];
    if (turn !== null) lines.push(`${name} = ${turn}`);
    lines.push(isModel ? "fa.factors_, fa.summary()" : `named = aligner.transform(Z${facts.confounders.length ? ", confounders=C" : ""})`);
    if (facts.command) {
      const setting = regime === "as fitted" ? "" : budget !== null && !isModel ? ` --max-coupling ${budget}`
        : regime === "tunable" ? ` --lam ${Number(lam.toPrecision(12))}` : ` --regime ${regime}`;
      lines.push("", "# or, in a shell:", ...`${facts.command}${setting}`.split(/\r?\n|\r/).map((line) => `# ${line}`));
    }
    byId("code").textContent = `${lines.join("\n")}\n`;
  }

  // -- all together ---------------------------------------------------------------------------------------------------

  const dimensions = names.map((name) => `z ${name}`);
  const matrices = P > 1 ? [
    [heat("with-y", dimensions, names, "Correlation of dimensions with covariates"), (now) => now.withY],
    [heat("among", dimensions, dimensions, "Correlation of dimensions with each other"), (now) => now.among],
  ] : [];
  if (P === 1) for (const id of ["with-y", "among"]) byId(id).closest("section").hidden = true;
  const moveRows = alignmentRows();
  let moveFrontier = null;
  if (P === 1) byId("trade-off").hidden = true;
  byId("words").classList.toggle("wide", P === 1);
  byId("rows").classList.toggle("tall", P > 24);

  function settingShown() {
    if (state.regime === "tunable") return lamShown(state.lam);
    return { independent: lamShown(0), strongest: lamShown(1) }[state.regime] || state.regime;
  }

  function update() {
    const now = arithmetic.measured(facts, state.regime, state.lam);
    byId("lam").value = state.lam;
    byId("lam-shown").textContent = settingShown();
    byId("lam").setAttribute("aria-valuetext", settingShown());
    byId("lam").classList.toggle("aside", ["exclusive", "as fitted"].includes(state.regime));
    for (const button of document.querySelectorAll("[data-regime]")) {
      button.setAttribute("aria-pressed", String(button.dataset.regime === state.regime));
    }
    const out = now.heldOut;
    byId("alignment-now").textContent = shown(height(now), 3);
    byId("held-now").textContent = out ? shown(height(out), 3) : "–";
    byId("held-limits").textContent = out && known(out.meanLow) ? `(${shown(out.meanLow, 3)} to ${shown(out.meanHigh, 3)})` : "";
    byId("coupling-now").textContent = shown(now.coupling, 3);
    moveFrontier(now);
    moveRows(now);
    for (const [recolour, of] of matrices) recolour(of(now));
    reading(now);
    code();
    window.covalign = { facts, state: { ...state }, now };
    for (const listener of listeners) listener(state, now);
  }

  let waiting = false;
  function choose(regime, lam, budget = null) {
    Object.assign(state, { regime, lam, budget });
    if (budget === null) byId("budget-said").textContent = "";
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; update(); });
  }
  const slide = (lam, budget = null) => choose(along(lam), lam, budget);

  function within() {
    const budget = Number(byId("budget").value);
    if (!(budget >= 0) || byId("budget").value === "") return;
    const lam = arithmetic.lamWithin(facts, budget);
    const least = first.coupling;
    slide(lam, budget);
    byId("budget-said").textContent = lam === 1 ? "Even the strongest regime stays within this limit."
      : lam === 0 && least > budget + 1e-9 ? `No λ stays within this limit: the coupling is ${shown(least, 3)} even for λ = 0.` : "";
  }

  byId("lam").addEventListener("input", (event) => slide(Number(event.target.value)));
  byId("independent").addEventListener("click", () => slide(0));
  byId("strongest").addEventListener("click", () => slide(1));
  byId("as-fitted").hidden = !isModel;
  byId("as-fitted").addEventListener("click", () => choose("as fitted", state.lam));
  const exclusive = byId("exclusive");
  if (corner) {
    exclusive.addEventListener("click", () => choose("exclusive", state.lam));
  } else {
    exclusive.disabled = true;
    byId("why-not").textContent = `There is no exclusive regime: ${facts.why_no_exclusive}`;
  }
  byId("budget").value = +curve[Math.round(steps / 2)].coupling.toPrecision(2);
  if (P === 1) byId("within").hidden = true;
  byId("within").addEventListener("submit", (event) => {
    event.preventDefault();
    within();
  });
  byId("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(byId("code").textContent);
      byId("copy").textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(byId("code"));
      byId("copy").textContent = "Press Ctrl-C";
    }
    setTimeout(() => { byId("copy").textContent = "Copy"; }, 1500);
  });
  if (isModel) for (const word of document.querySelectorAll("[data-model]")) word.textContent = word.dataset.model;
  document.documentElement.classList.add("live");
  moveFrontier = frontierFrame();  // now that there is a width to fill
  update();
  let wide = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === wide) return;  // the bars of a phone's browser appear and disappear
    wide = window.innerWidth;
    moveFrontier = frontierFrame();
    update();
  });

  return {
    facts,
    state,
    dimension,
    onChange(listener) {
      listeners.push(listener);
      listener(state, window.covalign.now);
    },
  };
})();
