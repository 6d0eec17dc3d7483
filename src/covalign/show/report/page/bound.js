// The bound of a factor model, sweep by sweep.
"use strict";

(() => {
  const { byId, roomOf, shown, draw, canvas, axes, padded } = drawing;
  const { bound } = live.facts.factors;
  const end = bound.values[bound.values.length - 1];

  function curve() {
    // Nats below the last value, on a logarithmic scale: otherwise only the first sweeps could be seen.
    const logs = bound.values.slice(0, -1).map((value) => Math.log10(Math.max(end - value, 1e-4)));
    const box = { W: roomOf("bound", 520), H: 260, left: 58, right: 14, top: 12, bottom: 46 };
    const svg = canvas("bound", box.W, box.H, "The bound, sweep by sweep");
    const [low, high] = padded(Math.floor(Math.min(...logs)), Math.ceil(Math.max(...logs)), 0.02);
    const last = bound.at[bound.at.length - 2];
    const { x, y } = axes(svg, box, [1, last], [low, high], ["sweep", "log₁₀ of nats below the last"], [Math.min(6, last - 1), 7]);
    draw(svg, "path", { d: logs.map((value, i) => `${i ? "L" : "M"}${x(bound.at[i]).toFixed(1)} ${y(value).toFixed(1)}`).join(""), class: "line held" });
    if (logs.length <= 60) logs.forEach((value, i) => { draw(svg, "circle", { cx: x(bound.at[i]), cy: y(value), r: 3.5, class: "dot held" }).said = () => `sweep ${bound.at[i]}: ${shown(bound.values[i], 3)}`; });
  }

  if (bound.values.length > 2) byId("technical").addEventListener("toggle", curve, { once: true });  // when there is a width
  else byId("bound").remove();
  byId("bound-said").textContent = `${bound.converged ? "Converged" : "Not converged: raise max_iter"} after ${bound.sweeps} sweep${bound.sweeps > 1 ? "s" : ""} at ${shown(end, 2)} nats (${bound.posterior === "full" ? "full posterior" : "mean field"}).`;
})();
