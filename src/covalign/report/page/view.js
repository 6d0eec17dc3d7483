// What is seen. Numbers come from arithmetic.js; names are only ever set as text, so nothing in them is markup.
"use strict";

(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const names = facts.covariates;
  const P = names.length;
  const state = { regime: facts.regime, lam: facts.lam };
  const SVG = "http://www.w3.org/2000/svg";
  const byId = (id) => document.getElementById(id);
  const shown = (value, digits = 2) =>
    value === null || Number.isNaN(value) ? "–" : value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1");

  function draw(parent, tag, attributes = {}, text = null) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== null) element.textContent = text;
    parent.appendChild(element);
    return element;
  }

  function write(parent, tag, text = null, attributes = {}) {
    const element = document.createElement(tag);
    if (text !== null) element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    parent.appendChild(element);
    return element;
  }

  function canvas(id, width, height, label) {
    const svg = byId(id);
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-label", label);
    return svg;
  }

  const short = (name, most) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

  // -- the frontier ---------------------------------------------------------------------------------------------------

  const steps = P > 30 ? 20 : 50;
  const curve = Array.from({ length: steps + 1 }, (_, i) => arithmetic.measured(facts, "tunable", i / steps));
  const corner = facts.why_no_exclusive === null ? arithmetic.measured(facts, "exclusive", 0) : null;
  const height = (found) => arithmetic.mean(found.alignment);

  function ticks(low, high, count) {
    const raw = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw);
    const found = [];
    for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + 1e-9 * step; t += step) found.push(t);
    return found;
  }

  function frontier(now) {
    const [W, H, left, right, top, bottom] = [460, 320, 52, 14, 12, 44];
    const svg = canvas("frontier", W, H, "Mean alignment against coupling, along lambda");
    const points = [...curve, ...(corner ? [corner] : [])];
    const held = points.map((found) => found.heldOut).filter((found) => found !== null);
    const xs = [...points, ...held].map((found) => found.coupling);
    const ys = [...points, ...held].map(height);
    const [x1, y0, y1] = [Math.max(...xs, 1e-3) * 1.05, Math.min(...ys), Math.max(...ys)];
    const [low, high] = [y0 - 0.08 * (y1 - y0 || 0.1), y1 + 0.08 * (y1 - y0 || 0.1)];
    const x = (value) => left + (value / x1) * (W - left - right);
    const y = (value) => H - bottom - ((value - low) / (high - low)) * (H - top - bottom);
    for (const tick of ticks(0, x1, 5)) {
      draw(svg, "line", { x1: x(tick), x2: x(tick), y1: top, y2: H - bottom, class: "grid" });
      draw(svg, "text", { x: x(tick), y: H - bottom + 16, class: "tick", "text-anchor": "middle" }, `${+tick.toPrecision(3)}`);
    }
    for (const tick of ticks(low, high, 5)) {
      draw(svg, "line", { x1: left, x2: W - right, y1: y(tick), y2: y(tick), class: "grid" });
      draw(svg, "text", { x: left - 6, y: y(tick) + 4, class: "tick", "text-anchor": "end" }, `${+tick.toPrecision(3)}`);
    }
    draw(svg, "text", { x: (left + W - right) / 2, y: H - 8, class: "label", "text-anchor": "middle" }, "coupling of the dimensions");
    draw(svg, "text", { x: 14, y: H / 2, class: "label", "text-anchor": "middle", transform: `rotate(-90 14 ${H / 2})` }, "mean alignment");
    const path = (list) => list.map((found, i) => `${i ? "L" : "M"}${x(found.coupling).toFixed(1)} ${y(height(found)).toFixed(1)}`).join("");
    draw(svg, "path", { d: path(curve), class: "line fitted" });
    if (curve[0].heldOut) draw(svg, "path", { d: path(curve.map((found) => found.heldOut)), class: "line held" });
    if (corner) {
      for (const [found, kind] of [[corner, "fitted"], [corner.heldOut, "held"]]) {
        if (!found) continue;
        const [a, b] = [x(found.coupling), y(height(found))];
        draw(svg, "path", { d: `M${a} ${b - 6}L${a + 6} ${b}L${a} ${b + 6}L${a - 6} ${b}Z`, class: `corner ${kind}` });
      }
    }
    for (const [found, kind] of [[now, "fitted"], [now.heldOut, "held"]]) {
      if (found) draw(svg, "circle", { cx: x(found.coupling), cy: y(height(found)), r: 6, class: `now ${kind}` });
    }
  }

  // -- alignment of every covariate -----------------------------------------------------------------------------------

  function alignments(now) {
    const [W, row, left, right, top] = [460, 22, 150, 20, 8];
    const H = top + row * P + 34;
    const svg = canvas("alignments", W, H, "Alignment of every covariate");
    const all = [...now.alignment, ...(now.heldOut ? [...now.heldOut.low, ...now.heldOut.alignment] : [])];
    const low = Math.min(0, ...all.filter((value) => !Number.isNaN(value)));
    const x = (value) => left + ((Math.min(1, value) - low) / (1 - low)) * (W - left - right);
    for (const tick of ticks(low, 1, 5)) {
      draw(svg, "line", { x1: x(tick), x2: x(tick), y1: top, y2: top + row * P, class: "grid" });
      draw(svg, "text", { x: x(tick), y: top + row * P + 16, class: "tick", "text-anchor": "middle" }, `${+tick.toPrecision(3)}`);
    }
    names.forEach((name, p) => {
      const y = top + row * (p + 0.5);
      const label = draw(svg, "text", { x: left - 8, y: y + 4, class: "name", "text-anchor": "end" }, short(name, 20));
      draw(label, "title", {}, name);
      if (now.heldOut && !Number.isNaN(now.heldOut.low[p])) {
        draw(svg, "line", { x1: x(now.heldOut.low[p]), x2: x(now.heldOut.high[p]), y1: y, y2: y, class: "interval" });
        draw(svg, "circle", { cx: x(now.heldOut.alignment[p]), cy: y, r: 5, class: "dot held" });
      }
      if (!Number.isNaN(now.alignment[p])) {
        draw(svg, "circle", { cx: x(now.alignment[p]), cy: y, r: 5, class: "dot fitted" });
      }
    });
  }

  function table(now) {
    const body = byId("numbers");
    body.replaceChildren();
    names.forEach((name, p) => {
      const row = write(body, "tr");
      write(row, "th", name, { scope: "row" });
      write(row, "td", shown(now.alignment[p], 3));
      write(row, "td", now.heldOut ? shown(now.heldOut.alignment[p], 3) : "–");
      write(row, "td", now.heldOut && !Number.isNaN(now.heldOut.low[p])
        ? `${shown(now.heldOut.low[p], 2)} to ${shown(now.heldOut.high[p], 2)}` : "–");
    });
  }

  // -- matrices -------------------------------------------------------------------------------------------------------

  function heat(id, matrix, rows, columns, label) {
    const [size, left, top] = [Math.max(7, Math.min(44, 360 / P)), P > 30 ? 70 : 104, P > 30 ? 70 : 92];
    const svg = canvas(id, left + size * P + 8, top + size * P + 8, label);
    const words = Math.floor(left / 6.2);
    rows.forEach((name, p) => {
      const text = { x: left - 6, y: top + size * (p + 0.5) + 4, class: P > 30 ? "name tiny" : "name", "text-anchor": "end" };
      draw(draw(svg, "text", text, short(name, words)), "title", {}, name);
      const [a, b] = [left + size * (p + 0.5) + 4, top - 6];
      const turned = { x: a, y: b, class: P > 30 ? "name tiny" : "name", transform: `rotate(-60 ${a} ${b})` };
      draw(draw(svg, "text", turned, short(columns[p], words)), "title", {}, columns[p]);
      matrix[p].forEach((value, q) => {
        const known = !Number.isNaN(value) && value !== null;
        const strength = known ? Math.min(1, Math.abs(value)) : 0;
        const cell = draw(svg, "rect", {
          x: left + size * q, y: top + size * p, width: size - 1, height: size - 1, rx: Math.min(3, size / 8),
          class: !known ? "cell unknown" : value < 0 ? "cell negative" : "cell positive", style: `--strength:${strength.toFixed(3)}`,
        });
        draw(cell, "title", {}, `${name}, ${columns[q]}: ${shown(value, 3)}`);
        if (P <= 12) {
          const where = { x: left + size * (q + 0.5) - 0.5, y: top + size * (p + 0.5) + 4, "text-anchor": "middle" };
          draw(svg, "text", { ...where, class: strength > 0.55 ? "value strong" : "value" }, shown(value).replace("0.", "."));
        }
      });
    });
  }

  // -- in words -------------------------------------------------------------------------------------------------------

  function pairs(matrix) {
    const found = [];
    for (let p = 0; p < P; p += 1) for (let q = 0; q < p; q += 1) found.push([Math.abs(matrix[p][q]), matrix[p][q], q, p]);
    return found.sort((a, b) => b[0] - a[0]);
  }

  const MEANING = {
    independent: "Dimensions are uncorrelated with each other, and as close to their covariates as uncorrelated dimensions can be.",
    strongest: "Every dimension is the best linear prediction of its covariate. Where covariates are predicted alike, dimensions correlate.",
    exclusive: "Every dimension correlates with its own covariate and with no other. That costs alignment, most where covariates go together.",
  };

  function reading(now) {
    const place = byId("reading");
    place.replaceChildren();
    const lam = state.lam.toFixed(2);
    write(place, "p", MEANING[state.regime]
      || `Between uncorrelated dimensions (0) and the strongest ones (1): at ${lam} the mean alignment is ${shown(height(now), 3)}, `
      + `for a coupling of ${shown(now.coupling)}.`);
    const gained = height(now) - height(curve[0]);
    const most = height(curve[curve.length - 1]) - height(curve[0]);
    if (state.regime === "tunable" && most > 0.0005) {
      write(place, "p", `That is ${Math.round((100 * gained) / most)} % of what giving up independence can bring (${shown(most, 3)} in all).`);
    }
    const worst = pairs(now.among).filter(([size]) => size > 0.1).slice(0, 3);
    if (worst.length) {
      const list = worst.map(([, value, p, q]) => `${names[p]} and ${names[q]} (${shown(value)})`).join("; ");
      write(place, "p", `The coupling comes above all from ${list}.`);
    } else if (P > 1) {
      write(place, "p", "No two dimensions correlate by more than 0.1.");
    }
    if (now.heldOut) {
      const gap = height(now) - height(now.heldOut);
      const text = gap > 0.05
        ? `On rows that were not fitted the mean alignment is ${shown(height(now.heldOut), 3)}, ${shown(gap, 2)} lower than on the fitted ones: believe the held-out numbers.`
        : `On rows that were not fitted the mean alignment is ${shown(height(now.heldOut), 3)}: the fitted rows do not flatter.`;
      write(place, "p", text);
      const lost = names.filter((_, p) => now.heldOut.low[p] <= 0);
      if (lost.length) write(place, "p", `Not told from nothing on new rows: ${lost.slice(0, 5).join(", ")}${lost.length > 5 ? ` and ${lost.length - 5} more` : ""}.`);
    } else {
      write(place, "p", "Nothing was held out here, so these numbers are those of the fitted rows.");
    }
  }

  function code() {
    const call = state.regime === "tunable" ? `lam=${+state.lam.toFixed(4)}` : `regime="${state.regime}"`;
    byId("code").textContent =
      `import covalign as ca\n\naligner = ca.LatentAligner(${facts.shrinkage_asked}).fit(Z, Y)\naligner = aligner.at(${call})\nnamed = aligner.transform(Z)\n`;
  }

  // -- all together ---------------------------------------------------------------------------------------------------

  function update() {
    const now = arithmetic.measured(facts, state.regime, state.lam);
    byId("lam").value = state.lam;
    byId("lam-shown").textContent = state.regime === "exclusive" ? "exclusive" : `λ = ${state.lam.toFixed(2)}`;
    byId("lam").setAttribute("aria-valuetext", byId("lam-shown").textContent);
    for (const button of document.querySelectorAll("[data-regime]")) {
      button.setAttribute("aria-pressed", String(button.dataset.regime === state.regime));
    }
    byId("alignment-now").textContent = shown(height(now), 3);
    byId("held-now").textContent = now.heldOut ? shown(height(now.heldOut), 3) : "–";
    byId("coupling-now").textContent = shown(now.coupling, 3);
    frontier(now);
    alignments(now);
    table(now);
    heat("with-y", now.withY, names.map((name) => `z ${name}`), names, "Correlation of dimensions with covariates");
    heat("among", now.among, names.map((name) => `z ${name}`), names.map((name) => `z ${name}`), "Correlation of dimensions with each other");
    reading(now);
    code();
    window.covalign = { facts, state: { ...state }, now };
  }

  function choose(regime, lam) {
    state.regime = regime;
    state.lam = lam;
    update();
  }

  byId("lam").addEventListener("input", (event) => {
    const lam = Number(event.target.value);
    choose(lam === 0 ? "independent" : lam === 1 ? "strongest" : "tunable", lam);
  });
  byId("independent").addEventListener("click", () => choose("independent", 0));
  byId("strongest").addEventListener("click", () => choose("strongest", 1));
  const exclusive = byId("exclusive");
  if (facts.why_no_exclusive === null) {
    exclusive.addEventListener("click", () => choose("exclusive", state.lam));
  } else {
    exclusive.disabled = true;
    byId("why-not").textContent = facts.why_no_exclusive;
  }
  byId("within").addEventListener("submit", (event) => {
    event.preventDefault();
    const budget = Number(byId("budget").value);
    if (budget >= 0) {
      const lam = arithmetic.lamWithin(facts, budget);
      choose(lam === 0 ? "independent" : lam === 1 ? "strongest" : "tunable", lam);
    }
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
  document.documentElement.classList.add("live");
  update();
})();
