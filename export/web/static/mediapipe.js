// Runs a file on MediaPipe Tasks for the web, which has tokenizers of its own.

import { label, labelSet } from "/static/decode.js";
import { post } from "/static/engines.js";
import { quietModule, similarity } from "/static/litert.js";
import { openedOnce } from "/static/opened.js";

const PACKAGE = "/runtime/@mediapipe/tasks-text";
let loading = null;

const opened = openedOnce(async (model) => {
  loading ??= import(`${PACKAGE}/text_bundle.mjs`).then(async (tasks) => {
    return { tasks, files: await tasks.FilesetResolver.forTextTasks(`${PACKAGE}/wasm`) };
  });
  const { tasks, files } = await loading;
  const response = await fetch(`/models/${model.id}.tflite`);
  if (!response.ok) throw new Error((await response.json()).error);
  const options = { baseOptions: { modelAssetBuffer: new Uint8Array(await response.arrayBuffer()) } };
  const kind = model.task === "similarity" ? tasks.TextEmbedder : tasks.TextClassifier;
  quietModule();
  return kind.createFromOptions(files, options);
});

/** The answer of a model to a request; see engines.js. */
export async function answerWithMediaPipe(model, asked, versions) {
  const { parts: runner, fresh } = await opened(model);
  const run = () => (model.task === "similarity" ? embedded(runner, asked) : classified(runner, asked, model));
  if (fresh) run(); // the first run makes room for the next ones: it is not timed
  const start = performance.now();
  const answer = run();
  const milliseconds = performance.now() - start;
  // MediaPipe does not tell its tokens: the server cuts the text up for them to be seen.
  const tokens = await post("/api/tokens", { file: model.id, ...asked });
  const runtime = `MediaPipe Tasks for the web ${versions["@mediapipe/tasks-text"]} in this browser`;
  return { answer, tokens, milliseconds, runtime };
}

function classified(runner, asked, model) {
  const scores = new Map(
    runner.classify(asked.text).classifications[0].categories.map((found) => [found.categoryName, found.score]),
  );
  const values = model.labels.map((name) => scores.get(name));
  if (values.some((value) => !Number.isFinite(value))) throw new Error("scores that are no finite numbers");
  return model.task === "classification" ? label(values, model.labels) : labelSet(values, model.labels, model.settings.threshold);
}

function embedded(runner, asked) {
  const texts = [asked.text, asked.pair].filter((text) => (text ?? "").trim());
  const vectors = texts.map((text) => Array.from(runner.embed(text).embeddings[0].floatEmbedding));
  if (!vectors.flat().every(Number.isFinite)) throw new Error("an embedding of no finite numbers");
  return similarity(vectors);
}
