/** Starts `devlint server` for Python files and notebooks, and says what to do when it cannot be started. */

import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  type ErrorHandler,
  type LanguageClientOptions,
} from "vscode-languageclient/node";

import { candidates, find, type Found, type Missing } from "./environment.js";
import { Restarts } from "./restarts.js";
import { folders, onChosenPython, probe, settings, surroundings } from "./surroundings.js";

const RESTART = "Restart";
const OUTPUT = "Show the output";
const COPY = "Copy the command";
const SETTINGS = "Open the settings";

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const output = vscode.window.createOutputChannel("devlint", { log: true });
  const service = new Service(output);
  context.subscriptions.push(
    output,
    service,
    vscode.commands.registerCommand("devlint.restart", () => service.restart()),
    vscode.commands.registerCommand("devlint.showOutput", () => {
      output.show();
    }),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("devlint.interpreter") || event.affectsConfiguration("devlint.command")) {
        void service.restart();
      }
    }),
  );
  const changes = await onChosenPython(() => void service.restart());
  if (changes !== undefined) {
    context.subscriptions.push(changes);
  }
  await service.restart();
}

/** The server of this window: one at a time, whatever asks for it meanwhile. */
class Service implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private readonly restarts = new Restarts();
  private last: Promise<void> = Promise.resolve();

  constructor(private readonly output: vscode.LogOutputChannel) {}

  /** Stop the server, if one runs, and start it as the settings now say. */
  restart(): Promise<void> {
    this.last = this.last
      .then(() => this.startAnew())
      .catch((error: unknown) => {
        this.output.error(`The server was not started: ${String(error)}`); // what follows may start it all the same
      });
    return this.last;
  }

  dispose(): Thenable<void> {
    return this.stop();
  }

  private async startAnew(): Promise<void> {
    await this.stop();
    this.restarts.forget();
    const found = await find(candidates(settings(), await surroundings()), probe);
    if (found.kind === "missing") {
      this.output.error(found.message);
      void this.tell(found);
      return;
    }
    this.output.info(`Starting devlint ${found.version}: ${found.argv[0]}`);
    this.client = this.newClient(found);
    try {
      await this.client.start();
    } catch (error) {
      this.output.error(`The server did not start: ${String(error)}`);
      void this.offer("The devlint server did not start.");
    }
  }

  private async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    try {
      await client?.dispose();
    } catch (error) {
      this.output.info(`The old server did not stop by itself: ${String(error)}`);
    }
  }

  private newClient(found: Found): LanguageClient {
    const [command, ...args] = found.argv;
    const [cwd] = folders();
    const options: LanguageClientOptions = {
      documentSelector: [
        { scheme: "file", language: "python" },
        { scheme: "untitled", language: "python" },
        { scheme: "vscode-notebook-cell", language: "python" },
      ],
      outputChannel: this.output,
      initializationOptions: () => ({
        inlayHints: vscode.workspace.getConfiguration("devlint").get("inlayHints", false),
        findingsInHover: false, // VS Code adds them to each hover
      }),
      errorHandler: this.errorHandler(),
    };
    const program = { command, args, ...(cwd !== undefined ? { options: { cwd } } : {}) };
    return new LanguageClient("devlint", "devlint", program, options);
  }

  /** Starts a server again that ended by itself, a few times. */
  private errorHandler(): ErrorHandler {
    return {
      error: () => ({ action: ErrorAction.Continue }),
      closed: () => {
        if (this.restarts.allow()) {
          this.output.warn("The server ended by itself and is started again.");
          return { action: CloseAction.Restart, handled: true };
        }
        this.output.error(this.restarts.message);
        void this.offer(this.restarts.message);
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    };
  }

  /** Says that devlint is missing, and helps to install it. */
  private async tell(missing: Missing): Promise<void> {
    const choices = [...(missing.install === "" ? [] : [COPY]), RESTART, SETTINGS];
    const choice = await vscode.window.showErrorMessage(missing.message, ...choices);
    if (choice === COPY) {
      await vscode.env.clipboard.writeText(missing.install);
    }
    await this.act(choice);
  }

  private async offer(message: string): Promise<void> {
    await this.act(await vscode.window.showErrorMessage(message, RESTART, OUTPUT));
  }

  private async act(choice: string | undefined): Promise<void> {
    if (choice === RESTART) {
      await this.restart();
    } else if (choice === OUTPUT) {
      this.output.show();
    } else if (choice === SETTINGS) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "devlint");
    }
  }
}
