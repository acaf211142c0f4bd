"use strict";
const held = new Map();

function element(parent, kind, name, text) {
  const made = document.createElement(kind);
  made.className = name;
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

// One row for each answer, made once and moved afterwards, so that the eye can follow.
function rowOf(question, answer) {
  const key = question.name + "\n" + answer.answer;
  if (!held.has(key)) {
    let section = document.getElementById("q-" + question.name);
    if (!section) {
      section = element(document.getElementById("questions"), "section", "question");
      section.id = "q-" + question.name;
      element(section, "h2", "", question.text);
    }
    const row = element(section, "div", "row");
    element(row, "div", "name", answer.answer);
    const track = element(row, "div", "track");
    held.set(key, { band: element(track, "div", "band"), mark: element(track, "div", "mark"), number: element(row, "div", "number") });
  }
  return held.get(key);
}

function draw(found) {
  document.getElementById("count").textContent =
    found.reports + (found.reports === 1 ? " answer" : " answers") + ", ε = " + found.epsilon + " for each person";
  for (const question of found.questions) {
    const isMean = question.low !== undefined;
    const place = (x) => Math.min(100, Math.max(0, isMean ? (100 * (x - question.low)) / (question.high - question.low) : 100 * x));
    const words = (x) => (isMean ? x.toPrecision(3) : Math.round(100 * x) + " %");
    for (const answer of question.answers || []) {
      const row = rowOf(question, answer);
      row.band.style.left = place(answer.low) + "%";
      row.band.style.width = place(answer.high) - place(answer.low) + "%";
      row.mark.style.left = place(answer.consistent) + "%";
      row.number.textContent = words(answer.low) + " to " + words(answer.high);
    }
  }
}

async function refresh() {
  try {
    const reply = await fetch("estimate.json");
    if (reply.ok) draw(await reply.json());
  } catch {
    document.getElementById("count").textContent = "The survey has stopped.";
  }
  setTimeout(refresh, 1000);
}

refresh();
