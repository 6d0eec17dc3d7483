// Mean alignment against coupling. Axes have a least length, so that a difference that does not matter looks like one.
"use strict";

const frontier = (() => {
  const { byId, roomOf, known, shown, plain, draw, canvas, axes, atLeast } = drawing;
  const { facts, P, dimension, curve, corner, first, last, height } = live;
  const { coupling: leastAcross, alignment: leastUp } = facts.least_axes;

  // Mean alignment of the exact trade-off at the coupling of every point of the curve
  const exact = facts.exact ? curve.map((found, i) => height(found) + above(i / (curve.length - 1))) : null;

  function above(lam) {
    const { lam: at, above: values } = facts.exact;
    const next = Math.max(1, at.findIndex((value) => value >= lam));
    const share = (lam - at[next - 1]) / (at[next] - at[next - 1]);
    return (1 - share) * values[next - 1] + share * values[next];
  }

  // What is drawn, and the ends of both axes.
  function extent() {
    const reach = Math.max(...curve.flatMap((found) => [found.coupling, found.heldOut ? found.heldOut.coupling : 0]), leastAcross);
    // A point far away would squeeze the curve.
    const near = corner !== null && corner.coupling <= 1.5 * reach && height(corner) > Math.min(height(first), height(last)) - 1.5 * leastUp;
    const points = [...curve, ...(near ? [corner] : [])];
    const held = points.map((found) => found.heldOut).filter((found) => found !== null);
    const xs = [...points, ...held].map((found) => found.coupling);
    const ends = held.flatMap((found) => [found.meanLow, found.meanHigh]);
    const ys = [...[...points, ...held].map(height), ...ends, ...(exact || [])].filter(known);
    const right = Math.max(Math.max(...xs) * 1.05, leastAcross);
    const up = ys.length ? atLeast(Math.min(...ys), Math.max(...ys), leastUp, 0.05) : [0, 1];
    return { near, right, up };
  }

  function said() {
    const [low, high] = [height(first), height(last)];
    const across = Math.max(...curve.map((found) => found.coupling));
    const texts = [];
    if (across * 1.05 < leastAcross) texts.push(`Coupling runs only from ${plain(first.coupling)} to ${plain(across)} here; the axis reaches ${leastAcross}, so that this is not magnified.`);
    if (facts.learns && curve.some((found) => found.heldOut && found.heldOut.meanLow >= height(found.heldOut) - 1e-9)) texts.push(`The interval is that of the map, which has seen all rows; the line is that of fits without a fold, so it may lie at the lower edge.`);
    if (Math.abs(high - low) < 0.01) texts.push(`Mean alignment on the fitted ${live.rows} changes by ${shown(high - low, 4)} along λ.`);
    return texts.join(" ");
  }

  function frame() {
    const box = { W: roomOf("frontier", 560), H: 340, left: 58, right: 14, top: 16, bottom: 46 };
    const svg = canvas("frontier", box.W, box.H, "");
    const { near, right, up: [low, high] } = extent();
    const scale = axes(svg, box, [0, right], [low, high], [`coupling of the ${dimension}s`, "mean alignment"]);
    const x = (value) => scale.x(Math.min(value, right));
    const y = (value) => scale.y(Math.max(low, Math.min(high, value)));
    const line = (list, of) => list.map((found, i) => `${i ? "L" : "M"}${x(found.coupling).toFixed(1)} ${y(of(found)).toFixed(1)}`).join("");
    const held = curve.map((found) => found.heldOut).filter((found) => found && known(height(found)));
    const banded = held.filter((found) => known(found.meanLow));
    if (banded.length) {
      const back = line([...banded].reverse(), (found) => found.meanLow).replace("M", "L");
      draw(svg, "path", { d: `${line(banded, (found) => found.meanHigh)}${back}Z`, class: "band" });
    }
    if (held.length) draw(svg, "path", { d: line(held, height), class: "line held" });
    if (known(height(first))) draw(svg, "path", { d: line(curve, height), class: "line fitted" });
    if (exact) draw(svg, "path", { d: line(curve, (found) => exact[curve.indexOf(found)]), class: "line exact" });
    const corners = near ? [[corner, "fitted"], [corner.heldOut, "held"]] : [];
    for (const [found, kind] of corners.filter(([found]) => found && known(height(found)))) {
      const [a, b] = [x(found.coupling), y(height(found))];
      draw(svg, "path", { d: `M${a} ${b - 6}L${a + 6} ${b}L${a} ${b + 6}L${a - 6} ${b}Z`, class: `corner ${kind}` });
    }
    byId("diamonds").textContent = near ? "; diamonds: exclusive"
      : corner ? `; exclusive lies outside this figure: coupling ${plain(corner.coupling)}, alignment ${shown(height(corner))}` : "";
    return mover(svg, x, y);
  }

  function mover(svg, x, y) {
    const bar = draw(svg, "line", { class: "interval" });
    const dots = Object.fromEntries(["held", "fitted"].map((kind) => [kind, draw(svg, "circle", { r: kind === "held" ? 6 : 7, class: `now ${kind}` })]));
    return (now) => {
      for (const [found, kind] of [[now, "fitted"], [now.heldOut, "held"]]) {
        const there = found && known(height(found));
        dots[kind].style.display = there ? "" : "none";
        if (!there) continue;
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
      svg.setAttribute("aria-label", `Mean alignment against coupling. Here: mean alignment ${shown(height(now), 3)} on fitted ${live.rows}, ${
        now.heldOut ? shown(height(now.heldOut), 3) : "unknown"} held out, at a coupling of ${shown(now.coupling, 3)}`);
    };
  }

  let move = null;
  if (P > 1) live.onChange((now) => { move = move || frame(); move(now); });
  byId("exact-said").textContent = facts.about_exact || "";
  byId("frontier-said").textContent = P > 1 ? said() : "";
  byId("trade-off").hidden = P === 1;
  return { redraw: () => { move = null; } };
})();
