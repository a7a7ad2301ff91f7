// The tokenizer, which works beside the page: see tokenizer_worker.js.

import { openedOnce } from "/static/opened.js";

let worker = null, count = 0;
const waiting = new Map();

function started() {
  if (worker) return worker;
  worker = new Worker("/static/tokenizer_worker.js", { type: "module" });
  worker.addEventListener("message", ({ data: { number, found, error } }) => {
    const { resolve, reject } = waiting.get(number);
    waiting.delete(number);
    if (error === undefined) resolve(found);
    else reject(new Error(error));
  });
  worker.addEventListener("error", (event) => {
    const reason = new Error(`the tokenizer does not start: ${event.message ?? "its package cannot be loaded"}`);
    for (const { reject } of waiting.values()) reject(reason);
    waiting.clear();
    worker = null;
  });
  return worker;
}

/** The ids, pieces and places of each text, without special tokens. */
export function encode(model, texts) {
  return new Promise((resolve, reject) => {
    const number = ++count;
    waiting.set(number, { resolve: (found) => resolve(found.map((text) => named(text, model.ids.unk))), reject });
    started().postMessage({ number, id: model.id, texts });
  });
}

/** The pieces of a model's vocabulary by id, and the id of a piece. */
export const vocabulary = (model) => openedVocabulary(model).then(({ parts }) => parts);

const openedVocabulary = openedOnce(async (model) => {
  const response = await fetch(`/models/${model.id}.pieces`);
  const pieces = await response.json();
  if (!response.ok) throw new Error(pieces.error);
  const ids = new Map(pieces.map((piece, id) => [piece, id]));
  return { pieces, idOf: (piece) => ids.get(piece) };
});

/** A piece that the vocabulary does not have is shown as that, not as its characters. */
const named = (text, unknown) => ({
  ...text,
  pieces: text.pieces.map((piece, i) => (text.ids[i] === unknown ? "<unk>" : piece)),
});
