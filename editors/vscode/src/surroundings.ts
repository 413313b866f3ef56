/** What this extension reads of VS Code and of the machine: settings, folders, the Python extension, interpreters. */

import { execFile } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import { promisify } from "node:util";
import * as vscode from "vscode";

import { contentsOf, PROBE, type Contents, type Settings, type Surroundings } from "./environment.js";

/** The part of the Python extension's interface that is used here. */
interface PythonApi {
  /** An older Python extension has none. */
  readonly environments?: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(
      environment: { readonly path: string },
    ): Promise<{ readonly executable: { readonly uri: vscode.Uri | undefined } } | undefined>;
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

const SLOWEST = 20_000; // milliseconds for a Python to start: a cold disk, a machine at work

export function settings(): Settings {
  const given = vscode.workspace.getConfiguration("devlint");
  return { interpreter: given.get("interpreter", ""), command: given.get("command", []) };
}

export async function surroundings(): Promise<Surroundings> {
  return {
    folders: folders(),
    chosen: await chosenPython(),
    variables: process.env,
    platform: process.platform,
    home: os.homedir(),
    exists: (file) => fs.existsSync(file),
  };
}

export function folders(): string[] {
  return (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
}

/** Calls back when another interpreter is chosen in the Python extension. */
export async function onChosenPython(changed: () => void): Promise<vscode.Disposable | undefined> {
  return (await pythonApi())?.environments?.onDidChangeActiveEnvironmentPath(changed);
}

/** The interpreter that is chosen in the Python extension, or nothing: it may be off, too old, or at a loss itself. */
export async function chosenPython(): Promise<string> {
  const environments = (await pythonApi())?.environments;
  try {
    const active = environments?.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
    const found = active !== undefined ? await environments?.resolveEnvironment(active) : undefined;
    return found?.executable.uri?.fsPath ?? "";
  } catch {
    return "";
  }
}

async function pythonApi(): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi | undefined>("ms-python.python");
  try {
    return await extension?.activate();
  } catch {
    return undefined; // it says so itself
  }
}

/** Asks a Python what is in it. */
export async function probe(python: string): Promise<Contents> {
  const [folder] = folders();
  const options = { timeout: SLOWEST, ...(folder !== undefined ? { cwd: folder } : {}) };
  const printed = await promisify(execFile)(python, ["-c", PROBE], options).catch(reason);
  if (typeof printed === "string") {
    throw new Error(printed);
  }
  return contentsOf(printed.stdout);
}

/** Why a program could not be run, in few words: Node's own text repeats the whole command. */
function reason(error: Error & { code: string | number; stderr?: string; killed?: boolean }): string {
  if (error.killed === true) {
    return `it gave no answer within ${SLOWEST / 1000} seconds`;
  }
  const said = error.stderr?.trim().split("\n").at(-1) ?? "";
  return said !== "" ? said : typeof error.code === "string" ? error.code : `it ended with exit code ${error.code}`;
}
