"use strict";
// Tables: sort, ten rows, the columns that fit, search and filter. Charts: the values under the pointer.
// Without scripts tables are complete and charts have titles.
(() => {
  const ROWS = 10;
  const make = (tag, properties, parent) => {
    const element = Object.assign(document.createElement(tag), properties);
    if (parent) parent.append(element);
    return element;
  };
  const words = (cell) => {
    const whole = cell.querySelector("[title]");
    return whole ? whole.title : cell.textContent;
  };

  const table = (table) => {
    const box = table.closest(".table");
    const scroll = table.parentElement;
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    const rows = () => [...body.rows];
    const state = { all: false, columns: false, search: "", filter: "" };
    const tools = make("div", { className: "tools" });
    const count = make("button", { type: "button", className: "count" });
    const columns = make("button", { type: "button", className: "columns" });

    const show = () => {
      let matches = 0;
      for (const row of rows()) {
        const cells = [...row.cells];
        const found =
          (!state.search || cells.some((cell) => words(cell).toLowerCase().includes(state.search))) &&
          (!state.filter || words(cells[Number(table.dataset.filter)]) === state.filter);
        matches += found;
        row.hidden = !found || (!state.all && matches > ROWS);
      }
      const more = matches - ROWS;
      count.hidden = more <= 0;
      count.textContent = state.all ? `First ${ROWS} rows` : `All ${matches} rows`;
    };

    // Columns of the highest rank go first, until the table fits with all its rows.
    const fit = () => {
      if (scroll.clientWidth === 0) return;
      rows().forEach((row) => (row.hidden = false));
      const hide = (column, hidden) => table.classList.toggle(`h${column + 1}`, hidden);
      heads.forEach((_, column) => hide(column, false));
      const ranked = heads
        .map((head, column) => [Number(head.dataset.rank), column])
        .filter(([rank]) => rank > 0)
        .sort((a, b) => b[0] - a[0] || b[1] - a[1]);
      let hidden = 0;
      if (!state.columns) {
        for (const [, column] of ranked) {
          if (table.offsetWidth <= scroll.clientWidth) break;
          hide(column, true);
          hidden += 1;
        }
      }
      columns.hidden = hidden === 0 && !state.columns;
      columns.textContent = state.columns ? "Fewer columns" : `${hidden} more columns`;
      show();
    };

    const sort = (head, column) => {
      const numeric = head.classList.contains("n");
      const before = head.getAttribute("aria-sort");
      const down = before ? before !== "descending" : numeric;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => {
        const cell = row.cells[column];
        return cell.dataset.v === undefined ? words(cell) : Number(cell.dataset.v);
      };
      const order = (a, b) =>
        typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
      const sorted = rows().sort((a, b) => (down ? -1 : 1) * order(key(a), key(b)));
      body.append(...sorted);
      show();
    };
    heads.forEach((head, column) => {
      head.tabIndex = 0;
      head.addEventListener("click", () => sort(head, column));
      head.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          sort(head, column);
        }
      });
    });
    table.classList.add("live");

    if (table.dataset.filter !== undefined) {
      const place = Number(table.dataset.filter);
      const kinds = [...new Set(rows().map((row) => words(row.cells[place])))];
      if (kinds.length > 1) {
        const select = make("select", { ariaLabel: "Filter" }, tools);
        make("option", { value: "", textContent: "all kinds" }, select);
        kinds.forEach((kind) => make("option", { value: kind, textContent: kind }, select));
        select.addEventListener("change", () => {
          state.filter = select.value;
          show();
        });
      }
    }
    if (body.rows.length > ROWS) {
      const search = make("input", { type: "search", placeholder: "Search", ariaLabel: "Search this table" }, tools);
      search.addEventListener("input", () => {
        state.search = search.value.trim().toLowerCase();
        show();
      });
    }
    tools.append(columns);
    box.insertBefore(tools, scroll);
    scroll.after(count);
    count.addEventListener("click", () => {
      state.all = !state.all;
      show();
    });
    columns.addEventListener("click", () => {
      state.columns = !state.columns;
      fit();
    });
    show();
    return Object.assign(fit, { box });
  };
  let fits = [];
  const fitAll = () => fits.forEach((fit) => fit());
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) {
      width = innerWidth;
      fitAll();
    }
  });

  // Commands can be copied. Where that is not allowed they are selected.
  const copy = (box) => {
    const text = box.querySelector("code");
    const button = make("button", { type: "button", textContent: "Copy" }, box);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(text);
        button.textContent = "Selected";
      }
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
  };

  // A link into what is folded unfolds it.
  const unfold = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    const details = target && target.querySelector(":scope > details");
    if (details) details.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
  document.querySelectorAll("nav a").forEach((link) => link.addEventListener("click", () => setTimeout(unfold)));

  // Where one is.
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const places = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  const here = () => {
    const passed = places.filter((place) => place.getBoundingClientRect().top < innerHeight / 3);
    const current = passed.at(-1) || places[0];
    links.forEach((link, id) => {
      const isHere = Boolean(current) && id === current.id;
      // On a phone the contents are one line.
      if (isHere && !link.classList.contains("here")) {
        const list = link.closest("nav");
        list.scrollTo({ left: link.offsetLeft - list.clientWidth / 3 });
      }
      link.classList.toggle("here", isHere);
    });
  };
  addEventListener("scroll", here, { passive: true });
  here();

  const fixed = (value) => {
    const size = Math.abs(value);
    return value.toLocaleString("en", { maximumFractionDigits: size >= 100 ? 0 : size >= 10 ? 1 : 2 });
  };
  const scaled = (value, units) => {
    let place = 0;
    while (place + 1 < units.length && Math.abs(value) >= units[place + 1][0]) place += 1;
    return `${fixed(value / units[place][0])} ${units[place][1]}`;
  };
  const DURATION = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"], [60e9, "min"], [3600e9, "h"]];
  const BYTES = [[1, "B"], [1024, "KiB"], [1024 ** 2, "MiB"], [1024 ** 3, "GiB"], [1024 ** 4, "TiB"]];
  const value = (format, value) => {
    if (format === "duration") return scaled(value, DURATION);
    if (format === "bytes") return scaled(value, BYTES);
    if (format === "share") return `${fixed(value * 100)} %`;
    return fixed(value);
  };
  const offset = Number(document.body.dataset.offset) * 1000;
  const clock = (ms) => new Date(ms + offset).toISOString().slice(11, 23);

  const plot = (plot) => {
    const data = JSON.parse(plot.dataset.plot);
    const area = plot.querySelector(".area");
    const place = (index) => (data.t ? (index + 0.5) * data.w : data.x[index]);
    const length = data.t ? data.b : data.x.length;
    const cross = make("div", { className: "cross", hidden: true }, area);
    const tip = make("div", { className: "tip", hidden: true }, area);
    const leave = () => {
      cross.hidden = tip.hidden = true;
    };
    const move = (event) => {
      const box = area.getBoundingClientRect();
      const at = (event.clientX - box.left) / box.width;
      let best = 0;
      for (let index = 0; index < length; index += 1) {
        const known = data.v.some((line) => line[index] !== null && line[index] !== undefined);
        if (known && Math.abs(place(index) - at) < Math.abs(place(best) - at)) best = index;
      }
      const title = data.t ? clock(data.t[0] + best * data.t[1]) : data.l[best];
      tip.replaceChildren(make("b", { textContent: title }));
      data.v.forEach((line, number) => {
        if (line[best] === null || line[best] === undefined) return;
        const row = make("span", {}, tip);
        make("i", { className: `k${number}` }, row);
        row.append(`${data.n[number]} ${value(data.f, line[best])}${data.p}`);
      });
      cross.hidden = tip.hidden = false;
      cross.style.left = `${place(best) * 100}%`;
      tip.classList.toggle("left", place(best) > 0.6);
      tip.style.left = `${place(best) * 100}%`;
    };
    area.addEventListener("pointermove", move);
    area.addEventListener("pointerdown", move);
    area.addEventListener("pointerleave", leave);
  };

  // What is in an element, which may come later than the page.
  const enliven = (root) => {
    fits = [...fits.filter((fit) => fit.box.isConnected), ...[...root.querySelectorAll("table.sortable")].map(table)];
    fitAll();
    // What was folded had no width.
    root.querySelectorAll("details").forEach((one) => one.addEventListener("toggle", fitAll, { once: true }));
    root.querySelectorAll(".copy").forEach(copy);
    root.querySelectorAll("[data-plot]").forEach(plot);
  };
  enliven(document);
  window.smbscope = { enliven, value };
})();
