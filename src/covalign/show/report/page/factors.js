// The part of the page that only factor models have: shares, samples, features, bound, gaps.
"use strict";

(() => {
  const { byId, roomOf, known, shown, lamShown, quoted, draw, write, canvas, short, fit, named, axes, padded, heat } = drawing;
  const { facts, onChange } = view;
  const { names, active, views, bound, samples, missing } = facts.factors;
  const P = facts.covariates.length;
  const NOT = "not captured";
  // Okabe and Ito's colours, distinct for colour-blind readers; then a scale of even brightness.
  const LEVELS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#7f7f7f"];
  const SCALE = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const nameOf = (k) => `${names[k]}${active[k] ? "" : " (off)"}${k < P && facts.informed[k].verdict === NOT ? ` (${NOT})` : ""}`;
  const setting = facts.regime === "tunable" ? lamShown(facts.lam) : facts.regime;

  function options(id, items, chosen) {
    const select = byId(id);
    items.forEach((item, i) => write(select, "option", short(item, 40), { value: i, ...(i === chosen ? { selected: "" } : {}) }));
    return select;
  }

  // -- informed factors -----------------------------------------------------------------------------------------------

  (() => {
    const row = (place, kind, cells) => {
      const line = write(place, "tr");
      cells.forEach((text, i) => write(line, kind === "head" || i === 0 ? "th" : "td", text, i === 0 || kind === "head" ? { scope: kind === "head" ? "col" : "row" } : {}));
    };
    row(write(byId("informed"), "thead"), "head", ["covariate", "beta", "90 % interval", "held out", "verdict"]);
    const body = write(byId("informed"), "tbody");
    for (const { covariate, beta, low, high, held_out, verdict } of facts.informed) {
      row(body, "row", [covariate, shown(beta, 3), known(low) ? `${shown(low, 3)} to ${shown(high, 3)}` : "–", shown(held_out, 3), verdict]);
    }
    byId("informed-said").textContent = `From left-out samples, in the fitted model (${setting}). A covariate is captured if they exclude a correlation of 0 with its factor, and ${NOT} if they exclude all above 0.3. Supervision ${facts.supervision}: ${
      facts.supervision > 1 ? `covariates count ${facts.supervision} times` : "covariates count once, as in the paper"}.`;
  })();

  // -- samples, features and views that own a factor ------------------------------------------------------------------

  byId("ownership").hidden = facts.factors.ownership.length === 0;
  for (const text of facts.factors.ownership) write(byId("ownership"), "p", text);

  // -- variance explained ---------------------------------------------------------------------------------------------

  const live = views.every((one) => one.live !== null);
  const most = Math.max(1e-6, ...views.flatMap((one) => one.shares)) * 1.05;
  const labels = names.map((_, k) => nameOf(k));
  const recolour = heat("shares", views.map((one) => one.name), labels, "Variance explained, by view and factor",
    { signed: false, digits: 2, most, cell: 46 });
  byId("shares-said").textContent = `Share of each view's variance: R² of each feature on one factor alone, averaged over features. All factors together: ${
    views.map((one) => `${quoted(one.name)} ${shown(one.total)}`).join(", ")}. ${
    !live ? `Shares are those of the fitted model (${setting}).` : facts.regime_from === "features" ? "Shares follow the chosen regime."
      : `Shares of informed factors follow the chosen regime; shares of free factors are those of the fitted model (${setting}).`}`;
  onChange((state) => {
    const table = views.map((one) => arithmetic.allShares(one, facts.fitted, state.regime, state.lam));
    recolour(table);
    window.covalign.shares = table;
  });

  // -- samples --------------------------------------------------------------------------------------------------------

  function scatterFrame() {
    const [all, colours] = [[...facts.covariates, ...samples.free], samples.colours];
    const [across, up] = [options("scatter-x", all, 0), options("scatter-y", all, Math.min(1, all.length - 1))];
    const colour = options("scatter-colour", colours.map((one) => one.name), 0);
    const n = samples.informed.length;
    byId("scatter-said").textContent = `${n < samples.of ? `${n} of ${samples.of} samples, evenly spread over the table` : `All ${n} samples`}. ${facts.regime_from === "features" ? "Factors" : "Informed factors"} follow the chosen regime. They know the covariates of these samples; factors of new samples do not.`;

    // F: null before any regime
    function coordinate(which, F) {
      const { informed, free_values } = F === null ? samples.stage_1 : samples;
      if (which >= P) return free_values.map((row) => row[which - P]);
      const values = informed.map((row) => (F === null ? row[which] : row.reduce((sum, value, q) => sum + value * F[which][q], 0)));
      const sd = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / n) || 1;
      return values.map((value) => value / sd);
    }

    function mix(share) {
      const at = Math.max(0, Math.min(1, share)) * (SCALE.length - 1);
      const i = Math.min(SCALE.length - 2, Math.floor(at));
      return `rgb(${SCALE[i].map((low, c) => Math.round(low + (at - i) * (SCALE[i + 1][c] - low))).join(",")})`;
    }

    function key(one, low, high) {
      const place = byId("scatter-key");
      place.replaceChildren();
      const swatch = (style, text) => {
        const item = write(place, "span");
        write(item, "i").style.background = style;
        item.append(text);
      };
      if (one.levels) one.levels.forEach((level, i) => swatch(LEVELS[i % LEVELS.length], level));
      else swatch(`linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(mix).join(",")})`, `${quoted(one.name)}, ${+low.toPrecision(3)} to ${+high.toPrecision(3)}`);
      if (one.values.some((value) => value === null)) swatch("transparent", "missing");
    }

    function paint(one) {
      const there = one.values.filter(known);
      const [low, high] = [Math.min(...there), Math.max(...there)];
      dots.forEach((dot, s) => {
        const value = one.values[s];
        const seen = known(value);
        dot.setAttribute("class", seen ? "sample" : "sample unknown");
        dot.style.fill = !seen ? "" : one.levels ? LEVELS[value % LEVELS.length] : mix((value - low) / (high - low || 1));
        dot.said = () => `${quoted(samples.names[s])}: ${!seen ? "missing" : one.levels ? quoted(one.levels[value]) : value}`;
      });
      key(one, low, high);
    }

    // The dots move with the regime: axes are drawn again, dots are moved, and recoloured only when another colour is chosen.
    const svg = canvas("scatter", 1, 1, "");
    const frame = draw(svg, "g");
    const dots = samples.names.map(() => draw(svg, "circle", { r: n > 400 ? 3.2 : 4.5 }));
    let painted = null;
    return (state) => {
      const F = state.regime === "as fitted" ? null : arithmetic.mixing(facts.fitted, state.regime, state.lam);
      const [i, j, one] = [Number(across.value), Number(up.value), colours[Number(colour.value)]];
      const [xs, ys] = [coordinate(i, F), coordinate(j, F)];
      const W = roomOf("scatter", 1080);
      const box = { W, H: Math.min(480, Math.max(300, W * 0.75)), left: 58, right: 14, top: 12, bottom: 46 };
      svg.setAttribute("viewBox", `0 0 ${box.W} ${box.H}`);
      svg.setAttribute("aria-label", `Samples: ${all[i]} against ${all[j]}, coloured by ${one.name}`);
      const limits = (values) => padded(Math.min(...values), Math.max(...values), 0.04);
      frame.replaceChildren();
      const { x, y } = axes(frame, box, limits(xs), limits(ys), [fit(all[i], 60, box.W - 90), fit(all[j], 60, box.H - 70)], [W > 600 ? 8 : 5, 6]);
      dots.forEach((dot, s) => {
        dot.setAttribute("cx", x(xs[s]).toFixed(1));
        dot.setAttribute("cy", y(ys[s]).toFixed(1));
      });
      if (painted !== one) paint(one);
      painted = one;
    };
  }

  if (samples === null) {
    byId("scatter-choices").hidden = true;
    byId("scatter").remove();
    byId("scatter-said").textContent = "The model does not hold its rows (they were read in chunks), so no samples are drawn.";
  } else {
    const move = scatterFrame();
    for (const id of ["scatter-x", "scatter-y", "scatter-colour"]) byId(id).addEventListener("change", () => move(view.state));
    onChange(move);
  }

  // -- top features ---------------------------------------------------------------------------------------------------

  const factor = options("top-factor", names.map((_, k) => nameOf(k)), 0);
  byId("top-said").textContent = `Largest loadings with their standard deviations, in the fitted model (${setting}).`;
  function top() {
    const k = Number(factor.value);
    const place = byId("top");
    place.replaceChildren();
    const reach = Math.max(1e-12, ...views.flatMap((one) => one.top[k].map(([, loading, std]) => Math.abs(loading) + std)));
    for (const one of views) {
      const box = write(place, "div");
      write(box, "h3", `${quoted(one.name)} (${one.features} features)`);
      const [W, row, left] = [420, 24, 160];
      const svg = canvas(draw(box, "svg", { role: "img" }), W, row * one.top[k].length + 4, `Top features of ${names[k]} in ${one.name}`);
      const x = (value) => left + 8 + ((value / reach + 1) / 2) * (W - left - 60);
      draw(svg, "line", { x1: x(0), x2: x(0), y1: 0, y2: row * one.top[k].length, class: "grid" });
      one.top[k].forEach(([feature, loading, std], i) => {
        const y = row * (i + 0.5);
        named(svg, { x: left, y: y + 4, class: "name", "text-anchor": "end" }, feature, fit(feature, 22, left - 4));
        const bar = { x: Math.min(x(0), x(loading)), y: y - 7, width: Math.abs(x(loading) - x(0)), height: 14, rx: 2 };
        draw(svg, "rect", { ...bar, class: loading < 0 ? "bar negative" : "bar positive" }).said = () => `${quoted(feature)}: ${shown(loading, 3)} ± ${shown(std, 3)}`;
        draw(svg, "line", { x1: x(loading - std), x2: x(loading + std), y1: y, y2: y, class: "whisker" });
        draw(svg, "text", { x: W - 2, y: y + 4, class: "tick", "text-anchor": "end" }, shown(loading));
      });
    }
  }
  factor.addEventListener("change", top);
  top();

  // -- the bound ------------------------------------------------------------------------------------------------------

  (() => {
    const end = bound.values[bound.values.length - 1];
    // Nats below the last value, on a logarithmic scale: otherwise only the first sweeps could be seen.
    const short_by = bound.values.map((value) => Math.max(end - value, 1e-4));
    const logs = short_by.slice(0, -1).map(Math.log10);
    const box = { W: roomOf("bound", 560), H: 260, left: 58, right: 14, top: 12, bottom: 46 };
    const svg = canvas("bound", box.W, box.H, "The bound, sweep by sweep");
    if (logs.length > 1) {
      const [low, high] = padded(Math.floor(Math.min(...logs)), Math.ceil(Math.max(...logs)), 0.02);
      const last = bound.at[bound.at.length - 2];
      const { x, y } = axes(svg, box, [1, last], [low, high], ["sweep", "log₁₀ of nats below the last"], [Math.min(6, last - 1), 7]);
      draw(svg, "path", { d: logs.map((value, i) => `${i ? "L" : "M"}${x(bound.at[i]).toFixed(1)} ${y(value).toFixed(1)}`).join(""), class: "line held" });
      if (logs.length <= 60) logs.forEach((value, i) => { draw(svg, "circle", { cx: x(bound.at[i]), cy: y(value), r: 3.5, class: "dot held" }).said = () => `sweep ${bound.at[i]}: ${shown(bound.values[i], 3)}`; });
    } else {
      svg.remove();
    }
    byId("bound-said").textContent = `${bound.converged ? "Converged" : "Not converged: raise max_iter"} after ${bound.sweeps} sweep${bound.sweeps > 1 ? "s" : ""} at ${shown(end, 2)} nats (${bound.posterior === "full" ? "full posterior" : "mean field"}).`;
  })();

  // -- gaps -----------------------------------------------------------------------------------------------------------

  (() => {
    const place = byId("missing");
    const n = facts.rows;
    const part = (bar, kind, count, text) => {
      if (!count) return;
      const piece = write(bar, "span", null, { class: kind });
      piece.style.flexGrow = count;
      piece.said = () => `${text}: ${count} of ${n} samples`;
    };
    for (const one of missing.views) {
      write(place, "p", `${quoted(one.name)}: ${shown(100 * one.observed, one.observed > 0.9995 ? 0 : 1)} % of cells observed${one.absent ? `, ${one.absent} samples without this view` : ""}`, { class: "said" });
      const bar = write(place, "div", null, { class: "stack" });
      part(bar, "whole", one.whole, "complete");
      part(bar, "partly", one.partly, "with gaps");
      part(bar, "absent", one.absent, "not measured");
    }
    if (missing.together.length > 1) {
      const texts = missing.together.slice(0, 6).map(({ has, samples: count }) =>
        `${count} have ${has.every(Boolean) ? "every view" : has.some(Boolean) ? views.filter((_, i) => has[i]).map((one) => quoted(one.name)).join(" + ") : "no view"}`);
      write(place, "p", `Of ${n} samples ${texts.join("; ")}${missing.together.length > 6 ? "; and others" : ""}.`);
    }
    const gone = facts.covariates.map((name, p) => [name, missing.covariates[p]]).filter(([, count]) => count > 0);
    write(place, "p", gone.length ? `Samples with unknown covariates: ${gone.slice(0, 8).map(([name, count]) => `${quoted(name)} in ${count}`).join(", ")}${gone.length > 8 ? ` and ${gone.length - 8} more` : ""}.` : "Every covariate is known for every sample.");
    if (facts.confounders.length) write(place, "p", `Confounders regressed out of views and covariates: ${facts.confounders.map(quoted).join(", ")}.`);
  })();
})();
