"use strict";
// What the page shows is in its address: the view, the filter, the table. Whoever has the address sees the same.
(() => {
  const S = window.smbscope;
  const list = (text) => (text ? text.split(",") : []);

  S.make = (tag, properties = {}, parent = null, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    if (parent) parent.append(element);
    return element;
  };

  const PIVOT = { table: "", rows: ["share"], columns: "command", value: "", show: ["n", "p95"], by: "n", column: 0, ascending: false };
  const read = () => {
    const words = new URLSearchParams(location.hash.slice(1));
    const filter = { in: {} };
    for (const name of ["from", "to", "slower"]) if (words.get(name)) filter[name] = words.get(name);
    for (const [key, value] of words) {
      const [kind, name] = [key.slice(0, 2), key.slice(2)];
      if (kind === "f.") (filter.in[name] ||= []).push(value);
      if (kind === "n.") (filter.in[name] ||= []).push(null);
    }
    const pivot = { ...PIVOT };
    if (words.has("rows")) pivot.rows = list(words.get("rows"));
    if (words.has("columns")) pivot.columns = words.get("columns");
    if (words.has("show")) pivot.show = list(words.get("show"));
    for (const name of ["table", "value", "by"]) if (words.has(name)) pivot[name] = words.get(name);
    pivot.column = Number(words.get("column")) || 0;
    pivot.ascending = words.get("order") === "up";
    const list_ = { sort: words.get("sort") || "", ascending: words.get("list") === "up" };
    const one = words.get("operation") ? { recording: words.get("recording") || "", operation: Number(words.get("operation")) } : null;
    return { view: words.get("view") || "overview", filter, pivot, list: list_, one };
  };

  S.address = (state) => {
    const words = new URLSearchParams();
    words.set("view", state.view);
    for (const name of ["from", "to", "slower"]) if (state.filter[name]) words.set(name, state.filter[name]);
    for (const [name, values] of Object.entries(state.filter.in)) {
      for (const value of values) {
        if (value === null) words.append(`n.${name}`, "1");
        else words.append(`f.${name}`, value);
      }
    }
    const { pivot } = state;
    const plain = JSON.stringify(pivot) === JSON.stringify(PIVOT);
    if (!plain) {
      words.set("rows", pivot.rows.join(","));
      words.set("columns", pivot.columns);
      words.set("show", pivot.show.join(","));
      words.set("by", pivot.by);
      if (pivot.table) words.set("table", pivot.table);
      if (pivot.value) words.set("value", pivot.value);
      if (pivot.column) words.set("column", pivot.column);
      if (pivot.ascending) words.set("order", "up");
    }
    if (state.list.sort) words.set("sort", state.list.sort);
    if (state.list.ascending) words.set("list", "up");
    if (state.one) {
      words.set("recording", state.one.recording);
      words.set("operation", state.one.operation);
    }
    return `#${words}`;
  };

  S.state = read();
  // Changes what is shown; the browser's history remembers what was.
  S.go = (change) => {
    const next = { ...S.state, one: null, ...change };
    const address = S.address(next);
    if (address === location.hash) S.show();
    else location.hash = address;
  };
  S.goFilter = (filter, change = {}) => S.go({ filter, ...change });
  addEventListener("hashchange", () => {
    S.state = read();
    S.show();
  });

  // The filter with one more value, or without it if it has it.
  S.toggled = (filter, key, value) => {
    const before = filter.in[key] || [];
    const after = before.includes(value) ? before.filter((one) => one !== value) : [...before, value];
    const all = { ...filter.in, [key]: after };
    if (after.length === 0) delete all[key];
    return { ...filter, in: all };
  };
  // The filter with this value alone.
  S.narrowed = (filter, pairs) => {
    const all = { ...filter.in };
    const next = { ...filter, in: all };
    for (const [key, value] of pairs) {
      const dimension = S.dimension(key);
      if (dimension && dimension.form === "period" && value !== null) {
        next.from = String(value);
        next.to = String(BigInt(value) + BigInt(dimension.length_ns));
      } else if (key !== "slice") all[key] = [value];
    }
    return next;
  };

  S.subject = (table) => S.about.subjects.find((one) => one.table === table) || S.about.subjects[0];
  S.dimension = (key) => S.about.subjects.flatMap((one) => one.dimensions).find((one) => one.key === key);

  // Numbers and times for people.
  S.count = (value) => Number(value).toLocaleString("en");
  S.number = (unit, value) => {
    if (value === null || value === undefined) return "–";
    if (unit === "ns") return S.value("duration", value);
    if (unit === "bytes") return S.value("bytes", value);
    return S.value("number", value);
  };
  S.time = (ns, digits = 3) => {
    const shifted = BigInt(ns) / 1000n + BigInt(S.about.offset_s) * 1000000n;
    const text = new Date(Number(shifted / 1000n)).toISOString().replace("T", " ");
    const below = String(shifted % 1000n).padStart(3, "0");
    return digits > 3 ? text.slice(0, 23) + below : text.slice(0, digits ? 20 + digits : 19);
  };
  S.key = (key, value) => {
    if (value === null) return key === "status" ? "no reply" : "not known";
    const dimension = S.dimension(key);
    if (dimension && dimension.form === "period") return S.time(String(value), 0);
    return value === "" ? "(empty)" : String(value);
  };

  // A request replaces an earlier one of the same name.
  const running = new Map();
  S.ask = async (what, question, name = what) => {
    if (name && running.has(name)) running.get(name).abort();
    const control = new AbortController();
    if (name) running.set(name, control);
    const words = new URLSearchParams({ q: JSON.stringify(question) });
    const answer = await fetch(`api/${what}?${words}`, { signal: control.signal });
    const data = await answer.json();
    if (!answer.ok) throw new Error(data.error);
    return data;
  };
  // Shows an error, unless the request was replaced.
  S.failed = (error) => {
    if (error.name === "AbortError") return;
    const box = document.getElementById("error");
    box.hidden = false;
    box.textContent = error.message;
  };
  S.say = (text) => (document.getElementById("status").textContent = text);

  S.copy = (text, parent, title) => {
    const button = S.make("button", { type: "button", textContent: title }, parent);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text());
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not allowed: select it";
      }
      setTimeout(() => (button.textContent = title), 2000);
    });
    return button;
  };

  // A table of which only the visible rows exist. `part(offset, limit)` asks for rows, `row(data, index)` makes one.
  const HEIGHT = 29;
  const PAGE = 100;
  S.grid = (parent, { label, head, fixed, count, columns, first, part, row }) => {
    const box = S.make("div", { className: "grid-box", tabIndex: 0, role: "region", ariaLabel: label }, parent);
    const table = S.make("table", {}, box);
    table.setAttribute("aria-rowcount", count);
    table.append(head);
    const body = S.make("tbody", {}, table);
    const pages = new Map([[0, first]]);
    let drawn = "";
    const space = (rows) => {
      const line = S.make("tr", { className: "space", ariaHidden: "true" }, body);
      const cell = S.make("td", { colSpan: columns }, line);
      cell.style.height = `${rows * HEIGHT}px`;
    };
    const draw = async () => {
      // Before the first rows the box is as high as its heading.
      const visible = Math.ceil(Math.max(box.clientHeight, innerHeight * 0.7) / HEIGHT) + 10;
      const from = Math.max(0, Math.floor(box.scrollTop / HEIGHT) - 5);
      const to = Math.min(count, from + visible);
      const missing = [];
      for (let page = Math.floor(from / PAGE); page * PAGE < to; page += 1) if (!pages.has(page)) missing.push(page);
      const now = `${from} ${to} ${missing}`;
      if (now === drawn) return;
      drawn = now;
      body.replaceChildren();
      if (fixed) body.append(fixed);
      space(from);
      for (let index = from; index < to; index += 1) {
        const data = (pages.get(Math.floor(index / PAGE)) || [])[index % PAGE];
        const line = data ? row(data, index) : S.make("tr", {}, null, S.make("td", { textContent: "…", colSpan: columns }));
        line.setAttribute("aria-rowindex", index + 1);
        body.append(line);
      }
      space(count - to);
      if (missing.length === 0) return;
      for (const page of missing) pages.set(page, await part(page * PAGE, PAGE));
      drawn = "";
      await draw();
    };
    const redraw = () => draw().catch(S.failed);
    box.addEventListener("scroll", redraw, { passive: true });
    // Arrow keys move between cells.
    box.addEventListener("keydown", (event) => {
      const cell = event.target.closest("td.go, tbody th");
      const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
      const step = steps[event.key];
      if (!cell) return;
      if (event.key === "Enter" && event.target === cell) return cell.click();
      if (!step) return;
      const line = cell.parentElement;
      const other = step[0] < 0 ? line.previousElementSibling : step[0] > 0 ? line.nextElementSibling : line;
      const target = other && other.cells[cell.cellIndex + step[1]];
      if (!target || other.className === "space") return;
      event.preventDefault();
      (target.querySelector("button") || target).focus();
    });
    redraw();
    return box;
  };
})();
