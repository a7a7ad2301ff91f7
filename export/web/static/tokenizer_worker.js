// Text → ids with the characters that they stand for: SentencePiece with the device model, which carries ALBERT's text rules.
// Words are cut up one by one, as albert-tf does. Places count code points, as Python does.
//
// A worker of its own: the package makes functions of strings, which the page's policy forbids. The worker's alone allows it.

import { SentencePieceProcessor } from "/runtime/@sctg/sentencepiece-js/dist/index.js";

const WORD_START = "▁";
const MOST_WORDS = 20000; // that are remembered

class Tokenizer {
  constructor(processor) {
    this.processor = processor;
    this.words = new Map();
  }

  /** The ids, pieces and places of a text, without special tokens. */
  encode(text) {
    const ids = [], pieces = [], spans = [];
    let place = 0, before = 0;
    for (const found of text.matchAll(/\S+/gu)) {
      place += codePoints(text.slice(before, found.index));
      const word = this.word(found[0]);
      for (let i = 0; i < word.ids.length; i++) {
        ids.push(word.ids[i]);
        pieces.push(word.pieces[i]);
        spans.push([place + word.spans[i][0], place + word.spans[i][1]]);
      }
      place += codePoints(found[0]);
      before = found.index + found[0].length;
    }
    return { ids, pieces, spans };
  }

  word(text) {
    if (!this.words.has(text)) {
      if (this.words.size >= MOST_WORDS) this.words.clear();
      const ids = this.processor.encodeIds(text);
      const pieces = this.processor.encodePieces(text);
      this.words.set(text, { ids, pieces, spans: pieceSpans(text, pieces) });
    }
    return this.words.get(text);
  }
}

function codePoints(text) {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

// How the text rules may have changed a word; the pieces say which of these it was.
const RULES = [
  (text) => text.normalize("NFKD").replace(/\p{Mn}/gu, "").toLowerCase(),
  (text) => text.normalize("NFKC").toLowerCase(),
  (text) => text.normalize("NFKD").replace(/\p{Mn}/gu, ""),
  (text) => text.normalize("NFKC"),
];

/** For each piece its characters in the word; all of the word where the rules did more to it than is known here. */
function pieceSpans(word, pieces) {
  const characters = Array.from(word);
  const texts = pieces.map((piece, i) => Array.from(i === 0 && piece.startsWith(WORD_START) ? piece.slice(1) : piece));
  const whole = texts.flat().join("");
  for (const rule of RULES) {
    const made = quotesJoined(characters).map((part) => ({ ...part, text: Array.from(rule(part.text)) }));
    if (made.flatMap((part) => part.text).join("") !== whole) continue;
    const sources = made.flatMap((part) => part.text.map(() => [part.start, part.end]));
    return spansOf(texts, withDropped(sources, characters.length));
  }
  return texts.map((text) => (text.length ? [0, characters.length] : [0, 0]));
}

/** The characters of a word with their places; two single quotes are one double quote. */
function quotesJoined(characters) {
  const parts = [];
  for (let i = 0; i < characters.length; i++) {
    const pair = characters[i] + (characters[i + 1] ?? "");
    if (pair === "``" || pair === "''") parts.push({ text: '"', start: i, end: ++i + 1 });
    else parts.push({ text: characters[i], start: i, end: i + 1 });
  }
  return parts;
}

/** A character that a rule dropped belongs to the one before it. */
function withDropped(sources, length) {
  return sources.map(([start, end], i) => {
    const next = sources.slice(i + 1).find((other) => other[0] !== start);
    return [start, Math.max(end, next ? next[0] : length)];
  });
}

function spansOf(texts, sources) {
  let at = 0;
  return texts.map((text) => {
    const first = sources[at], last = sources[at + text.length - 1];
    at += text.length;
    if (!text.length) return first ? [first[0], first[0]] : [0, 0];
    return [first[0], last[1]];
  });
}

const opened = new Map(); // tokenizers by the model's id, as promises

async function open(id) {
  const response = await fetch(`/models/${id}.spm`);
  if (!response.ok) throw new Error((await response.json()).error);
  const processor = new SentencePieceProcessor();
  await processor.load(new Uint8Array(await response.arrayBuffer()));
  return new Tokenizer(processor);
}

addEventListener("message", async ({ data: { number, id, texts } }) => {
  try {
    if (!opened.has(id)) opened.set(id, open(id));
    const tokenizer = await opened.get(id);
    postMessage({ number, found: texts.map((text) => tokenizer.encode(text)) });
  } catch (error) {
    opened.delete(id);
    postMessage({ number, error: String(error.message ?? error) });
  }
});
