"use strict";
// The first screen: the verdict, the largest groups as bars, findings, coverage.
(() => {
  const S = window.smbscope;
  const { make } = S;

  // HTML of the report, whose text is escaped. Styles of its charts are set here: the page's policy allows none in
  // attributes.
  const fragment = (html) => {
    const parsed = new DOMParser().parseFromString(html, "text/html");
    for (const element of parsed.querySelectorAll("[data-style]")) {
      element.style.cssText = element.dataset.style;
      element.removeAttribute("data-style");
    }
    return [...parsed.body.childNodes];
  };

  const panel = (group) => {
    const { answer } = group;
    const box = make("section", { className: "panel" });
    const title = make("h2", { textContent: `${group.title} ` }, box);
    const more = make("button", { type: "button", textContent: "as a table" }, title);
    more.addEventListener("click", () =>
      S.go({ view: "pivot", pivot: { ...S.state.pivot, table: S.about.subjects[0].table, rows: [group.key], columns: "", show: ["n", "sum", "p50", "p95", "p99"], by: "sum", column: 0, ascending: false } }),
    );
    const place = answer.show.indexOf("sum");
    const total = answer.total[0][place] || 0;
    const bars = make("ul", { className: "bars" }, box);
    for (const row of answer.body) {
      const [value] = row.key;
      const sum = row.cells[0][place];
      const share = total > 0 && sum !== null ? sum / total : 0;
      const chosen = (S.state.filter.in[group.key] || []).includes(value === null ? null : String(value));
      const button = make("button", { type: "button", title: S.key(group.key, value) }, make("li", {}, bars));
      button.setAttribute("aria-pressed", chosen);
      const bar = make("i", {}, button);
      bar.style.width = `${Math.max(0, Math.min(100, share * 100))}%`;
      make("span", { textContent: S.key(group.key, value) }, button);
      const percent = `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
      make("b", { textContent: `${S.number("ns", sum)} · ${percent} · ${S.count(row.cells[0][0])}` }, button);
      button.addEventListener("click", () =>
        S.goFilter(S.toggled(S.state.filter, group.key, value === null ? null : String(value))),
      );
    }
    if (answer.count > answer.body.length) {
      make("p", { className: "more", textContent: `${S.count(answer.count - answer.body.length)} more` }, box);
    }
    if (answer.body.length === 0) make("p", { className: "more", textContent: "none" }, box);
    return box;
  };

  const leads = (box, findings) => {
    box.querySelectorAll("details.finding").forEach((card, place) => {
      const found = findings[place];
      if (!found) return;
      const line = make("div", { className: "leads" }, card);
      const all = make("button", { type: "button", textContent: "Operations of this time and client" }, line);
      all.addEventListener("click", () => S.goFilter({ in: {}, ...found.filter }, { view: "operations" }));
      const filter = make("button", { type: "button", textContent: "Filter everything to it" }, line);
      filter.addEventListener("click", () => S.goFilter({ in: {}, ...found.filter }));
      if (!found.examples) return;
      const examples = make("button", { type: "button", textContent: "Example operations" }, line);
      examples.addEventListener("click", () => S.goFilter(found.examples, { view: "operations" }));
    });
  };

  S.overview = async (view) => {
    const { filter } = S.state;
    const report = make("div", { className: "report" }, view);
    const panels = make("div", { className: "panels" });
    const groups = S.ask("groups", { filter }).then((all) => panels.replaceChildren(...all.map(panel)));
    if (S.about.subjects[0].table !== "operations") {
      view.append(panels);
      await groups;
      S.say("A CPU trace: bars are CPU time. Click one to filter.");
      return;
    }
    report.append(make("p", { className: "lead", textContent: "Reading the operations…" }));
    const told = S.ask("report", { filter }).then((data) => {
      const nodes = fragment(data.html);
      const head = nodes.find((node) => node.id === "top");
      const rest = nodes.filter((node) => node !== head);
      report.replaceChildren(...(head ? [head] : []));
      if (data.left_out.length > 0) {
        const names = data.left_out.join(", ");
        report.append(make("p", { className: "note", textContent: `Verdict and findings do not know the filter by ${names}; the bars do.` }));
      }
      const below = make("div", { className: "report" }, null, ...rest);
      view.append(below);
      leads(below, data.findings);
      S.enliven(view);
      S.markers = data.markers;
    });
    const section = make("section", {}, view);
    make("h2", { textContent: "Where the time goes" }, section);
    make("p", { className: "lead", textContent: "Time in which clients waited, divided among the operations in flight; its share; operations. Click a bar to filter." }, section);
    section.append(panels);
    await Promise.all([groups, told]);
    S.say("");
  };
})();
