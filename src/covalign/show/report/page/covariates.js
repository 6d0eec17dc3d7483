// Every covariate: a table to sort and to search, and the correlations of the dimensions.
"use strict";

(() => {
  const { byId, known, shown, draw, write, words, canvas, ticks, grid, mosaic, table } = drawing;
  const { facts, names, called, P, isModel, dimension, curve, corner } = live;
  const MANY = 12;  // covariates: beyond, they are numbered and can be searched, and matrices are folded away
  const PAIRS = 15;
  const [CAPTURED, UNCLEAR, NOT] = facts.verdicts.names;

  const verdict = (p, out) => {
    if (isModel) return facts.folds.length ? facts.informed[p].verdict : "–";
    if (!out || !known(out.low[p]) || !known(out.high[p])) return out ? UNCLEAR : "–";
    return out.low[p] > 0 ? CAPTURED : out.high[p] < facts.verdicts.small ? NOT : UNCLEAR;
  };

  // -- the table ------------------------------------------------------------------------------------------------------

  const every = [...curve, ...(corner ? [corner] : [])].flatMap((found) =>
    [...found.alignment, ...(found.heldOut ? found.heldOut.low : [])]).filter(known);
  const low = Math.max(-1, Math.min(0, ...every));
  const [W, H] = [240, 24];
  const x = (value) => 12 + ((Math.max(low, Math.min(1, value)) - low) / (1 - low)) * (W - 24);
  const marks = ticks(low, 1, 3);

  function row(name, p) {
    const line = write(byId("numbers"), "tr");
    if (P > MANY) write(line, "td", String(p + 1), { class: "no" });
    const head = words(line, "th", name, { scope: "row" });
    const svg = canvas(draw(write(line, "td", null, { class: "plot" }), "svg", { "aria-hidden": "true" }), W, H);
    for (const tick of marks.at) draw(svg, "line", { x1: x(tick), x2: x(tick), y1: 0, y2: H, class: "grid" });
    const parts = { line, bar: draw(svg, "line", { y1: H / 2, y2: H / 2, class: "interval" }) };
    for (const kind of ["held", "fitted"]) parts[kind] = draw(svg, "circle", { cy: H / 2, r: kind === "held" ? 4.5 : 5.5, class: `dot ${kind}` });
    const gone = facts.rows - facts.pairs[p];
    if (gone) head.said = () => `${called[p]}: missing in ${gone} of ${facts.rows} rows`;
    parts.cells = Object.fromEntries(["fitted", "held", "limits", ...(isModel ? ["beta"] : []), "verdict"].map((kind) => [kind, write(line, "td", "", { class: kind })]));
    if (isModel) {
      const { beta, low: from, high: to } = facts.informed[p];
      parts.cells.beta.textContent = known(from) ? `${shown(beta, 3)} (${shown(from, 2)} to ${shown(to, 2)})` : shown(beta, 3);
    }
    return parts;
  }

  const lines = names.map(row);
  const place = (dot, value) => {
    dot.style.display = known(value) ? "" : "none";
    if (known(value)) dot.setAttribute("cx", x(value));
  };

  function fill(now) {
    const out = now.heldOut;
    lines.forEach(({ bar, fitted, held, cells }, p) => {
      const limits = out && known(out.low[p]);
      place(fitted, now.alignment[p]);
      place(held, out ? out.alignment[p] : NaN);
      bar.style.display = limits ? "" : "none";
      if (limits) {
        bar.setAttribute("x1", x(out.low[p]));
        bar.setAttribute("x2", x(out.high[p]));
      }
      cells.fitted.textContent = shown(now.alignment[p], 3);
      cells.held.textContent = out ? shown(out.alignment[p], 3) : "–";
      cells.limits.textContent = limits ? `${shown(out.low[p], 3)} to ${shown(out.high[p], 3)}` : "–";
      cells.verdict.textContent = verdict(p, out);
      cells.verdict.dataset.verdict = cells.verdict.textContent;
    });
  }

  // -- order and search -----------------------------------------------------------------------------------------------

  const lost = (value) => (known(value) ? value : -2);
  const KEYS = {
    no: (p) => p,
    covariate: (p) => names[p],
    fitted: (p, now) => -lost(now.alignment[p]),
    held: (p, now) => -lost(now.heldOut ? now.heldOut.alignment[p] : NaN),
    beta: (p) => -lost(facts.informed[p].beta),
    verdict: (p, now) => [CAPTURED, UNCLEAR, NOT, "–"].indexOf(verdict(p, now.heldOut)),
  };
  const order = { key: "no", turned: false };
  let latest = null;

  function arrange() {
    const key = KEYS[order.key];
    const values = names.map((_, p) => key(p, latest));
    const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b);
    const sorted = names.map((_, p) => p).sort((p, q) => (order.turned ? -1 : 1) * compare(values[p], values[q]) || p - q);
    const body = byId("numbers");
    sorted.forEach((p, i) => { if (body.children[i] !== lines[p].line) body.insertBefore(lines[p].line, body.children[i]); });
  }

  function head() {
    const said = { no: "no.", covariate: "covariate", plot: null, fitted: "fitted", held: "held out", limits: "90 % interval", beta: "beta (90 %)", verdict: "verdict" };
    const kinds = [...(P > MANY ? ["no"] : []), "covariate", "plot", "fitted", "held", "limits", ...(isModel ? ["beta"] : []), "verdict"];
    for (const kind of kinds) {
      const cell = write(byId("head"), kind === "plot" ? "td" : "th", null, { class: kind, ...(kind === "plot" ? {} : { scope: "col" }) });
      if (kind === "plot") {
        const scale = canvas(draw(cell, "svg", { "aria-hidden": "true" }), W, H);
        for (const tick of marks.at) draw(scale, "text", { x: x(tick), y: 17, class: "tick", "text-anchor": "middle" }, marks.text(tick));
      } else if (kind === "limits" || P === 1) {
        cell.textContent = said[kind];
      } else {
        const button = write(cell, "button", said[kind], { type: "button", class: "sort" });
        button.addEventListener("click", () => {
          Object.assign(order, { turned: order.key === kind ? !order.turned : false, key: kind });
          for (const other of byId("head").children) other.removeAttribute("aria-sort");
          cell.setAttribute("aria-sort", (kind === "fitted" || kind === "held" || kind === "beta") !== order.turned ? "descending" : "ascending");
          arrange();
        });
      }
    }
  }

  function search() {
    const wanted = byId("find").value.trim().toLowerCase();
    const holds = names.map((name) => name.toLowerCase().includes(wanted));
    lines.forEach(({ line }, p) => { line.hidden = !holds[p]; });
    byId("found").textContent = wanted ? `${holds.filter(Boolean).length} of ${P} covariates` : "";
  }

  head();
  byId("search").hidden = P <= MANY;
  byId("find").addEventListener("input", search);
  byId("rows").classList.toggle("tall", P > 24);
  live.onChange((now) => {
    latest = now;
    fill(now);
    if (order.key !== "no") arrange();
  });
  const supervision = !isModel ? "" : ` beta and the verdict are those of the fitted model, from left-out samples. Supervision ${facts.supervision}: ${
    facts.supervision > 1 ? `covariates count ${facts.supervision} times` : "covariates count once, as in the paper"}.${
    facts.regression_share > 0 ? ` A share of ${facts.regression_share} of the informed factors of new samples is ridge regression on all features, which know more than K factors do.` : ""}`;
  byId("covariates-said").textContent = `Circles: fitted ${live.rows}; dots and bars: held out, with a 90 % interval. Captured: left-out ${live.rows} exclude a correlation of 0; ${NOT}: they exclude all above ${facts.verdicts.small}.${supervision}`;
  for (const text of facts.about_categories) write(byId("categories"), "p", text);

  // -- correlations ---------------------------------------------------------------------------------------------------

  const between = (p, q) => facts.between_covariates[p][q];
  byId("matrices").hidden = P === 1;
  byId("pairs").hidden = P <= MANY;
  if (P === 1) return;
  const dimensions = names.map((name) => `z ${name}`);
  byId("matrices").classList.toggle("plain", P <= MANY);
  byId("matrices").open = P <= MANY;
  if (P > MANY) for (const place of document.querySelectorAll(".numbered")) place.textContent = " Numbers are those of the table of covariates.";
  const made = P <= MANY ? grid : mosaic;
  const matrices = [
    [made("with-y", dimensions, names, `Correlations of the ${dimension}s with the covariates`), (now) => now.withY],
    [made("among", dimensions, dimensions, `Correlations of the ${dimension}s with each other`), (now) => now.among],
  ];
  const recolour = () => { if (byId("matrices").open) for (const [colour, of] of matrices) colour(of(latest)); };
  byId("matrices").addEventListener("toggle", recolour);
  live.onChange(recolour);
  if (P > MANY) {
    live.onChange(({ among }) => {
      const found = arithmetic.pairs(among).slice(0, PAIRS);
      table("closest", [dimension, `other ${dimension}`, "correlation", "between the covariates"],
        found.map(({ value, p, q }) => [names[p], names[q], shown(value, 3), shown(between(p, q), 3)]));
    });
  }
})();
