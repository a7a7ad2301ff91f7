// Runs a file on LiteRT for the web: the page's tokenizer before it, the page's decoders behind it.

import { answerOf, bestPieces, choice, cosine, entitiesOf, filledText, label, labelSet, numbers } from "/static/decode.js";
import { openedOnce } from "/static/opened.js";
import { maskRows, pack, questionRows, taggingRows, wordPlaces } from "/static/packing.js";
import { encode, vocabulary } from "/static/tokenizer.js";

const CORE = "/runtime/@litertjs/core";
const ANY_LENGTH = "serving_default";
const MOST_PIECES = 1024; // that are shown
let loading = null; // LiteRT itself, once for the page

async function runtime() {
  loading ??= import(`${CORE}/dist/index.js`).then(async (core) => {
    quietModule();
    await core.loadLiteRt(`${CORE}/wasm/`);
    return core;
  });
  return loading;
}

/** For the module of a runtime that is loaded next: what it says while it works is mostly no error. */
export function quietModule() {
  globalThis.Module = {
    printErr: (line) => (/^(INFO|WARNING|VERBOSE|[IWV]\d{4} )/.test(line) ? console.debug(line) : console.error(line)),
  };
}

const opened = openedOnce(async (model) => {
  const [core] = await Promise.all([runtime(), encode(model, [])]);
  const compiled = await core.loadAndCompile(`/models/${model.id}.tflite`, { accelerator: "wasm" });
  return { core, compiled, lengths: model.lengths };
});

/** The answer of a model to a request; see engines.js. */
export async function answerWithLiteRt(model, asked, versions) {
  const { parts, fresh } = await opened(model);
  if (fresh) await answerOnce(parts, asked, model); // the first run makes room for the next ones: it is not timed
  const start = performance.now();
  const { rows, answer } = await answerOnce(parts, asked, model);
  const milliseconds = performance.now() - start;
  const runtime = `LiteRT for the web ${versions["@litertjs/core"]} in this browser`;
  return { answer, tokens: shownTokens(rows), milliseconds, runtime };
}

async function answerOnce(parts, asked, model) {
  const { rows, decode, kept } = await TASKS[model.task](asked, model);
  const outputs = [];
  for (const row of rows) {
    const found = await run(parts, row, model);
    outputs.push(kept ? kept(found, row) : found);
  }
  return { rows, answer: decode(outputs) };
}

/** The outputs of one row by name; those of each token end with the row. */
async function run({ core, compiled, lengths }, row, model) {
  const length = lengths.find((tokens) => tokens >= row.ids.length);
  const filled = (values, filling) => Int32Array.from({ length }, (_, i) => values[i] ?? filling);
  const arrays = {
    token_ids: filled(row.ids, model.ids.pad),
    segment_ids: filled(row.segments, 0),
    padding_mask: filled(row.ids.map(() => 1), 0),
  };
  const inputs = {};
  for (const [name, values] of Object.entries(arrays)) inputs[name] = new core.Tensor(values, [1, length]);
  const signature = lengths.length > 1 ? `length_${length}` : ANY_LENGTH;
  const found = await compiled.run(signature, inputs);
  const outputs = {};
  for (const [name, tensor] of Object.entries(found)) {
    const values = await tensor.data();
    const ofTokens = PER_TOKEN.includes(name);
    outputs[name] = ofTokens ? values.slice(0, (values.length / length) * row.ids.length) : values.slice();
  }
  for (const tensor of [...Object.values(inputs), ...Object.values(found)]) tensor.delete();
  return outputs;
}

const PER_TOKEN = ["label_probabilities", "start_logits", "end_logits", "start_log_probs", "end_log_probs"];

function shownTokens(rows) {
  let left = MOST_PIECES;
  const shown = [];
  for (const { pieces } of rows) {
    if (left <= 0) break;
    shown.push(pieces.slice(0, left));
    left -= pieces.length;
  }
  return { rows: shown, count: rows.reduce((sum, row) => sum + row.ids.length, 0), parts: rows.length };
}

/** The row of a text, or of a text with its pair. */
async function textRows(asked, model) {
  const [text, pair] = await encode(model, textsOf(asked));
  return [pack(text, pair ?? null, model)];
}

const textsOf = (asked) => [asked.text, asked.pair].filter((text) => (text ?? "").trim());

// Task → rows for the model, and what makes an answer of its outputs for them; `kept`: what of a row's outputs that needs,
// where all of them would not fit into memory.
const TASKS = {
  classification: async (asked, model) => ({
    rows: await textRows(asked, model),
    decode: ([outputs]) => label(numbers(outputs, "probabilities"), model.labels),
  }),
  "multi-label": async (asked, model) => ({
    rows: await textRows(asked, model),
    decode: ([outputs]) => labelSet(numbers(outputs, "sigmoid_probabilities"), model.labels, model.settings.threshold),
  }),
  regression: async (asked, model) => ({
    rows: await textRows(asked, model),
    decode: ([outputs]) => ({ value: numbers(outputs, "value")[0] }),
  }),
  similarity: async (asked, model) => ({
    rows: (await encode(model, textsOf(asked))).map((text) => pack(text, null, model)),
    decode: (outputs) => similarity(outputs.map((one) => numbers(one, "embedding"))),
  }),
  tagging: async (asked, model) => {
    const places = wordPlaces(asked.text), characters = Array.from(asked.text);
    const words = await encode(model, places.map(([start, end]) => characters.slice(start, end).join("")));
    const rows = taggingRows(words, model);
    return { rows, decode: (outputs) => tagged(asked.text, places, rows, outputs, model.labels) };
  },
  "question-answering": async (asked, model) => {
    const [question, passage] = await encode(model, [asked.question, asked.context]);
    const windows = questionRows(question, passage, model);
    return {
      rows: windows.rows,
      decode: (outputs) => answerOf(asked.context, passage, windows, outputs, model.settings),
    };
  },
  "multiple-choice": async (asked, model) => {
    const { question, options } = asked;
    const statements = options.map((option) =>
      question.includes("_") ? question.replaceAll("_", () => option) : `${question} ${option}`,
    );
    const own = await encode(model, statements);
    const [context] = asked.context ? await encode(model, [asked.context]) : [null];
    const rows = own.map((statement) => (context ? pack(context, statement, model) : pack(statement, null, model)));
    return { rows, decode: (outputs) => choice(outputs.map((one) => numbers(one, "score")[0]), options) };
  },
  "fill-mask": async (asked, model) => {
    const parts = asked.text.split(model.takes.sign), special = Object.values(model.ids);
    const [encoded, { pieces, idOf }] = await Promise.all([encode(model, parts), vocabulary(model)]);
    return {
      rows: maskRows(parts, encoded, idOf, model),
      kept: (outputs, row) => bestPieces(outputs, row, pieces, model.settings.top_k),
      decode: (candidates) => filledText(parts, candidates.flat(), special),
    };
  },
};

export function similarity(vectors) {
  return vectors.length > 1 ? { cosine: cosine(vectors[0], vectors[1]) } : { embedding: vectors[0] };
}

function tagged(text, places, rows, outputs, labels) {
  const table = places.map(() => null);
  rows.forEach((row, number) => {
    const values = numbers(outputs[number], "label_probabilities");
    for (const [word, position] of row.starts)
      table[word] = values.slice(position * labels.length, (position + 1) * labels.length);
  });
  return { entities: entitiesOf(text, places, table, labels) };
}
