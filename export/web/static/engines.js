// Runs a file where the page was told to: in the browser, on MediaPipe Tasks or LiteRT for the web, or on the server.

import { answerWithLiteRt } from "/static/litert.js";
import { answerWithMediaPipe } from "/static/mediapipe.js";

const SECOND_TEXT = "MediaPipe's TextClassifier takes one text, no pairs";

/**
 * The answer of a model to a request.
 * @returns {Promise<{answer, tokens, milliseconds, runtime, why}>} why: why it did not run in the browser; "" where it did
 *     or was not asked to.
 */
export async function ask(model, asked, where, versions) {
  if (where === "server") return { ...(await askServer(model, asked)), why: "" };
  const why = whyNotHere(model, asked, versions);
  if (why) return { ...(await askServer(model, asked)), why };
  try {
    return { ...(await askHere(model, asked, versions)), why: "" };
  } catch (error) {
    console.warn(error);
    return { ...(await askServer(model, asked)), why: `the browser's runtime failed: ${error.message ?? error}` };
  }
}

function askHere(model, asked, versions) {
  return model.runtime === "mediapipe"
    ? answerWithMediaPipe(model, asked, versions)
    : answerWithLiteRt(model, asked, versions);
}

function whyNotHere(model, asked, versions) {
  if (!Object.keys(versions).length) return "the browser's runtimes are not installed";
  if (model.runtime === null) return model.why_not_in_browser;
  const pair = model.task !== "similarity" && (asked.pair ?? "").trim();
  return model.runtime === "mediapipe" && pair ? SECOND_TEXT : "";
}

const askServer = (model, asked) => post("/api/answer", { file: model.id, ...asked });

/** A request to this server; its errors are lines for people. */
export async function post(path, content) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(content),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}
