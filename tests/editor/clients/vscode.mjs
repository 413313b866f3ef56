// VS Code itself, served by code-server and shown by Chromium, as a client of `devlint server`, by the packaged extension:
//
//     node vscode.mjs MODULES CHROMIUM ADDRESS FOLDER PYTHON PICTURE
//
// MODULES: a folder with `puppeteer-core`. ADDRESS: of a new code-server with the extension and `python-stand-in` installed,
// and workspace trust off.
// FOLDER: has `train.py`; its settings are written here. PYTHON: one that has devlint. It writes a picture of the editor and
// prints a log of what each step gave. It runs by hand: no test starts it.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, chromium, address, folder, python, picture] = process.argv.slice(2);
const puppeteer = createRequire(join(modules, "x.js"))("puppeteer-core");
const steps = {};
const SLOWEST = 120_000;
const CODE = ".view-lines";

function settings(interpreter) {
  mkdirSync(join(folder, ".vscode"), { recursive: true });
  const given = {
    "devlint.interpreter": interpreter,
    "devlint.inlayHints": true,
    "editor.fontSize": 15,
    "editor.codeActionsOnSave": { "source.fixAll.devlint": "explicit" },
  };
  writeFileSync(join(folder, ".vscode", "settings.json"), JSON.stringify(given, null, 2));
}

/** What the stand-in for the Python extension says. */
function choose(interpreter) {
  writeFileSync(join(folder, ".chosen"), interpreter);
}

/** The servers that run in the folder. */
function servers() {
  const rows = execFileSync("ps", ["-eo", "pid=,args="], { encoding: "utf8" }).split("\n");
  const found = rows.filter((row) => row.includes("devlint.cli import main")).map((row) => Number.parseInt(row, 10));
  return found.filter((pid) => readlinkSync(`/proc/${pid}/cwd`) === folder);
}

async function until(what, condition) {
  const end = Date.now() + SLOWEST;
  while (Date.now() < end) {
    const found = await condition();
    if (found) {
      return found;
    }
    await new Promise((done) => setTimeout(done, 250));
  }
  throw new Error(`it did not come: ${what}`);
}

settings("");
choose(python);
const browser = await puppeteer.launch({ executablePath: chromium, headless: true, args: ["--no-sandbox"] });
const page = await browser.newPage();
page.setDefaultTimeout(SLOWEST);
await page.setViewport({ width: 1100, height: 560, deviceScaleFactor: 1 });

const texts = (selector) => page.$$eval(selector, (all) => all.map((each) => each.textContent.replaceAll("\u00a0", " ")));
const squiggles = () => page.$$eval(".squiggly-error, .squiggly-warning", (all) => all.length);

async function command(text) {
  await page.keyboard.press("F1");
  await page.waitForSelector(".quick-input-widget input");
  await page.keyboard.type(text);
  await until(text, async () => (await texts(".quick-input-list .monaco-list-row")).some((row) => row.includes(text)));
  await page.keyboard.press("Enter");
}

async function pressed(key, ...held) {
  for (const each of held) await page.keyboard.down(each);
  await page.keyboard.press(key);
  for (const each of held) await page.keyboard.up(each);
}

/** Puts the cursor at a place such as `4:9`. */
async function goTo(place) {
  await pressed("g", "Control");
  await page.waitForSelector(".quick-input-widget input");
  await page.keyboard.type(place);
  await page.keyboard.press("Enter");
}

/** The quick fixes at a place; the one that has the text is applied. */
async function quickFix(place, wanted) {
  const rows = ".action-widget .monaco-list-row";
  const titles = await until(`quick fixes at ${place}`, async () => {
    await page.keyboard.press("Escape");
    await goTo(place);
    await pressed(".", "Control");
    await new Promise((done) => setTimeout(done, 3000));
    const found = (await texts(rows)).map((row) => row.trim());
    return found.some((row) => row.includes(wanted)) && found;
  });
  const chosen = (await page.$$(rows))[titles.findIndex((row) => row.includes(wanted))];
  const before = await program();
  await chosen.click();
  await until(`the text after ${wanted}`, async () => (await program()).join() !== before.join());
  return { offered: titles, after: await program() };
}

/** The lines that the editor shows, without inlay hints. */
function program() {
  return page.$$eval(`.editor-instance ${CODE} .view-line`, (lines) =>
    lines
      .map((line) => [Number.parseFloat(line.style.top), line])
      .sort(([one], [other]) => one - other)
      .map(([, line]) => {
        const copy = line.cloneNode(true);
        copy.querySelectorAll('[class*="dyn-rule"], [class*="ced-"]').forEach((hint) => hint.remove());
        return copy.textContent.replaceAll("\u00a0", " ").replaceAll("\u200d", "");
      }),
  );
}

async function notification(text) {
  return until(text, async () => (await texts(".notification-list-item")).find((each) => each.includes(text)));
}

try {
  await page.goto(`${address}/?folder=${folder}`, { timeout: SLOWEST, waitUntil: "domcontentloaded" });
  const file = await page.waitForSelector('.explorer-folders-view [aria-label^="train.py"]');
  await until("the file", async () => {
    await file.click({ count: 2 });
    return page.$(CODE);
  });
  await until("findings", squiggles);
  steps.open = { findings: await squiggles() };
  steps.hints = await until("hints", async () => (await texts(`${CODE} .view-line`)).filter((row) => /: c(pu|uda)/.test(row))[0]);

  const word = await until("the word", async () =>
    (await page.evaluateHandle(
      (lines) =>
        [...document.querySelectorAll(`${lines} .view-line span span`)].find((each) => each.textContent.includes("ones")) ?? null,
      CODE,
    )).asElement());
  const box = await word.boundingBox();
  await page.mouse.move(box.x + box.width - 25, box.y + box.height / 2);
  await page.mouse.move(box.x + box.width - 22, box.y + box.height / 2);
  await until("the hover", async () => (await texts(".monaco-hover-content")).some((each) => each.includes("created on")));
  steps.hover = (await texts(".monaco-hover-content")).find((each) => each.includes("created on"));
  steps.links = await page.$$eval(".monaco-hover-content a[data-href]", (all) => all.map((each) => each.dataset.href));
  await page.screenshot({ path: picture });
  await page.keyboard.press("Escape");
  await page.mouse.move(5, 5);

  const [first] = servers();
  process.kill(first, "SIGKILL");
  const [second] = await until("a new server", () => servers().some((pid) => pid !== first) && servers());
  steps.crash = { "another server runs": second !== first };
  await page.click(`${CODE} .view-line`);
  await page.keyboard.down("Control");
  await page.keyboard.press("End");
  await page.keyboard.up("Control");
  await page.keyboard.type("w = model(torch.zeros(1, 2))");
  const before = steps.open.findings;
  await until("more findings", async () => (await squiggles()) > before);
  steps.after_the_crash = { findings: await squiggles() };

  await command("devlint: Restart the server");
  const [third] = await until("a server", () => servers().some((pid) => pid !== second) && servers().length === 1 && servers());
  steps.restart = { "another server runs": third !== second };

  steps.quick_fix = await quickFix("4:9", "Create the tensor");
  steps.ignore = await quickFix("6:11", "ignore on this line");
  await pressed("s", "Control");
  const saved = await until("the fixes on save", () => {
    const text = readFileSync(join(folder, "train.py"), "utf8");
    return text.includes("to(device)") && text;
  });
  steps.fixed_on_save = saved.trimEnd().split("\n");

  choose("/usr/bin/python3");
  steps.another_python_is_chosen = await notification("is not installed in");
  choose(python);
  const [fourth] = await until("a server", () => servers().length === 1 && servers());
  steps.chosen_again = { "another server runs": fourth !== third };

  settings("/usr/bin/false");
  steps.not_a_python = await notification("cannot run");
  settings("/usr/bin/python3");
  steps.without_devlint = await notification("is not installed in");
} catch (error) {
  steps.problem = String(error);
}
const [served] = /"codeServerVersion":"[^"]+"/.exec((await page.content()).replaceAll("&quot;", '"')) ?? ["unknown"];
process.stdout.write(`# Log of one run of VS Code

${new Date().toISOString().slice(0, 10)}, code-server ${served.split('"').at(-2)}, ${await browser.version()}, ${process.platform}.
Printed by \`vscode.mjs\`, which says how it is run.

\`\`\`json
${JSON.stringify(steps, null, 2).replaceAll(folder, "/project").replaceAll(python, "python")}
\`\`\`
`);
await browser.close();
