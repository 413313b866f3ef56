// A client of `devlint server` in Node, over JSON-RPC, made of the libraries that VS Code's own client is made of:
//
//     node client.mjs MODULES FOLDER COMMAND [ARGUMENT ...]
//
// MODULES: a folder with `vscode-languageserver-protocol`. FOLDER: has `train.py`. It prints what each step gave, as JSON.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, folder, ...command] = process.argv.slice(2);
const require = createRequire(join(modules, "x.js"));
const rpc = require("vscode-languageserver-protocol/node");
const { TextDocument } = require("vscode-languageserver-textdocument");

const uri = pathToFileURL(join(folder, "train.py")).href;
const steps = {};

/** One server and what it published. */
class Session {
  constructor() {
    this.process = spawn(command[0], command.slice(1), { cwd: folder, stdio: ["pipe", "pipe", "inherit"] });
    this.ended = new Promise((done) => this.process.on("exit", (code, signal) => done(signal ?? code)));
    this.published = new Map();
    this.waiting = [];
    this.options = null;
    const { stdin, stdout } = this.process;
    this.connection = rpc.createProtocolConnection(stdout, stdin);
    this.connection.onNotification(rpc.PublishDiagnosticsNotification.type, (found) => {
      this.published.set(found.uri, found);
      this.waiting = this.waiting.filter((check) => !check());
    });
    this.connection.onRequest(rpc.RegistrationRequest.type, () => undefined);
    this.connection.onRequest(rpc.InlayHintRefreshRequest.type, () => undefined);
    this.connection.onRequest(rpc.ConfigurationRequest.type, ({ items }) => items.map(() => this.options));
    this.connection.onClose(() => this.connection.dispose());
    this.connection.listen();
  }

  async start() {
    const workspace = {
      configuration: true,
      didChangeConfiguration: { dynamicRegistration: true },
      didChangeWatchedFiles: { dynamicRegistration: true },
      inlayHint: { refreshSupport: true },
    };
    const found = await this.connection.sendRequest(rpc.InitializeRequest.type, {
      processId: process.pid,
      rootUri: pathToFileURL(folder).href,
      capabilities: { workspace, general: { positionEncodings: ["utf-16"] } },
      workspaceFolders: null,
    });
    this.connection.sendNotification(rpc.InitializedNotification.type, {});
    return found;
  }

  open(text, of = uri) {
    this.document = TextDocument.create(of, "python", 1, text);
    const { version } = this.document;
    this.connection.sendNotification(rpc.DidOpenTextDocumentNotification.type, {
      textDocument: { uri: of, languageId: "python", version, text },
    });
    return this.findings();
  }

  /** Changes the text by edits, of which each is sent by itself. */
  edit(edits) {
    let { version } = this.document;
    const last = [...edits].sort((a, b) => this.document.offsetAt(b.range.start) - this.document.offsetAt(a.range.start));
    for (const { range, newText } of last) {
      version += 1;
      const contentChanges = [{ range, text: newText }];
      TextDocument.update(this.document, contentChanges, version);
      this.connection.sendNotification(rpc.DidChangeTextDocumentNotification.type, {
        textDocument: { uri: this.document.uri, version },
        contentChanges,
      });
    }
    return this.findings();
  }

  /** The findings of the text as it is now, each with the text that it marks. */
  async findings() {
    const { uri: of, version } = this.document;
    const isThere = () => this.published.get(of)?.version === version;
    if (!isThere()) {
      await new Promise((done) => this.waiting.push(() => isThere() && (done(), true)));
    }
    return this.published.get(of).diagnostics.map(({ code, range }) => `${code} ${this.document.getText(range)}`);
  }

  async hover(line, character) {
    const asked = { textDocument: { uri: this.document.uri }, position: { line, character } };
    const found = await this.connection.sendRequest(rpc.HoverRequest.type, asked);
    return found === null ? null : found.contents.value;
  }

  actions(line, only) {
    const range = { start: { line, character: 0 }, end: { line, character: 80 } };
    const { diagnostics } = this.published.get(this.document.uri);
    const context = { diagnostics, ...(only === undefined ? {} : { only: [only] }) };
    return this.connection.sendRequest(rpc.CodeActionRequest.type, {
      textDocument: { uri: this.document.uri },
      range,
      context,
    });
  }

  async hints() {
    const range = { start: { line: 0, character: 0 }, end: { line: 99, character: 0 } };
    const textDocument = { uri: this.document.uri };
    const found = await this.connection.sendRequest(rpc.InlayHintRequest.type, { textDocument, range });
    return found.map(({ position, label }) => `${this.document.getText(rowTo(position))}${label}`);
  }

  async stop() {
    await this.connection.sendRequest(rpc.ShutdownRequest.type);
    await this.connection.sendNotification(rpc.ExitNotification.type);
    return this.ended;
  }
}

function rowTo({ line, character }) {
  return { start: { line, character: 0 }, end: { line, character } };
}

function inserted(line, newText) {
  return [{ range: { start: { line, character: 0 }, end: { line, character: 0 } }, newText }];
}

const text = readFileSync(join(folder, "train.py"), "utf8");
let session = new Session();
const { serverInfo, capabilities } = await session.start();
steps.client = `Node ${process.versions.node}, ${capabilities.positionEncoding ?? "utf-16"}`;
steps.server = `${serverInfo.name} ${serverInfo.version}`;
steps.open = await session.open(text);

// A form feed ends no row in the protocol, nor in an editor.
await session.edit(inserted(0, "# \f part one\n"));
steps.edit = await session.edit(inserted(4, "v = model(torch.zeros(1, 2))\n"));
steps.hover = await session.hover(5, session.document.getText().split("\n")[5].indexOf("torch.ones"));
steps.hover_past_the_end = await session.hover(500, 0);

const fix = (await session.actions(4)).find((each) => each.isPreferred);
steps.fix = { title: fix.title, left: await session.edit(fix.edit.changes[uri]) };
steps.fixed = session.document.getText().split("\n")[4];
const row = session.document.getText().split("\n").findIndex((each) => each.includes("torch.ones"));
const ignore = (await session.actions(row)).find((each) => /^DEV102: ignore/.test(each.title));
steps.ignore = { title: ignore.title, left: await session.edit(ignore.edit.changes[uri]) };
const [everything] = await session.actions(0, "source.fixAll");
steps.fix_all = { title: everything.title, left: await session.edit(everything.edit.changes[uri]) };

steps.hints_before = await session.hints();
session.options = { inlayHints: true };
await session.connection.sendNotification(rpc.DidChangeConfigurationNotification.type, { settings: null });
await session.hover(0, 0); // an answer to what was sent later
steps.hints = await session.hints();
steps.unsaved = await session.open(text, "untitled:Untitled-1");

steps.stop = await session.stop();
session = new Session();
await session.start();
steps.restart = await session.open(text);

session.process.kill("SIGKILL");
steps.crash = await session.ended;
session = new Session();
await session.start();
steps.after_the_crash = await session.open(text);

session.process.stdin.end(); // as when the editor itself is killed
steps.editor_gone = await Promise.race([session.ended, new Promise((done) => setTimeout(done, 20_000, "it runs on"))]);
session.process.kill("SIGKILL");
process.stdout.write(JSON.stringify(steps, null, 2).replaceAll(pathToFileURL(folder).href, "file:///project"));
process.exit(0);
