// The page: what can be chosen and typed, and the answers to it.

import { ask } from "/static/engines.js";
import { answerCard, byteText, emptyCard, failedCard } from "/static/render.js";

const INPUTS = ["text", "pair", "question", "context", "options"];
const TASK_NAMES = {
  classification: "Classification",
  "multi-label": "Any number of labels",
  regression: "Regression",
  similarity: "Similarity",
  tagging: "Entities",
  "question-answering": "Question answering",
  "multiple-choice": "Multiple choice",
  "fill-mask": "Fill the mask",
};
const at = (id) => document.getElementById(id);
let state = null;

async function start() {
  const response = await fetch("/api/state");
  if (!response.ok) throw new Error((await response.json()).error);
  state = await response.json();
  const tasks = Object.keys(TASK_NAMES).filter((task) => state.models.some((model) => model.task === task));
  at("task").replaceChildren(...tasks.map((task) => new Option(TASK_NAMES[task], task)));
  at("task-field").hidden = tasks.length < 2;
  if (tasks.length === 1) at("form-title").textContent = TASK_NAMES[tasks[0]];
  if (state.install) {
    at("install").textContent = `The browser's runtimes are not installed, so files run on the server. To install: ${state.install}`;
    at("install").hidden = false;
    document.querySelector('[name="where"][value="server"]').checked = true;
    document.querySelector('[name="where"][value="browser"]').disabled = true;
  }
  at("task").addEventListener("change", showTask);
  at("example").addEventListener("change", fillExample);
  at("sign").addEventListener("click", () => insertSign(modelsOfTask()[0].takes.sign));
  at("form").addEventListener("submit", (event) => {
    event.preventDefault();
    answer();
  });
  at("form").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("form").requestSubmit();
  });
  showTask();
  document.body.dataset.ready = "yes";
}

const modelsOfTask = () => state.models.filter((model) => model.task === at("task").value);

function showTask() {
  const models = modelsOfTask(), { needs, may, sign } = models[0].takes;
  for (const field of document.querySelectorAll("[data-input]")) {
    const name = field.dataset.input;
    field.hidden = !needs.includes(name) && !may.includes(name);
    at(name).required = needs.includes(name);
  }
  at("sign").hidden = !sign;
  at("sign").textContent = `Insert ${sign}`;
  at("files").replaceChildren(at("files").querySelector("legend"), ...models.map(fileChoice));
  const examples = state.examples[at("task").value] ?? [];
  const shown = examples.map((example, i) => new Option(startOf(example.question ?? example.text), i));
  at("example").replaceChildren(new Option("type your own", ""), ...shown);
  if (examples.length) at("example").value = "0";
  fillExample();
  at("results").replaceChildren();
  say("Choose an example or type a text.");
}

function startOf(text) {
  const characters = Array.from(text);
  return characters.length > 60 ? `${characters.slice(0, 60).join("")}…` : text;
}

function fileChoice(model, number) {
  const box = document.createElement("input");
  Object.assign(box, { type: "checkbox", name: "file", value: model.id, checked: number === 0 });
  const name = document.createElement("span");
  name.textContent = model.name;
  const about = document.createElement("span");
  about.className = "hint";
  about.textContent = [model.recipe, byteText(model.bytes)].filter(Boolean).join(", ");
  const text = document.createElement("span");
  text.append(name, " ", about);
  const choice = document.createElement("label");
  choice.className = "file";
  choice.append(box, text);
  return choice;
}

/** Puts what a text has to hold in the place of what is selected in it, as a phone's keyboard has no easy way to. */
function insertSign(sign) {
  const { selectionStart, selectionEnd } = at("text");
  at("text").focus();
  at("text").setRangeText(sign, selectionStart, selectionEnd, "end");
}

function fillExample() {
  const example = (state.examples[at("task").value] ?? [])[at("example").value] ?? {};
  for (const name of INPUTS) {
    const value = example[name] ?? "";
    at(name).value = Array.isArray(value) ? value.join("\n") : value;
  }
}

/** What was typed, for the task; throws where something is missing. */
function typed(model) {
  const asked = {};
  for (const name of [...model.takes.needs, ...model.takes.may]) {
    const value = at(name).value.toWellFormed?.() ?? at(name).value;
    if (name === "options") asked.options = value.split("\n").map((line) => line.trim()).filter(Boolean);
    else if (value.trim()) asked[name] = value;
    const missing = model.takes.needs.includes(name) && (name === "options" ? asked.options.length < 2 : !asked[name]);
    if (missing) {
      at(name).focus();
      const label = document.querySelector(`label[for="${name}"]`).firstChild.textContent.trim();
      throw new Error(name === "options" ? "Type two options at least, one a line." : `Type a text for “${label}”.`);
    }
  }
  const { sign } = model.takes;
  if (sign && !asked.text.includes(sign)) {
    at("text").focus();
    throw new Error(`Write ${sign} in the text where a word is to be found.`);
  }
  const bytes = new TextEncoder().encode(Object.values(asked).flat().join("")).length;
  if (bytes > state.most_text_bytes)
    throw new Error(`The texts have ${bytes.toLocaleString("en")} bytes, more than ${state.most_text_bytes.toLocaleString("en")}.`);
  return asked;
}

async function answer() {
  if (at("run").getAttribute("aria-disabled") === "true") return;
  const chosen = new Set([...document.querySelectorAll('[name="file"]:checked')].map((box) => box.value));
  const models = modelsOfTask().filter((model) => chosen.has(model.id));
  const where = document.querySelector('[name="where"]:checked').value;
  let asked;
  try {
    if (!models.length) throw new Error("Choose a file.");
    asked = typed(models[0]);
  } catch (error) {
    return say(error.message, true);
  }
  at("run").setAttribute("aria-disabled", "true");
  const cards = models.map(emptyCard);
  at("results").replaceChildren(...cards);
  at("results").dataset.count = models.length;
  let failed = 0;
  for (const [number, model] of models.entries()) {
    say(`Running ${model.name} …`);
    let card;
    try {
      card = answerCard(model, asked, await ask(model, asked, where, state.runtimes), models.length > 1);
    } catch (error) {
      failed++;
      card = failedCard(model, error.message);
    }
    cards[number].replaceWith(card);
  }
  at("run").removeAttribute("aria-disabled");
  if (matchMedia("(max-width: 48rem)").matches) at("results-title").scrollIntoView();
  const done = models.length - failed;
  say(failed ? `${done} of ${models.length} answered.` : `Answered by ${models.length === 1 ? "1 file" : `${models.length} files`}.`, failed > 0);
}

function say(text, wrong = false) {
  at("status").textContent = text;
  at("status").classList.toggle("error", wrong);
}

start().catch((error) => say(`The page cannot start: ${error.message}`, true));
