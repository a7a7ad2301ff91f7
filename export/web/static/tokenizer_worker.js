// Text → ids with the characters that they stand for: SentencePiece with the device model, which carries ALBERT's text rules.
// Words are cut up one by one, as albert-tf does. Places count code points, as Python does.
//
// A worker of its own: the package makes functions of strings, which the page's policy forbids. The worker's alone allows it.

import { SentencePieceProcessor } from "/runtime/@sctg/sentencepiece-js/dist/index.js";
import { NO_SPACE } from "/static/spaces.js";

const WORD_START = "▁";
const WORD = new RegExp(`${NO_SPACE}+`, "gu");
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
    for (const found of text.matchAll(WORD)) {
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
      const known = text.replaceAll("\0", ""); // the package ends a text there; no vocabulary has it
      const ids = this.processor.encodeIds(known);
      const pieces = this.processor.encodePieces(known);
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

const LONGEST_ALIGNED = 500; // characters of a word; what is longer takes too long

/** What the text rules make of a character by itself. */
const ruled = (text) => text.normalize("NFKD").replace(/\p{Mn}/gu, "").toLowerCase().normalize("NFC");
const cased = (text) => text.normalize("NFKD").replace(/\p{Mn}/gu, "").normalize("NFC");

/** For each piece the characters of the word that it stands for. */
function pieceSpans(word, pieces) {
  const characters = Array.from(word);
  const texts = pieces.map((piece, i) => Array.from(i === 0 && piece.startsWith(WORD_START) ? piece.slice(1) : piece));
  const whole = Array.from(sameSigma(texts.flat().join("")));
  let sources = null;
  for (const rule of [ruled, cased]) {
    const made = quotesJoined(characters).flatMap(({ text, start, end }) =>
      Array.from(sameSigma(rule(text)), (character) => ({ character, start, end })),
    );
    if (made.map((one) => one.character).join("") === whole.join("")) {
      sources = made;
      break;
    }
    sources ??= made.length && made.length * whole.length <= LONGEST_ALIGNED ** 2 ? aligned(made, whole) : null;
  }
  if (sources === null) return texts.map((text) => (text.length ? [0, characters.length] : [0, 0]));
  return spansOf(texts, withDropped(sources.map(({ start, end }) => [start, end]), characters.length));
}

/** For each character of the pieces the one of the word that it was made of, by the fewest edits between the two. */
function aligned(made, whole) {
  const cost = Array.from({ length: made.length + 1 }, (_, i) => [i]);
  for (let j = 1; j <= whole.length; j++) cost[0][j] = j;
  for (let i = 1; i <= made.length; i++)
    for (let j = 1; j <= whole.length; j++) {
      const other = made[i - 1].character === whole[j - 1] ? 0 : 1;
      cost[i][j] = Math.min(cost[i - 1][j - 1] + other, cost[i - 1][j] + 1, cost[i][j - 1] + 1);
    }
  const sources = [];
  for (let i = made.length, j = whole.length; j > 0; ) {
    const other = i > 0 && made[i - 1].character === whole[j - 1] ? 0 : 1;
    if (i > 0 && cost[i][j] === cost[i - 1][j - 1] + other) sources[--j] = made[--i];
    else if (i > 0 && cost[i][j] === cost[i - 1][j] + 1) i--;
    else sources[--j] = made[Math.max(0, i - 1)];
  }
  return sources;
}

/** At the end of a word it looks otherwise, which its characters one by one do not say. */
const sameSigma = (text) => text.replaceAll("ς", "σ");

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
  const whole = [];
  let next = length; // where the next character begins that another was made of
  for (let i = sources.length - 1; i >= 0; i--) {
    const [start, end] = sources[i];
    if (i + 1 < sources.length && sources[i + 1][0] !== start) next = sources[i + 1][0];
    whole[i] = [start, Math.max(end, next)];
  }
  return whole;
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
