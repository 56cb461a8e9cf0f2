"use strict";
document.querySelectorAll("table.sortable").forEach((table) => {
  const heads = table.querySelectorAll("thead tr:last-child th");
  const body = table.tBodies[0];
  table.classList.add("live");
  heads.forEach((head, column) => {
    head.tabIndex = 0;
    const sort = () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => {
        const cell = row.cells[column];
        return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
      };
      const order = (a, b) =>
        typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
      const rows = Array.from(body.rows);
      rows.sort((a, b) => (down ? -1 : 1) * order(key(a), key(b)));
      body.append(...rows);
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        sort();
      }
    });
  });
});
