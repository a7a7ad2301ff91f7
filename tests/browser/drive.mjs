// Drives headless Chromium on the page of albert-tf web: reads what to do as JSON from standard input, writes what came of it.
//
// {url, chromium, modules, width, height, dark, calls, steps} →
//   calls: [{file, asked, where}], put to the page's own engines → results: what they answer, or {error}
//   steps: [{task, files, values, click, where, screenshot, keyboard}], done in the page as a person would → shown
//   console: messages of the browser's console that are warnings or errors; requests: all addresses that were asked for
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const job = JSON.parse(readFileSync(0, "utf-8"));
const { chromium } = createRequire(`${job.modules}/`)("playwright-core");

const browser = await chromium.launch({ executablePath: job.chromium, args: ["--no-sandbox"] });
const page = await browser.newPage({
  viewport: { width: job.width ?? 1280, height: job.height ?? 900 },
  colorScheme: job.dark ? "dark" : "light",
});
const said = [], requests = [];
page.on("console", (message) => {
  if (["error", "warning"].includes(message.type())) said.push(`${message.type()}: ${message.text()}`);
});
page.on("pageerror", (error) => said.push(`error: ${error.message}`));
page.on("dialog", (dialog) => {
  said.push(`error: a dialog: ${dialog.message()}`);
  dialog.dismiss();
});
page.on("request", (request) => requests.push(request.url()));
await page.goto(job.url);
await page.waitForSelector("body[data-ready]");

const results = [];
for (const call of job.calls ?? [])
  results.push(
    await page.evaluate(async ({ file, asked, where }) => {
      const { ask } = await import("/static/engines.js");
      const state = await (await fetch("/api/state")).json();
      const model = state.models.find((one) => one.name === file);
      try {
        return await ask(model, asked, where ?? "browser", state.runtimes);
      } catch (error) {
        return { error: error.message };
      }
    }, call),
  );

const shown = [];
for (const step of job.steps ?? []) shown.push(await act(step));
await page.waitForTimeout(job.wait ?? 0);
await browser.close();
process.stdout.write(JSON.stringify({ results, shown, console: said, requests }));

async function act(step) {
  if (step.task) await page.selectOption("#task", step.task);
  if (step.files) {
    for (const box of await page.locator('[name="file"]').all()) {
      const name = await box.locator("xpath=following-sibling::span/span[1]").textContent();
      await box.setChecked(step.files.includes(name));
    }
  }
  if (step.where) await page.check(`[name="where"][value="${step.where}"]`);
  for (const [name, value] of Object.entries(step.values ?? {})) await page.fill(`#${name}`, value);
  if (step.click) await page.click(step.click);
  if (step.keyboard) {
    await page.focus(step.keyboard);
    await page.keyboard.press("Control+Enter");
  } else await page.click("#run");
  await page.waitForFunction(() => !document.querySelector('#run[aria-disabled="true"]'), null, { timeout: 120000 });
  if (step.screenshot) await page.screenshot({ path: step.screenshot, fullPage: true });
  return page.evaluate(() => ({
    status: document.getElementById("status").textContent,
    cards: [...document.querySelectorAll("#results article")].map((card) => ({
      name: card.querySelector("h3").textContent,
      text: card.innerText,
      marks: [...card.querySelectorAll("mark")].map((mark) => mark.firstChild.textContent),
      passage: card.querySelector(".passage")?.textContent ?? null,
    })),
    focus: document.activeElement?.id ?? "",
    scripts: [...document.scripts].filter((script) => !script.src.startsWith(`${location.origin}/`)).length,
    images: document.images.length,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    unlabelled: [...document.querySelectorAll("input, select, textarea, button")]
      .filter((field) => !(field.labels?.length || field.textContent.trim()))
      .map((field) => field.outerHTML),
  }));
}
