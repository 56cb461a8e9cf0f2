"use strict";
// The pivot and the list of operations behind its cells.
(() => {
  const S = window.smbscope;
  const { make } = S;
  const NAMES = { n: "n", known: "with a time", sum: "sum", mean: "mean", p50: "median", p95: "p95", p99: "p99", max: "max" };

  const select = (parent, label, options, chosen, changed) => {
    const set = make("fieldset", {}, parent);
    make("legend", { textContent: label }, set);
    const box = make("select", { ariaLabel: label }, set);
    for (const [value, title] of options) {
      make("option", { value, textContent: title, selected: value === chosen }, box);
    }
    box.addEventListener("change", () => changed(box.value));
    return set;
  };

  const controls = (view, subject) => {
    const { pivot } = S.state;
    const change = (changes) => S.go({ pivot: { ...pivot, column: 0, ...changes } });
    const box = make("div", { className: "controls" }, view);
    const free = subject.dimensions.filter((one) => !pivot.rows.includes(one.key) && one.key !== pivot.columns);
    const options = free.map((one) => [one.key, one.title]);
    if (S.about.subjects.length > 1) {
      const tables = S.about.subjects.map((one) => [one.table, one.title]);
      select(box, "Count", tables, subject.table, (table) => {
        const [first] = S.subject(table).dimensions;
        S.go({ pivot: { ...pivot, table, rows: [first.key], columns: "", value: "", column: 0 } });
      });
    }
    const rows = make("fieldset", {}, box);
    make("legend", { textContent: "Rows" }, rows);
    for (const key of pivot.rows) {
      const button = make("button", { type: "button", className: "chip", textContent: S.dimension(key)?.title || key, ariaLabel: `Remove ${key} from rows` }, rows);
      button.addEventListener("click", () => change({ rows: pivot.rows.filter((one) => one !== key) }));
    }
    if (pivot.rows.length < 4) {
      const add = make("select", { ariaLabel: "Add a dimension of rows" }, rows);
      make("option", { value: "", textContent: "+ add" }, add);
      options.forEach(([value, title]) => make("option", { value, textContent: title }, add));
      add.addEventListener("change", () => change({ rows: [...pivot.rows, add.value] }));
    }
    const columns = [["", "none"], ...subject.dimensions.filter((one) => !pivot.rows.includes(one.key)).map((one) => [one.key, one.title])];
    const set = select(box, "Columns", columns, pivot.columns, (value) => change({ columns: value }));
    if (pivot.columns && pivot.rows.length === 1) {
      const swap = make("button", { type: "button", textContent: "Swap" }, set);
      swap.addEventListener("click", () => change({ rows: [pivot.columns], columns: pivot.rows[0] }));
    }
    select(box, "Of", subject.values.map((one) => [one.key, one.title]), pivot.value || subject.values[0].key, (value) => change({ value }));
    const show = make("fieldset", {}, box);
    make("legend", { textContent: "Show" }, show);
    for (const name of S.about.statistics) {
      const label = make("label", {}, show);
      const check = make("input", { type: "checkbox", checked: name === "n" || pivot.show.includes(name), disabled: name === "n" }, label);
      label.append(NAMES[name]);
      check.addEventListener("change", () => {
        const wanted = check.checked ? [...pivot.show, name] : pivot.show.filter((one) => one !== name);
        change({ show: S.about.statistics.filter((one) => wanted.includes(one)), by: wanted.includes(pivot.by) ? pivot.by : "n" });
      });
    }
    return box;
  };

  const question = (subject) => {
    const { pivot, filter } = S.state;
    return {
      table: subject.table,
      filter,
      rows: pivot.rows,
      columns: pivot.columns || null,
      value: pivot.value || null,
      show: pivot.show,
      sort: { by: pivot.by || null, column: pivot.column, ascending: pivot.ascending },
    };
  };

  const heading = (answer) => {
    const { pivot } = S.state;
    const head = make("thead");
    const count = answer.show.length;
    if (answer.columns) {
      const line = make("tr", {}, head);
      answer.rows.forEach(() => make("th", {}, line));
      make("th", { colSpan: count, scope: "colgroup", textContent: "all", className: "edge" }, line);
      for (const value of answer.column_values) {
        const cell = make("th", { colSpan: count, scope: "colgroup", className: "edge" }, line);
        const button = make("button", { type: "button", textContent: S.key(answer.columns, value), title: "Filter" }, cell);
        button.addEventListener("click", () => S.goFilter(S.narrowed(S.state.filter, [[answer.columns, value === null ? null : String(value)]])));
      }
    }
    const line = make("tr", {}, head);
    const sorted = (cell, by, column) => {
      const isNow = pivot.by === by && pivot.column === column;
      if (isNow) cell.setAttribute("aria-sort", pivot.ascending ? "ascending" : "descending");
      const button = cell.querySelector("button");
      button.addEventListener("click", () => S.go({ pivot: { ...pivot, by, column, ascending: isNow ? !pivot.ascending : by === "" } }));
    };
    for (const key of answer.rows) {
      const cell = make("th", { scope: "col" }, line, make("button", { type: "button", textContent: S.dimension(key).title }));
      sorted(cell, "", 0);
    }
    for (let column = 0; column <= answer.column_values.length; column += 1) {
      answer.show.forEach((name, place) => {
        const cell = make("th", { scope: "col", className: place === 0 ? "n edge" : "n" }, line, make("button", { type: "button", textContent: NAMES[name] }));
        sorted(cell, name, column);
      });
    }
    return head;
  };

  // A cell leads to its operations.
  const cells = (line, answer, all, pairs) => {
    all.forEach((cell, column) => {
      answer.show.forEach((name, place) => {
        const value = cell ? cell[place] : null;
        const unit = name === "n" || name === "known" ? "count" : answer.unit;
        const text = cell === null ? "" : name === "n" || name === "known" ? S.count(value) : S.number(unit, value);
        const box = make("td", { className: `${cell ? "go " : ""}n${place === 0 ? " edge" : ""}`, tabIndex: cell ? 0 : -1, textContent: text }, line);
        if (!cell) return;
        box.addEventListener("click", () => {
          const of = column === 0 ? [] : [[answer.columns, answer.column_values[column - 1]]];
          const narrowed = [...pairs, ...of].map(([key, one]) => [key, one === null ? null : String(one)]);
          S.goFilter(S.narrowed(S.state.filter, narrowed), { view: "operations" });
        });
      });
    });
  };

  S.sqlBox = (view, sql) => {
    const box = make("details", { className: "fold sql" }, view);
    make("summary", { textContent: "SQL of this table" }, box);
    make("p", { className: "more", textContent: `smbscope query ${S.about.inputs.join(" ")} --file question.sql answers the same.` }, box);
    const text = make("pre", { tabIndex: 0 }, box, make("code", { textContent: sql }));
    S.copy(() => text.textContent, box, "Copy SQL");
  };

  S.pivot = async (view) => {
    const subject = S.subject(S.state.pivot.table);
    controls(view, subject);
    const asked = question(subject);
    const part = (offset, limit) => S.ask("pivot", { ...asked, offset, limit }, null);
    const answer = await S.ask("pivot", { ...asked, offset: 0, limit: 100 });
    const fixed = make("tr", { className: answer.columns ? "total" : "total flat-total" });
    answer.rows.forEach((_, place) => make("th", { scope: "row", textContent: place === 0 ? "all" : "" }, fixed));
    cells(fixed, answer, answer.total, []);
    const row = (data) => {
      const line = make("tr");
      data.key.forEach((value, place) => {
        const key = answer.rows[place];
        const cell = make("th", { scope: "row", title: S.key(key, value) }, line);
        const button = make("button", { type: "button", textContent: S.key(key, value) }, cell);
        button.addEventListener("click", () => S.goFilter(S.narrowed(S.state.filter, [[key, value === null ? null : String(value)]])));
      });
      const pairs = answer.rows.map((key, place) => [key, data.key[place]]);
      const all = [...data.cells, ...Array(answer.column_values.length + 1 - data.cells.length).fill(null)];
      cells(line, answer, all, pairs);
      return line;
    };
    S.grid(view, {
      label: "Pivot",
      head: heading(answer),
      fixed,
      count: answer.count,
      columns: answer.rows.length + answer.show.length * (answer.column_values.length + 1),
      first: answer.body,
      part: async (offset, limit) => (await part(offset, limit)).body,
      row,
    });
    const files = make("p", { className: "controls" }, view);
    for (const format of ["csv", "parquet", "arrow"]) {
      const words = new URLSearchParams({ q: JSON.stringify(asked), format });
      make("a", { href: `api/export?${words}`, download: `smbscope.${format}`, textContent: `Save as ${format}` }, files);
    }
    S.sqlBox(view, answer.sql);
    const more = answer.columns_left_out ? `; ${S.count(answer.columns_left_out)} columns with fewer ${subject.title} are not shown` : "";
    const waits = subject.table === "operations" ? " Operations that wait by design (notifications, blocked locks) are left out." : "";
    S.say(`${S.count(answer.count)} rows${more}. A name filters, a number shows its ${subject.title}.${waits}`);
  };

  const WIDE = {
    operations: [["request_start", "Time"], ["client", "Client"], ["command", "Request"], ["status_name", "Status"], ["path", "File"], ["share", "Share"], ["user", "User"], ["transferred_bytes", "Bytes", "bytes"], ["elapsed_ns", "Time taken", "ns"], ["server_ns", "In the server", "ns"], ["outstanding", "In flight", "count"], ["request_frame", "Frames"]],
    interrupts: [["start", "Time"], ["cpu", "CPU", "count"], ["kind", "Kind"], ["name", "Module"], ["function", "Function"], ["device", "Device"], ["exclusive_ns", "Time of its own", "ns"], ["duration_ns", "Time taken", "ns"], ["delay_ns", "Delay", "ns"]],
  };

  const shown = (name, unit, data) => {
    const value = data[name];
    if (value === null || value === undefined) return "";
    if (name === "request_start" || name === "start") return S.time(value, 6).slice(11);
    if (name === "status_name" && value === "STATUS_SUCCESS") return "";
    if (name === "command") return data.detail ? `${value} ${data.detail}` : value;
    if (name === "request_frame") return [value, data.response_frame].filter((one) => one !== null).join(" → ");
    return unit ? S.number(unit, value) : String(value);
  };

  S.operations = async (view) => {
    const { filter, list } = S.state;
    const subject = S.subject(S.state.pivot.table);
    const columns = WIDE[subject.table];
    const asked = { table: subject.table, filter, sort: list.sort || null, ascending: list.ascending };
    const answer = await S.ask("operations", { ...asked, offset: 0, limit: 100 });
    const longest = list.sort || subject.values[0].key;
    const head = make("thead");
    const line = make("tr", {}, head);
    for (const [name, title, unit] of columns) {
      const cell = make("th", { scope: "col", className: unit ? "n" : "" }, line);
      const isNow = longest === name;
      if (isNow) cell.setAttribute("aria-sort", list.ascending ? "ascending" : "descending");
      const button = make("button", { type: "button", textContent: title }, cell);
      button.addEventListener("click", () => S.go({ list: { sort: name, ascending: isNow ? !list.ascending : !unit } }));
    }
    const row = (data) => {
      const one = make("tr");
      columns.forEach(([name, , unit], place) => {
        const text = shown(name, unit, data);
        const cell = make(place === 0 ? "th" : "td", { className: unit ? "n" : "", title: text }, one);
        if (place > 0 || data.operation === undefined) {
          cell.textContent = text;
          return;
        }
        cell.scope = "row";
        const button = make("button", { type: "button", textContent: text, ariaLabel: `Operation ${data.operation}, ${text}` }, cell);
        button.addEventListener("click", () => S.go({ one: { recording: data.recording, operation: data.operation } }));
      });
      return one;
    };
    const detail = make("div", {}, view);
    S.grid(view, {
      label: "Operations",
      head,
      count: answer.count,
      columns: columns.length,
      first: answer.rows,
      part: async (offset, limit) => (await S.ask("operations", { ...asked, offset, limit }, null)).rows,
      row,
    });
    S.sqlBox(view, answer.sql);
    S.say(`${S.count(answer.count)} ${subject.title}. The time of an operation opens it.`);
    if (S.state.one) await S.one(detail, S.state.one);
  };

  const facts = (parent, pairs) => {
    const box = make("dl", { className: "facts-list" }, parent);
    for (const [title, value] of pairs) {
      if (value === null || value === undefined || value === "") continue;
      make("dt", { textContent: title }, box);
      make("dd", {}, box, value);
    }
  };

  // Bars from begin to end, one line each, on one axis.
  const life = (parent, title, lines) => {
    if (lines.length === 0) return;
    const begin = lines.reduce((least, one) => (one.from < least ? one.from : least), lines[0].from);
    const end = lines.reduce((most, one) => (one.to > most ? one.to : most), lines[0].to);
    const length = Number(end - begin) || 1;
    const box = make("section", { className: "life" }, parent);
    make("h3", { textContent: `${title}, ${S.value("duration", length)}` }, box);
    for (const one of lines) {
      const line = make("div", { className: "line", title: one.text }, box);
      const bar = make("i", { className: one.isThis ? "this" : "" }, line);
      bar.style.left = `${(Number(one.from - begin) / length) * 100}%`;
      bar.style.width = `${(Number(one.to - one.from) / length) * 100}%`;
      make("span", { textContent: one.text }, line);
    }
  };

  const neighbours = (all, operation) =>
    all
      .filter((one) => one.request_start !== null)
      .map((one) => ({
        from: BigInt(one.request_start),
        to: BigInt(one.response_end ?? one.request_start),
        text: `${one.command ?? "encrypted"} ${one.path ?? ""} ${one.elapsed_ns === null ? "" : S.value("duration", one.elapsed_ns)}`,
        isThis: one.operation === operation.operation && one.recording === operation.recording,
      }));

  S.one = async (view, which) => {
    const { operation, slices, connection, open } = await S.ask("operation", which);
    const box = make("section", { ariaLabel: "Operation" }, view);
    make("h2", { textContent: `${operation.command ?? "Encrypted operation"} ${operation.path ?? ""}` }, box);
    facts(box, [
      ["Time", operation.request_start === null ? null : S.time(operation.request_start, 6)],
      ["Client", operation.client],
      ["User", operation.user],
      ["Share", operation.share],
      ["Status", operation.status_name],
      ["Took", operation.elapsed_ns === null ? null : S.value("duration", operation.elapsed_ns)],
      ["In the server", operation.server_ns === null ? null : S.value("duration", operation.server_ns)],
      ["Frames", [operation.request_frame, operation.response_frame].filter((one) => one !== null).join(" → ")],
      ["Recording", operation.capture_file ?? operation.recording],
      ["Wireshark", operation.wireshark],
    ]);
    const line = make("div", { className: "controls" }, box);
    if (operation.wireshark) S.copy(() => operation.wireshark, line, "Copy the Wireshark filter");
    S.copy(() => `smbscope explain ${S.about.inputs.join(" ")} --why op:${operation.operation}`, line, "Copy the command that explains it");
    const close = make("button", { type: "button", textContent: "Close" }, line);
    close.addEventListener("click", () => S.go({}));
    const parts = [];
    const time = (name) => (operation[name] === null ? null : BigInt(operation[name]));
    const part = (text, from, to) => from !== null && to !== null && parts.push({ from, to, text });
    part("request", time("request_start"), time("request_end"));
    part("turnaround", time("request_end"), time("response_start"));
    slices.forEach(([kind, start, length]) => part(`in the server: ${kind}`, BigInt(start), BigInt(start) + BigInt(length)));
    part("response", time("response_start"), time("response_end"));
    life(box, "Its parts", parts);
    life(box, "On its connection meanwhile", neighbours(connection, operation));
    life(box, "On its open", neighbours(open, operation));
  };
})();
