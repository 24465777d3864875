// A form that starts a run of a DAG: the browser's own call of Airflow's REST API, with Airflow's own session.
const base = document.body.dataset.base;

const collect = (form) => {
  const conf = {};
  for (const field of form.elements) {
    if (field.name) conf[field.name] = "json" in field.dataset ? JSON.parse(field.value || "null") : field.value.trim().replace(/\s+/g, " ");
  }
  return conf;
};

const confirmed = (form) => {
  const question = form.dataset.confirm;
  if (!question) return Promise.resolve(true);
  const dialog = document.createElement("dialog"); // Airflow's frame suppresses confirm()
  const text = document.createElement("p");
  text.textContent = question;
  const buttons = document.createElement("form");
  buttons.method = "dialog";
  for (const [value, label] of [["no", "No"], ["yes", "Yes"]]) {
    const button = document.createElement("button");
    button.value = value;
    button.textContent = label;
    buttons.append(button);
  }
  dialog.setAttribute("aria-label", question);
  dialog.append(text, buttons);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
};

const explain = async (response) => {
  if (response.status === 401) return "Your session has ended. Log in again in another tab, then press the button again; what you typed stays.";
  if (response.status === 403) return "Airflow does not let you start this DAG.";
  if (response.status === 409) return "This has been started already.";
  const answer = await response.json().catch(() => ({}));
  const detail = typeof answer.detail === "string" ? answer.detail : JSON.stringify(answer.detail ?? response.statusText);
  return `Airflow refused (${response.status}): ${detail.split("\n")[0]}`;
};

// The note of a run: the reason, and where it was given. Airflow keeps a thousand characters.
const describe = (reason = "") => {
  const link = new URL(location.href);
  link.searchParams.delete("why");
  return `${reason}\n${link}`.slice(0, 1000);
};

const listen = (form) => {
  const said = form.querySelector(".said");
  const button = form.querySelector("button.main");
  // One name for all tries from this page: Airflow refuses a second run of that name.
  const runId = `page__${new Date().toISOString()}__${crypto.getRandomValues(new Uint32Array(2)).join("")}`;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!(await confirmed(form))) return;
    const conf = collect(form);
    button.disabled = true;
    said.textContent = "Asking Airflow to start it.";
    try {
      const response = await fetch(`${base}/api/v2/dags/${form.dataset.dag}/dagRuns`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ dag_run_id: runId, logical_date: null, conf, note: describe(conf.reason) }),
      });
      if (response.ok || response.status === 409) {
        location.assign(form.dataset.follow + encodeURIComponent(runId));
        return;
      }
      said.textContent = await explain(response);
    } catch (error) {
      said.textContent = `Airflow does not answer: ${error.message}`;
    }
    button.disabled = false;
  });
};

document.querySelectorAll("form.act").forEach(listen);
