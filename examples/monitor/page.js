"use strict";

const element = (id) => document.getElementById(id);
const copy = (id) => element(id).content.firstElementChild.cloneNode(true);
const clock = (text) => new Date(text).toLocaleTimeString("en-GB", { timeZone: "UTC" });
const names = new Map();
const RULES = {
  high: "is above its limit",
  silent: "has not been heard for five minutes",
  failing: "has failed three times within a minute",
};
const SHORT = { high: "above its limit", silent: "silent", failing: "failing" };

// Each part of the page comes as a whole when it has changed. Elements stay, by their key, so that
// the focus and what is being typed stay, too.
function fill(list, rows, key, template, show) {
  const before = new Map([...list.children].map((li) => [li.dataset.key, li]));
  rows.forEach((row, place) => {
    const id = String(key(row));
    const li = before.get(id) ?? Object.assign(copy(template), { isNew: true });
    before.delete(id);
    li.dataset.key = id;
    show(li, row);
    if (list.children[place] !== li) list.insertBefore(li, list.children[place] ?? null);
    li.isNew = false;
  });
  for (const li of before.values()) li.remove();
}

const text = (within, selector, value) => {
  const found = within.querySelector(selector);
  if (found.textContent !== value) found.textContent = value;
  return found;
};

const parts = {
  alerts: (rows) => fill(element("alerts"), rows, (row) => row.id, "alert", showAlert),
  sensors: (rows) => {
    for (const row of rows) names.set(row.id, row.name);
    fill(element("sensors"), rows, (row) => row.id, "sensor", showSensor);
  },
  notices: (rows) => fill(element("notices"), rows, (row) => `${row.incident} ${row.what}`, "notice", showNotice),
  clock: ({ now, late }) => {
    element("now").textContent = `${clock(now)} UTC`;
    element("late").textContent = late ? `· ${late} late` : "";
  },
};

function showAlert(li, alert) {
  li.classList.toggle("seen", alert.by !== null);
  text(li, ".sensor", names.get(alert.sensor) ?? alert.sensor);
  text(li, ".rule", RULES[alert.rule] ?? alert.rule);
  text(li, ".since", `since ${clock(alert.since)}`);
  const by = text(li, ".by", alert.by !== null ? `seen by ${alert.by}` : alert.is_escalated ? "escalated" : "");
  by.classList.toggle("escalated", alert.by === null && alert.is_escalated);
  const button = li.querySelector("button");
  button.hidden = alert.by !== null;
  if (!li.isNew) return;
  button.onclick = async () => {
    button.disabled = true;
    const name = element("by").value.trim() || "somebody";
    element("problem").textContent = await send("/acknowledge", { incident: alert.id, by: name });
    button.disabled = false;
  };
}

function showSensor(li, sensor) {
  text(li, "h3", sensor.name);
  const failed = sensor.at !== null && sensor.value === null;
  text(li, ".value", failed ? "failed" : sensor.value === null ? "–" : `${sensor.value.toFixed(1)} ${sensor.unit}`);
  li.classList.toggle("failed", failed);
  li.classList.toggle("above", sensor.value !== null && sensor.value > sensor.high);
  draw(li.querySelector("svg"), sensor);
  const form = li.querySelector("form");
  for (const name of ["low", "high"]) {
    const input = form.elements[name];
    input.setAttribute("aria-label", `${sensor.name}: ${name === "low" ? "off below" : "on above"}`);
    if (input.value === input.dataset.sent || input.dataset.sent === undefined) input.value = sensor[name];
    input.dataset.sent = String(sensor[name]);
  }
  if (!li.isNew) return;
  form.onsubmit = async (event) => {
    event.preventDefault();
    const [low, high] = ["low", "high"].map((name) => form.elements[name].valueAsNumber);
    const wrong = Number.isNaN(low) || Number.isNaN(high) ? "Two numbers, please." : "";
    text(li, ".problem", wrong || (await send("/limits", { sensor: sensor.id, low, high })));
  };
}

// The means of the last half hour, and the band between the limits, in which nothing changes.
function draw(svg, { name, means, low, high, unit }) {
  const values = means.map(([, mean]) => mean);
  const top = Math.max(high, ...values);
  const bottom = Math.min(low, ...values);
  const y = (value) => 60 - (56 * (value - bottom)) / (top - bottom || 1);
  const begin = means.length ? Date.parse(means.at(-1)[0]) - 29 * 60000 : 0;
  const x = (start) => ((Date.parse(start) - begin) / (29 * 60000)) * 300;
  const line = means.map(([start, mean], place) => {
    const follows = place > 0 && Date.parse(start) - Date.parse(means[place - 1][0]) === 60000;
    return `${follows ? "L" : "M"}${x(start).toFixed(1)},${y(mean).toFixed(1)}h0`; // h0: a dot, if it is alone
  });
  svg.querySelector("path").setAttribute("d", line.join(""));
  const band = svg.querySelector("rect");
  band.setAttribute("y", y(high));
  band.setAttribute("height", Math.max(y(low) - y(high), 1));
  const last = values.length ? `, the last ${values.at(-1).toFixed(1)} ${unit}` : "";
  svg.setAttribute("aria-label", `${name}: ${values.length} means of a minute${last}`);
}

function showNotice(li, notice) {
  text(li, "time", clock(notice.at));
  const by = notice.by === null ? "" : ` by ${notice.by}`;
  text(li, ".what", `${names.get(notice.sensor) ?? notice.sensor}, ${SHORT[notice.rule] ?? notice.rule}: ${notice.what}${by}`);
}

async function send(path, body) {
  try {
    const answer = await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    if (answer.ok) return "";
    return (await answer.json()).error;
  } catch {
    return "The monitor does not answer.";
  }
}

const by = element("by");
try { by.value = localStorage.getItem("by") ?? ""; } catch { /* no storage: the name is asked again */ }
by.onchange = () => { try { localStorage.setItem("by", by.value); } catch { /* the same */ } };

const events = new EventSource("/events");
for (const [name, show] of Object.entries(parts)) {
  events.addEventListener(name, ({ data }) => {
    show(JSON.parse(data));
    element("state").textContent = "live";
    element("state").className = "live";
  });
}
events.onerror = () => {
  element("state").textContent = "connecting";
  element("state").className = "";
};
