// Answers as elements. Texts are put in as text only: nothing that is typed becomes markup.

import { WORD_START } from "/static/packing.js";

const MOST_SCORES = 8;
const MOST_VALUES = 12; // of an embedding
const MOST_MASKS = 12; // with a table of their own
const ENTITY_COLORS = 6; // in style.css

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") made.className = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function byteText(bytes) {
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(bytes < 1e4 ? 1 : 0)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

export const timeText = (milliseconds) => `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`;

function cardOf(model, ...content) {
  const title = element("h3", { id: `card-${model.id}` }, model.name);
  return element("article", { class: "card", "aria-labelledby": title.id, "data-file": model.id }, title, ...content);
}

export const emptyCard = (model) => cardOf(model, element("p", { class: "hint" }, "…"));

export const failedCard = (model, message) => cardOf(model, element("p", { class: "error" }, message));

export function answerCard(model, asked, found, beside) {
  const shown = SHOW[model.task](found.answer, asked, model);
  return cardOf(model, facts(model, found), element("div", { class: "answer" }, ...shown), tokenList(found.tokens, !beside));
}

function facts(model, found) {
  const list = element("dl", { class: "facts" });
  const add = (name, value, kind = {}) =>
    list.append(element("div", kind, element("dt", {}, name), element("dd", {}, value)));
  add("time", timeText(found.milliseconds));
  add("size", byteText(model.bytes));
  if (model.recipe) add("recipe", model.recipe);
  add("ran", found.runtime, { class: "long" });
  if (found.why) add("why not in the browser", found.why, { class: "long" });
  return list;
}

function tokenList({ rows, count, parts }, open) {
  const number = `${count.toLocaleString("en")} tokens${parts > 1 ? ` in ${parts} parts` : ""}`;
  const details = element("details", { class: "tokens" }, element("summary", {}, number));
  details.open = open;
  const partsShown = element("div", { class: "rows", tabindex: "0", role: "group", "aria-label": "tokens" });
  let shown = 0;
  for (const row of rows) {
    partsShown.append(element("ol", {}, ...row.map((piece) => element("li", {}, piece))));
    shown += row.length;
  }
  details.append(partsShown);
  if (shown < count) details.append(element("p", { class: "hint" }, `and ${(count - shown).toLocaleString("en")} more`));
  return details;
}

/** Labels with bars, the most probable first. */
function scoreTable(scores, chosen, { caption = null, shown = (label) => [label] } = {}) {
  const sorted = [...scores].sort((a, b) => b[1] - a[1]);
  const rows = sorted.slice(0, MOST_SCORES).map(([label, score]) => {
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", score);
    return element(
      "tr",
      chosen.includes(label) ? { class: "chosen" } : {},
      element("th", { scope: "row" }, ...shown(label)),
      element("td", { class: "number", "data-value": score }, score.toFixed(4)),
      element("td", { class: "bars" }, bar),
    );
  });
  const head = ["label", "score"].map((name) => element("th", { scope: "col" }, name));
  const table = element("table", { class: "scores" });
  if (caption !== null) table.append(element("caption", {}, caption));
  table.append(element("thead", { class: "unseen" }, element("tr", {}, ...head)));
  table.append(element("tbody", {}, ...rows));
  const left = sorted.length - rows.length;
  return left > 0 ? [table, element("p", { class: "hint" }, `and ${left} more labels`)] : [table];
}

const headline = (text) => element("p", { class: "headline" }, text);

function pieces(text, parts, make) {
  const characters = Array.from(text), shown = element("p", { class: "passage" });
  let end = 0;
  for (const part of parts) {
    shown.append(characters.slice(end, part.start).join(""), make(part, characters.slice(part.start, part.end).join("")));
    end = part.end;
  }
  shown.append(characters.slice(end).join(""));
  return shown;
}

function answerInPassage(found, asked) {
  const share = `score ${found.score.toFixed(4)}`;
  if (found.start === null) return [headline("No answer in the passage"), element("p", { class: "hint" }, share)];
  const marked = pieces(asked.context, [found], (_, text) => element("mark", { class: "found" }, text));
  return [headline(found.answer), element("p", { class: "hint" }, share), marked];
}

function entities({ entities: found }, asked, model) {
  const kinds = [...new Set(model.labels.map((label) => label.slice(2)).filter(Boolean))].sort();
  const marked = pieces(asked.text, found, (entity, text) =>
    element(
      "mark",
      { class: `entity entity-${kinds.indexOf(entity.type) % ENTITY_COLORS}`, title: entity.score.toFixed(4) },
      text,
      element("span", { class: "kind" }, ` ${entity.type}`),
    ),
  );
  if (!found.length) return [headline("No entities"), marked];
  const rows = found.map((entity) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, entity.text),
      element("td", {}, entity.type),
      element("td", { class: "number", "data-value": entity.score }, entity.score.toFixed(4)),
    ),
  );
  const head = ["entity", "type", "score"].map((name) => element("th", { scope: "col" }, name));
  return [marked, element("table", { class: "found" }, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows))];
}

function embedding(values) {
  const shown = values.slice(0, MOST_VALUES).map((value) => value.toFixed(4)).join("  ");
  const more = values.length > MOST_VALUES ? ` … ${values.length} numbers` : "";
  return [headline(`Embedding of ${values.length} numbers`), element("p", { class: "vector" }, shown + more)];
}

/** A piece; the mark of the beginning of a word, if it has one, is not for being read out. */
function piece(text) {
  const rest = text.slice(WORD_START.length);
  return text.startsWith(WORD_START) && rest ? [element("span", { class: "hint", "aria-hidden": "true" }, WORD_START), rest] : [text];
}

/** The text with all masks filled, and for each mask what else may stand there. */
function masks({ filled, masks: found }) {
  const marked = pieces(filled, found, (_, text) => element("mark", { class: "found" }, text));
  const tables = found.slice(0, MOST_MASKS).flatMap(({ scores }, number) => {
    const caption = found.length > 1 ? `Mask ${number + 1} of ${found.length.toLocaleString("en")}` : "Mask";
    return scoreTable(scores, [scores[0][0]], { caption, shown: piece });
  });
  const left = found.length - MOST_MASKS;
  const more = left > 0 ? [element("p", { class: "hint" }, `and ${left.toLocaleString("en")} more masks`)] : [];
  return [marked, ...tables, ...more];
}

const SHOW = {
  classification: ({ label, scores }) => [headline(label), ...scoreTable(scores, [label])],
  "multi-label": ({ labels, scores }) => [headline(labels.join(", ") || "No label"), ...scoreTable(scores, labels)],
  regression: ({ value }) => [headline(value.toFixed(4))],
  similarity: ({ cosine, embedding: values }) =>
    values ? embedding(values) : [headline(cosine.toFixed(4)), element("p", { class: "hint" }, "cosine of the two texts, from −1 to 1")],
  tagging: entities,
  "question-answering": answerInPassage,
  "multiple-choice": ({ label, scores }) => [headline(label), ...scoreTable(scores, [label])],
  "fill-mask": masks,
};
