// A window's numbers by key, before and after the repair that replaced them, where they differ.
const section = document.querySelector("[data-numbers]");

const cell = (kind, text) => {
  const made = document.createElement(kind);
  made.textContent = text;
  return made;
};

const row = (kind, texts) => {
  const made = document.createElement("tr");
  made.append(...texts.map((text) => cell(kind, text)));
  return made;
};

const show = (numbers) => {
  if (!numbers.revisions || numbers.rows.length === 0) return;
  const table = document.createElement("table");
  const head = document.createElement("thead");
  const body = document.createElement("tbody");
  head.append(row("th", ["key", ...numbers.measures.flatMap((name) => [`${name} before`, `${name} after`])]));
  for (const each of numbers.rows) {
    const key = Object.values(each.key).join(", ") || "all";
    body.append(row("td", [key, ...numbers.measures.flatMap((name) => [each.before?.[name] ?? "no row", each.after?.[name] ?? "no row"])]));
  }
  table.append(head, body);
  const scroll = document.createElement("div");
  scroll.className = "scroll";
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Numbers before and after the last repair");
  scroll.append(table);
  section.append(cell("h3", "Before and after the last repair"), scroll);
  if (numbers.left_out) section.append(cell("p", `And ${numbers.left_out} more rows.`));
};

const load = async () => {
  const response = await fetch(section.dataset.numbers);
  const text = await response.text(); // read whatever the status: the browser keeps a connection for one that is not
  if (response.status === 403) section.append(cell("p", "Numbers by key need the right to read the logs of repair_on_call."));
  if (response.ok) show(JSON.parse(text));
};

if (section) load();
