"use strict";
(() => {
  const specs = JSON.parse(document.getElementById("figures").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const config = { displaylogo: false, responsive: true, displayModeBar: false };

  // Colours in the figures are the names of the page's own variables, so that both change together.
  const painted = (value, style) => {
    if (typeof value === "string") {
      const name = /^var\((--[\w-]+)\)$/.exec(value);
      return name ? style.getPropertyValue(name[1]).trim() : value;
    }
    if (Array.isArray(value)) return value.map((item) => painted(item, style));
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, painted(item, style)]));
    return value;
  };

  const shared = {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif", size: 13, color: "var(--ink)" },
    margin: { l: 48, r: 20, t: 16, b: 44 },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
    hoverlabel: { bgcolor: "var(--card)", bordercolor: "var(--line)", font: { color: "var(--ink)" } },
    dragmode: false,
  };

  const draw = () => {
    const style = getComputedStyle(document.documentElement);
    const done = Object.entries(specs).map(([id, spec]) =>
      Plotly.react(id, painted(spec.data, style), painted({ ...shared, ...spec.layout }, style), config));
    Promise.all(done).then(() => { document.documentElement.dataset.drawn = String(done.length); });
  };

  draw();
  dark.addEventListener("change", draw);
  // A style may have colours of its own for paper.
  matchMedia("print").addEventListener("change", draw);
})();
