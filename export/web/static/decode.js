// From a model's outputs to answers: the same rules as in albert_tf.inference.

import { WORD_START } from "/static/packing.js";
import { isSpace } from "/static/spaces.js";

/** An output of one row as numbers, checked to be some. */
export const numbers = (outputs, name) => finite(Array.from(outputs[name]), name);

function finite(values, name) {
  if (!values.every(Number.isFinite)) throw new Error(`the model's ${name} are no finite numbers: its weights are damaged`);
  return values;
}

export function label(values, labels) {
  return { label: labels[values.indexOf(Math.max(...values))], scores: labels.map((name, i) => [name, values[i]]) };
}

export function labelSet(values, labels, threshold) {
  return {
    labels: labels.filter((_, i) => values[i] > threshold),
    scores: labels.map((name, i) => [name, values[i]]),
  };
}

export function cosine(first, second) {
  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const lengths = Math.sqrt(dot(first, first)) * Math.sqrt(dot(second, second));
  return lengths ? dot(first, second) / lengths : 0;
}

export function codePoints(text) {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

export function softmax(scores) {
  const most = Math.max(...scores);
  const parts = scores.map((score) => Math.exp(score - most));
  const sum = parts.reduce((a, b) => a + b, 0);
  return parts.map((part) => part / sum);
}

export function choice(scores, options) {
  const probabilities = softmax(scores);
  const best = probabilities.indexOf(Math.max(...probabilities));
  return { option: best, label: options[best], scores: options.map((option, i) => [option, probabilities[i]]) };
}

// === entities ===

/** The most probable labels of all words in which "I-X" stands after "B-X" or "I-X" only. */
export function bestPath(table, labels) {
  const kinds = labels.map((name) => name.slice(2)), inside = labels.map((name) => name.startsWith("I-"));
  const logs = table.map((row) => row.map((value) => Math.log(Math.max(value, 1e-30))));
  if (!logs.length) return [];
  let score = logs[0].map((value, i) => value + (inside[i] ? -1e9 : 0));
  const back = logs.slice(1).map((values) => {
    const from = labels.map((_, now) => {
      const ways = score.map((value, before) => value + (!inside[now] || kinds[before] === kinds[now] ? 0 : -1e9));
      return ways.indexOf(Math.max(...ways));
    });
    const previous = score;
    score = from.map((before, now) => {
      const allowed = !inside[now] || kinds[before] === kinds[now];
      return previous[before] + (allowed ? 0 : -1e9) + values[now];
    });
    return from;
  });
  const path = [score.indexOf(Math.max(...score))];
  for (const from of back.reverse()) path.push(from[path.at(-1)]);
  return path.reverse();
}

/** The entities that the labels of the words at `places` make. */
export function entitiesOf(text, places, table, labels) {
  const path = bestPath(table, labels), characters = Array.from(text), found = [];
  path.forEach((chosen, word) => {
    const name = labels[chosen], kind = name.slice(2), score = table[word][chosen], last = found.at(-1);
    if (name.startsWith("B-")) found.push({ type: kind, first: word, end: word + 1, score });
    else if (name.startsWith("I-") && last) Object.assign(last, { end: word + 1, score: Math.min(last.score, score) });
  });
  return found.map(({ type, first, end, score }) => {
    const start = places[first][0], stop = places[end - 1][1];
    return { type, text: characters.slice(start, stop).join(""), start, end: stop, score };
  });
}

// === answers to questions ===

/** The answer to a question, of the outputs of its rows. */
export function answerOf(context, passage, windows, rows, settings) {
  const characters = Array.from(context), found = [];
  rows.forEach((outputs, number) => {
    const [start, end] = windows.bounds[number], shift = start - windows.before;
    const room = { starts: windows.best[number], before: windows.before, end: windows.before + end - start };
    for (const span of spansOf(outputs, room, settings)) {
      const place = placeOf(characters, passage.spans, span.first + shift, span.last + shift);
      if (place[0] < place[1]) found.push({ start: place[0], end: place[1], score: span.score });
    }
  });
  found.sort((a, b) => b.score - a.score);
  const spans = best(characters, found, settings.n_best);
  let against = Math.min(...rows.map((outputs) => noAnswer(outputs, settings)));
  if (settings.head === "span" && found.length) against -= found[0].score;
  const threshold = settings.no_answer_threshold;
  const none = !spans.length || (threshold !== null && against > threshold);
  const { text, start, end } = none ? { text: "", start: null, end: null } : spans[0];
  return { answer: text, start, end, score: spans.length ? spans[0].share : 0, no_answer_score: against };
}

/** Where the highest scores are; of equal ones the first comes first. */
function bestIndices(scores, count) {
  const best = [];
  for (let i = 0; i < scores.length; i++) {
    if (best.length === count && !(scores[i] > scores[best.at(-1)])) continue;
    let place = best.length;
    while (place > 0 && scores[i] > scores[best[place - 1]]) place--;
    best.splice(place, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
}

function spansOf(outputs, room, settings) {
  const found = [];
  const add = (first, last, score) => {
    const fits = room.starts[first - room.before] && last >= first && last < room.end;
    if (fits && last - first < settings.max_answer_length) found.push({ first, last, score });
  };
  if (settings.head === "span") {
    const starts = numbers(outputs, "start_logits"), ends = numbers(outputs, "end_logits");
    const bestEnds = bestIndices(ends, settings.n_best);
    for (const first of bestIndices(starts, settings.n_best))
      for (const last of bestEnds) add(first, last, starts[first] + ends[last]);
    return found;
  }
  const starts = numbers(outputs, "start_log_probs"), ends = numbers(outputs, "end_log_probs");
  bestIndices(starts, settings.start_beams).forEach((first, k) => {
    const own = starts.map((_, last) => ends[last * settings.start_beams + k]);
    for (const last of bestIndices(own, settings.end_beams)) add(first, last, starts[first] + own[last]);
  });
  return found;
}

function noAnswer(outputs, settings) {
  if (settings.head === "squad2") return numbers(outputs, "no_answer_logit")[0];
  return outputs.start_logits[0] + outputs.end_logits[0];
}

/** The characters from the first to the last of these tokens, without spaces around them. */
function placeOf(characters, spans, first, last) {
  let start = spans[first][0], end = spans[last][1];
  while (start < end && isSpace(characters[start])) start++;
  while (end > start && isSpace(characters[end - 1])) end--;
  return [start, end];
}

function best(characters, found, count) {
  const kept = new Map();
  for (const place of found) {
    const text = characters.slice(place.start, place.end).join("");
    if (!kept.has(text)) kept.set(text, { text, ...place });
    if (kept.size === count) break;
  }
  const spans = [...kept.values()], shares = spans.length ? softmax(spans.map((span) => span.score)) : [];
  return spans.map((span, i) => ({ ...span, share: shares[i] }));
}

// === masks ===

/** The most probable pieces for each mask of a row, of the probabilities of all pieces for each of its tokens. */
export function bestPieces(outputs, row, pieces, count) {
  const name = "token_probabilities", size = pieces.length;
  return row.masks.map((position) => {
    const own = finite(outputs[name].subarray(position * size, (position + 1) * size), name);
    return bestIndices(own, count).map((id) => ({ id, piece: pieces[id], probability: own[id] }));
  });
}

/** The text with the most probable piece in the place of each mask; places count code points. */
export function filledText(parts, candidates, special) {
  const written = candidates.map(([{ id, piece }], number) => {
    const before = parts[number].at(-1) ?? (number ? "]" : ""); // the end of another mask
    if (special.includes(id)) return { space: "", text: piece, joined: false };
    if (!piece.startsWith(WORD_START)) return { space: "", text: piece, joined: true };
    return { space: before && !isSpace(before) ? " " : "", text: piece.slice(1), joined: false };
  });
  let filled = "", length = 0;
  const add = (text) => {
    filled += text;
    length += codePoints(text);
  };
  const masks = written.map(({ space, text, joined }, number) => {
    add((joined ? withoutSpaces(parts[number]) : parts[number]) + space);
    const start = length;
    add(text);
    return { start, end: length, scores: candidates[number].map(({ piece, probability }) => [piece, probability]) };
  });
  add(parts.at(-1));
  return { filled, masks };
}

function withoutSpaces(text) {
  let end = text.length;
  while (end > 0 && isSpace(text[end - 1])) end--;
  return text.slice(0, end);
}
