// From ids to rows for the model: special tokens, truncation, parts of long texts. The same rules as in albert_tf.tokenization.

import { isSpace, NO_SPACE } from "/static/spaces.js";

export const WORD_START = "▁";
const SPECIAL_OF_QUESTION = 3;

/** [CLS] A [SEP], or [CLS] A [SEP] B [SEP]; pieces go with the ids. */
export function pack(first, second, model) {
  const length = model.max_length;
  if (second === null) return rowOf(first.ids.slice(0, length - 2), first.pieces, null, null, model);
  const room = length - 3, a = first.ids.length, b = second.ids.length;
  const keptA = Math.min(a, Math.max(room - b, Math.floor((room + 1) / 2)));
  const keptB = Math.min(b, Math.max(room - a, Math.floor(room / 2)));
  return rowOf(first.ids.slice(0, keptA), first.pieces, second.ids.slice(0, keptB), second.pieces, model);
}

function rowOf(idsA, piecesA, idsB, piecesB, model) {
  const { cls, sep } = model.ids;
  const ids = [cls, ...idsA, sep], segments = new Array(ids.length).fill(0);
  const pieces = ["[CLS]", ...piecesA.slice(0, idsA.length), "[SEP]"];
  if (idsB !== null) {
    ids.push(...idsB, sep);
    pieces.push(...piecesB.slice(0, idsB.length), "[SEP]");
    while (segments.length < ids.length) segments.push(1);
  }
  return { ids, segments, pieces };
}

/** The rows of a question and a passage, which is cut into parts that overlap. */
export function questionRows(question, passage, model) {
  const { doc_stride: stride, max_question_length: most } = model.settings;
  const kept = Math.min(question.ids.length, most);
  const room = model.max_length - kept - SPECIAL_OF_QUESTION;
  if (room < 1) throw new Error(`the model takes ${model.max_length} tokens: no room beside a question of ${kept}`);
  const bounds = windowBounds(passage.ids.length, room, stride);
  const rows = bounds.map(([start, end]) =>
    rowOf(question.ids.slice(0, kept), question.pieces, passage.ids.slice(start, end), passage.pieces.slice(start, end), model),
  );
  return { rows, bounds, best: maxContext(bounds), before: kept + 2 };
}

function windowBounds(count, room, stride) {
  const bounds = [[0, Math.min(room, count)]];
  while (bounds.at(-1)[1] < count) {
    const start = bounds.at(-1)[0] + Math.min(room, stride);
    bounds.push([start, Math.min(start + room, count)]);
  }
  return bounds;
}

/** For each token of each part, whether it has more text on its shorter side there than in any other part. */
function maxContext(bounds) {
  const best = new Map();
  bounds.forEach(([start, end], number) => {
    for (let token = start; token < end; token++) {
      const score = Math.min(token - start, end - 1 - token) + 0.01 * (end - start);
      if (!best.has(token) || score > best.get(token).score) best.set(token, { score, number });
    }
  });
  return bounds.map(([start, end], number) =>
    Array.from({ length: end - start }, (_, i) => best.get(start + i).number === number),
  );
}

/** Rows of whole words, which are cut up already, to tag, with the position of each word's first token. */
export function taggingRows(words, model) {
  const room = model.max_length - 2, rows = [];
  let ids = [], pieces = [], starts = new Map();
  const close = () => rows.push({ ...rowOf(ids, pieces, null, null, model), starts });
  words.forEach((word, index) => {
    const own = word.ids.length ? word : { ids: [model.ids.unk], pieces: ["<unk>"] };
    const kept = own.ids.slice(0, room);
    if (ids.length + kept.length > room) {
      close();
      [ids, pieces, starts] = [[], [], new Map()];
    }
    starts.set(index, 1 + ids.length);
    ids.push(...kept);
    pieces.push(...own.pieces.slice(0, room));
  });
  close();
  return rows;
}

/**
 * The rows of a text with masks: as many as it takes to show each mask, with as much text on both sides as there is room for.
 *
 * @param parts: what is between the masks, as text; encoded: the same as ids and pieces.
 * @param idOf: the id of a piece, undefined where there is none.
 */
export function maskRows(parts, encoded, idOf, model) {
  const ids = [], pieces = [], places = [];
  encoded.forEach((own, number) => {
    if (number) {
      places.push(ids.length);
      ids.push(model.ids.mask);
      pieces.push(model.takes.sign);
    }
    const begin = parts[number][0];
    const goesOn = number && begin !== undefined && begin !== WORD_START && !isSpace(begin);
    const [ownIds, ownPieces] = goesOn ? withoutWordStart(own, idOf) : [own.ids, own.pieces];
    for (let i = 0; i < ownIds.length; i++) {
      ids.push(ownIds[i]);
      pieces.push(ownPieces[i]);
    }
  });
  const room = model.max_length - 2;
  return maskGroups(places, room).map((group) => {
    const first = group[0], width = group.at(-1) - first + 1;
    const start = Math.max(0, Math.min(first - Math.floor((room - width) / 2), ids.length - room));
    const row = rowOf(ids.slice(start, start + room), pieces.slice(start, start + room), null, null, model);
    return { ...row, masks: group.map((place) => 1 + place - start) };
  });
}

/** A text that goes on with a word: the mark in front of its first piece goes, if the piece is there without it. */
function withoutWordStart({ ids, pieces }, idOf) {
  if (!ids.length || !pieces[0].startsWith(WORD_START)) return [ids, pieces];
  if (pieces[0] === WORD_START) return [ids.slice(1), pieces.slice(1)];
  const rest = pieces[0].slice(1), id = idOf(rest);
  return id === undefined ? [ids, pieces] : [[id, ...ids.slice(1)], [rest, ...pieces.slice(1)]];
}

/** Places of masks, those together that one row can show. */
function maskGroups(places, room) {
  const groups = [];
  for (const place of places) {
    if (!groups.length || place - groups.at(-1)[0] >= room) groups.push([]);
    groups.at(-1).push(place);
  }
  return groups;
}

// Ideographs and kana one by one, other words whole, signs on their own.
const IDEOGRAPH = "\\u3040-\\u30ff\\u3400-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}";
const WORD = new RegExp(`[${IDEOGRAPH}]|(?:(?![${IDEOGRAPH}])[\\p{L}\\p{N}])+|(?![\\p{L}\\p{N}])${NO_SPACE}`, "gu");

/** Where the words of a text are, in code points. */
export function wordPlaces(text) {
  const places = [];
  let place = 0, before = 0;
  for (const found of text.matchAll(WORD)) {
    place += Array.from(text.slice(before, found.index)).length;
    const length = Array.from(found[0]).length;
    places.push([place, place + length]);
    place += length;
    before = found.index + found[0].length;
  }
  return places;
}
