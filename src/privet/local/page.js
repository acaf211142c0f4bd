"use strict";
// Everything here runs on the respondent's side. What leaves the page is a report, and a report is randomized.

// A word of 64 bits from the browser's cryptographic generator, against a threshold: true with probability limit/2^64.
function coin(limit) {
  return crypto.getRandomValues(new BigUint64Array(1))[0] < BigInt(limit);
}

// A whole number in [0, bound), each as likely: the last, incomplete round of 2^32 is drawn again.
function below(bound) {
  const whole = Math.floor(4294967296 / bound) * bound;
  for (;;) {
    const drawn = crypto.getRandomValues(new Uint32Array(1))[0];
    if (drawn < whole) return drawn % bound;
  }
}

function hex(bytes) {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (b) => b.toString(16).padStart(2, "0")).join("");
}

function respond(value, domain, limit) {
  if (coin(limit)) return value;
  const drawn = below(domain - 1);
  return drawn >= value ? drawn + 1 : drawn;
}

// A number on the grid, up or down at random; this changes no probability that privacy rests on.
function step(law, value) {
  const place = Math.min(Math.max((value - law.low) / (law.high - law.low), 0), 1) * law.steps;
  const under = Math.floor(place);
  return under + (below(4294967296) / 4294967296 < place - under ? 1 : 0);
}

const LAWS = {
  response: (law, value) => respond(value, law.domain, law.limit),
  hadamard: (law, value) => {
    const row = value + 1;
    const wanted = coin(law.limit);
    const drawn = below(law.outputs);
    let ones = drawn & row, odd = false;
    for (; ones; ones &= ones - 1) odd = !odd;
    return odd === wanted ? drawn ^ (row & -row) : drawn;
  },
  hash: (law, value) => {
    const drawn = below(law.hashes);
    let rest = drawn, left = value, bin = 0;
    for (let i = 0; i < law.digits; i++) {
      bin += (left % law.bins) * (rest % law.bins);
      left = Math.floor(left / law.bins);
      rest = Math.floor(rest / law.bins);
    }
    return drawn * law.bins + respond(bin % law.bins, law.bins, law.limit);
  },
  duchi: (law, value) => (coin(BigInt(law.start) + BigInt(law.slope) * BigInt(step(law, value))) ? 1 : 0),
  piecewise: (law, value) => {
    const at = step(law, value);
    if (coin(law.limit)) return at + below(law.width);
    const outside = below(law.steps);
    return outside >= at ? outside + law.width : outside;
  },
};

function randomized(law, value) {
  return LAWS[law.law](law, value);
}

function reportOn(survey, answers) {
  const asked = survey.budget === "sample" ? [survey.questions[below(survey.questions.length)]] : survey.questions;
  const drawn = {};
  for (const question of asked) drawn[question.name] = randomized(question.law, answers[question.name]);
  return { privet: survey.privet, survey: survey.digest, id: hex(16), answers: drawn };
}

function shown(line, survey) {
  const byId = (id) => document.getElementById(id);
  if (!byId("done").hidden) return;
  byId("report").textContent = line;
  byId("done").hidden = false;
  const form = byId("questions");
  if (form) form.remove(); // the true answers are gone with it
  byId("copy").onclick = () => navigator.clipboard.writeText(line).then(() => { byId("said").textContent = "Copied."; });
  byId("download").onclick = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([line + "\n"], { type: "application/jsonl" }));
    link.download = "report.jsonl";
    link.click();
  };
  if (survey.send) {
    byId("said").textContent = "Nothing has been sent yet. This line is what would be.";
    // The same report may be sent again, after a failure or a reload: it is counted once, by its id.
    byId("send").onclick = () => {
      byId("send").disabled = true;
      const over = (words, sent) => { byId("said").textContent = words; byId("send").disabled = sent; };
      fetch("report", { method: "POST", headers: { "Content-Type": "application/json" }, body: line })
        .then((reply) => over(reply.ok ? "Sent. Thank you." : "It was refused; copy the line above.", reply.ok))
        .catch(() => over("It could not be sent; try again, or copy the line above.", false));
    };
  }
}

// How long it takes, with much to spare, until every tab of a browser has read what one of them has stored.
const SETTLED = 500;

function stored(kept) {
  try { return localStorage.getItem(kept); } catch { return null; }
}

function settled() {
  return new Promise((go) => { setTimeout(go, SETTLED); });
}

// A second report about the same answers would cost a second ε, so that the first one is kept and shown again, in every
// tab that has the page open. A report costs what it tells to those who see it: none is shown before it is certain that
// it is the one that is kept. One tab at a time draws, where the browser has locks; where it has none, two tabs may draw
// at once, the last that stores its report wins, and both show that one.
async function onlyReport(kept, draw) {
  const once = async () => {
    const before = stored(kept);
    if (before) return before;
    const line = draw();
    try { localStorage.setItem(kept, line); } catch { return line; /* a page without storage forgets it */ }
    await settled();
    return stored(kept) || line;
  };
  return navigator.locks ? navigator.locks.request(kept, once) : once();
}

function started() {
  const survey = JSON.parse(document.getElementById("survey").textContent);
  const kept = "privet " + survey.digest;
  const before = stored(kept);
  if (before) { shown(before, survey); return; }
  const form = document.getElementById("questions");
  // What the event itself says may be a report that lost.
  window.addEventListener("storage", async (event) => {
    if (event.key !== kept) return;
    await settled();
    const line = stored(kept);
    if (line) shown(line, survey);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = new FormData(form), answers = {};
    for (const question of survey.questions) answers[question.name] = Number(given.get(question.name));
    form.remove(); // nobody can submit it twice
    onlyReport(kept, () => JSON.stringify(reportOn(survey, answers))).then((line) => shown(line, survey));
  });
}

started();
