// Follows a run: Airflow's word of its tasks, and the ledger's word of each window, until both have ended.
const base = document.body.dataset.base;
const airflow = document.getElementById("airflow");
const began = Date.now();
const ENDED = ["success", "failed"];
const WORDS = { queued: "queued", running: "runs", success: "ended without an error", failed: "failed" };

// An answer is read to its end whatever its status: the browser keeps a connection for one that is not.
const ask = async (address) => {
  const response = await fetch(address);
  return { status: response.status, ok: response.ok, text: await response.text() };
};

const read = async (path) => {
  const answer = await ask(`${base}/api/v2${path}`);
  if (answer.status === 401) throw new Error("Your session has ended: log in again in another tab; this page then goes on.");
  if (!answer.ok) throw new Error(`Airflow answers ${answer.status}.`);
  return JSON.parse(answer.text);
};

const seconds = (from, to) => Math.round((Date.parse(to ?? new Date().toISOString()) - Date.parse(from)) / 1000);
const line = (text, bad = false) => {
  const paragraph = document.createElement("p");
  paragraph.textContent = text;
  paragraph.className = bad ? "bad" : "";
  return paragraph;
};

const findError = async (path, task) => {
  try {
    return await readError(path, task);
  } catch {
    return "see its log"; // for those who may read it
  }
};

const readError = async (path, task) => {
  const log = await read(`${path}/taskInstances/${encodeURIComponent(task.task_id)}/logs/${task.try_number}?map_index=${task.map_index}&full_content=true`);
  const events = Array.isArray(log.content) ? log.content : [];
  const details = events.flatMap((event) => event.error_detail ?? []);
  const error = details.at(-1);
  return error ? `${error.exc_type}: ${error.exc_value}` : (events.filter((event) => event.level === "error").at(-1)?.event ?? "see its log");
};

// The median of the last ten runs that ended well, in seconds; asked once.
let median;
const findMedian = async (dag) => {
  if (median === undefined) {
    const { dag_runs } = await read(`/dags/${encodeURIComponent(dag)}/dagRuns?limit=10&order_by=-run_after&state=success`);
    const took = dag_runs.map((run) => seconds(run.start_date, run.end_date)).sort((a, b) => a - b);
    median = took.length ? took[Math.floor(took.length / 2)] : null;
  }
  return median;
};

const linkWindows = ({ pipeline, from, to, window: start }) => {
  if (!pipeline || !(start || (from && to))) return [];
  const link = document.createElement("a");
  const place = start ? encodeURIComponent(start) : `range?${new URLSearchParams({ from, to })}`;
  link.href = `${document.body.dataset.root}/${encodeURIComponent(pipeline)}/${place}`;
  link.textContent = `${pipeline}, ${start ?? `${from} to ${to}`}, as it is now`;
  const paragraph = document.createElement("p");
  paragraph.append(link);
  return [paragraph];
};

// What the ledger says of the run's windows: a run that certifies without Spark leaves no repair to show.
const countCertified = async ({ pipeline, from, to }) => {
  if (!pipeline || !from || !to) return [];
  const answer = await ask(`${document.body.dataset.root}/api/p/${encodeURIComponent(pipeline)}/strip?${new URLSearchParams({ from, to })}`);
  if (!answer.ok) return []; // the pipeline's TOML may be gone
  const states = JSON.parse(answer.text).states.replaceAll(".", "");
  const certified = states.replace(/[^CRL]/g, "").length;
  return [line(`${certified} of ${states.length} window${states.length === 1 ? "" : "s"} certified now.`, certified < states.length)];
};

const askAirflow = async () => {
  const { dag, run } = airflow.dataset;
  const path = `/dags/${encodeURIComponent(dag)}/dagRuns/${encodeURIComponent(run)}`;
  const [state, tasks] = await Promise.all([read(path), read(`${path}/taskInstances?limit=100`)]);
  const lines = [];
  const since = state.start_date ?? state.queued_at ?? state.run_after;
  const who = state.triggering_user_name ?? "the scheduler";
  const long = `${seconds(since, state.end_date)} s ${state.end_date ? "in all" : "so far"}`;
  const usual = await findMedian(dag);
  lines.push(line(`The run ${WORDS[state.state] ?? state.state}, ${long}${usual ? `; the last ones took ${usual} s` : ""}. Started by ${who}.`, state.state === "failed"));
  if (ENDED.includes(state.state)) lines.push(...(await countCertified(state.conf ?? {})));
  lines.push(...linkWindows(state.conf ?? {}));
  for (const task of tasks.task_instances) {
    const waits = task.state === "scheduled" || task.state === "queued" ? ` in the pool ${task.pool}` : "";
    const failed = task.state === "failed" || task.state === "up_for_retry";
    lines.push(line(`${task.task_id}: ${task.state ?? "not begun"}${waits}${failed ? `. ${await findError(path, task)}` : ""}`, failed));
  }
  airflow.replaceChildren(...lines);
  return ENDED.includes(state.state);
};

const askLedger = async () => {
  const answer = await ask(location.href);
  if (!answer.ok) throw new Error(`The ledger's page answers ${answer.status}.`);
  const fresh = new DOMParser().parseFromString(answer.text, "text/html").getElementById("ledger");
  if (!fresh) throw new Error("Your session has ended: log in again in another tab; this page then goes on.");
  const shown = document.getElementById("ledger");
  if (fresh.innerHTML !== shown.innerHTML) shown.replaceWith(document.adoptNode(fresh));
  return fresh.dataset.done === "true";
};

const follow = async () => {
  let ended = false;
  if (!document.hidden) {
    let runEnded = false;
    try {
      if (airflow) runEnded = await askAirflow();
    } catch (error) {
      airflow.replaceChildren(line(error.message, true));
    }
    try {
      const done = await askLedger();
      ended = airflow ? runEnded : done;
    } catch (error) {
      (airflow ?? document.getElementById("ledger")).replaceChildren(line(error.message, true));
    }
  }
  if (!ended) setTimeout(follow, Date.now() - began < 60_000 ? 2_000 : 5_000);
  else document.body.dataset.followed = "to the end";
};

if (airflow || document.getElementById("ledger").dataset.done !== "true") follow();
