"use strict";
// The course over time. A drag over a chart zooms, which filters everything else.
(() => {
  const S = window.smbscope;
  const { make } = S;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const charts = [];

  const clockAt = (from) => (seconds) => S.time(String(BigInt(from) + BigInt(Math.round(seconds * 1e6)) * 1000n), 6).slice(11);

  const draw = (parent, title, data, { unit, lines, bands, zoom }) => {
    const figure = make("figure", {}, parent);
    make("figcaption", { textContent: title }, figure);
    const from = data.from;
    const step = data.step_ns / 1e9;
    const xs = Array.from({ length: data.count }, (_, bin) => bin * step);
    const clock = clockAt(from);
    const ink = colour("--soft");
    const grid = { stroke: colour("--line"), width: 1 };
    const text = (value) => (value === null || value === undefined ? "–" : S.number(unit, value));
    const options = {
      width: Math.max(280, parent.clientWidth),
      height: 150,
      cursor: { drag: { x: true, y: false, setScale: false }, sync: { key: "time" } },
      scales: { x: { time: false }, y: { range: (_, least, most) => [Math.min(0, least ?? 0), (most || 1) * 1.08] } },
      axes: [
        { stroke: ink, grid, space: data.count * step < 10 ? 120 : 80, values: (_, splits) => splits.map((at) => clock(at).slice(0, data.count * step < 10 ? 12 : 8)) },
        { stroke: ink, grid, size: 72, values: (_, splits) => splits.map((value) => (value === 0 ? "0" : text(value))) },
      ],
      series: [
        { label: "Time", value: (_, at) => (at === null ? "–" : clock(at)) },
        ...lines.map(([label, , stroke], place) => ({
          label,
          stroke: colour(stroke),
          width: 1.5,
          fill: lines.length === 1 ? `${colour(stroke)}33` : undefined,
          // A value between two gaps has no line.
          points: { show: data.count < 60 || lines.some(([, values]) => values.includes(null)), size: 3 },
          value: (_, value) => text(value),
          spanGaps: false,
          show: place < 8,
        })),
      ],
      bands: bands ? lines.slice(1).map((_, place) => ({ series: [place + 2, place + 1], fill: `${colour(lines[place + 1][2])}40` })) : undefined,
      hooks: {
        setSelect: [
          (plot) => {
            const { left, width } = plot.select;
            if (width < 4) return;
            zoom(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
          },
        ],
        draw: [
          (plot) => {
            const context = plot.ctx;
            context.save();
            context.strokeStyle = colour("--bad");
            context.setLineDash([4, 4]);
            for (const marker of S.markers || []) {
              const at = Number(BigInt(marker.at) - BigInt(from)) / 1e9;
              if (at < 0 || at > data.count * step) continue;
              const x = Math.round(plot.valToPos(at, "x", true));
              context.beginPath();
              context.moveTo(x, plot.bbox.top);
              context.lineTo(x, plot.bbox.top + plot.bbox.height);
              context.stroke();
            }
            context.restore();
          },
        ],
      },
    };
    const plot = new uPlot(options, [xs, ...lines.map(([, values]) => values)], figure);
    figure.querySelector("canvas").setAttribute("role", "img");
    figure.querySelector("canvas").setAttribute("aria-label", title);
    charts.push([plot, parent]);
  };

  addEventListener("resize", () => {
    for (const [plot, parent] of charts) {
      if (parent.isConnected) plot.setSize({ width: Math.max(280, parent.clientWidth), height: 150 });
    }
  });

  // The numbers of the charts, for those who do not see them.
  const numbers = (view, data) => {
    const box = make("details", { className: "fold" }, view);
    make("summary", { textContent: "The same as numbers" }, box);
    box.addEventListener("toggle", () => {
      if (box.querySelector("table")) return;
      const table = make("table", {}, make("div", { className: "scroll", tabIndex: 0 }, box));
      const names = [["n", "Operations", "count"], ["errors", "Errors", "count"], ["in_flight", "In flight at the end", "count"], ["p50", "Median", "ns"], ["p95", "p95", "ns"], ["p99", "p99", "ns"], ["bytes", "Bytes", "bytes"]];
      const head = make("tr", {}, make("thead", {}, table));
      make("th", { scope: "col", textContent: "From" }, head);
      names.forEach(([, title]) => make("th", { scope: "col", className: "n", textContent: title }, head));
      const body = make("tbody", {}, table);
      const clock = clockAt(data.from);
      for (let bin = 0; bin < data.count; bin += 1) {
        if (!data.lines.n[bin]) continue;
        const line = make("tr", {}, body, make("th", { scope: "row", textContent: clock((bin * data.step_ns) / 1e9) }));
        names.forEach(([name, , unit]) => make("td", { className: "n", textContent: S.number(unit, data.lines[name][bin]) }, line));
      }
    });
  };

  S.time_view = async (view) => {
    const { filter } = S.state;
    const bins = Math.max(40, Math.min(300, Math.floor(view.clientWidth / 4)));
    const data = await S.ask("time", { filter, bins });
    charts.length = 0;
    if (data.from === null) {
      S.say("No row has a time.");
      return;
    }
    const begin = BigInt(data.from);
    const length = BigInt(data.step_ns) * BigInt(data.count);
    const period = (from, to) => S.goFilter({ ...filter, from: String(from), to: String(to) });
    const zoom = (from, to) => period(begin + BigInt(Math.round(from * 1e9)), begin + BigInt(Math.round(to * 1e9)));
    const tools = make("div", { className: "controls" }, view);
    const tool = (title, act) => make("button", { type: "button", textContent: title }, tools).addEventListener("click", act);
    tool("Earlier", () => period(begin - length / 2n, begin + length / 2n));
    tool("Later", () => period(begin + length / 2n, begin + length + length / 2n));
    tool("Closer", () => period(begin + length / 4n, begin + length - length / 4n));
    tool("Farther", () => period(begin - length / 2n, begin + length + length / 2n));
    tool("All", () => {
      const { from: _, to: __, ...rest } = filter;
      S.goFilter(rest);
    });
    const plots = make("div", { className: "plots" }, view);
    const per = data.step_ns / 1e9;
    const rate = (line) => line.map((value) => value / per);
    const each = (title, unit, lines, bands) => draw(plots, title, data, { unit, lines, bands, zoom });
    const { lines } = data;
    if (S.about.subjects.some((one) => one.table === "operations")) {
      each("Operations per second", "count", [["operations/s", rate(lines.n), "--l0"]]);
      each("Time of an operation: median, p95, p99", "ns", [["median", lines.p50, "--l0"], ["p95", lines.p95, "--l1"], ["p99", lines.p99, "--l2"]], true);
      each("In flight at the end of each step", "count", [["in flight", lines.in_flight, "--l3"]]);
      each("Errors per second", "count", [["errors/s", rate(lines.errors), "--bad"]]);
      each("Bytes per second", "bytes", [["bytes/s", rate(lines.bytes), "--l4"]]);
    }
    const kinds = (all) => Object.entries(all).map(([kind, line], place) => [kind, line, `--k${place % 14}`]);
    if (Object.keys(data.waits).length > 0) each("Waits outside of operations, by kind", "ns", kinds(data.waits));
    if (Object.keys(data.interrupts).length > 0) each("CPU time of interrupts and deferred work", "ns", kinds(data.interrupts));
    numbers(view, data);
    S.sqlBox(view, data.sql);
    S.say(`Steps of ${S.value("duration", data.step_ns)}. Drag over a chart to zoom; everything else is then filtered to that time. Dashed lines: a finding begins.`);
    if (S.markers) return;
    // The charts do not wait for the findings.
    S.ask("report", { filter: { in: {} } }, "markers")
      .then((report) => {
        S.markers = report.markers;
        charts.forEach(([plot]) => plot.redraw());
      })
      .catch(S.failed);
  };
})();
