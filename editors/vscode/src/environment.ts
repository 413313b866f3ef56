/**
 * Which program serves the editor: the command or interpreter of the settings, else the first Python around the workspace
 * that has devlint with its language server. Nothing here knows of VS Code.
 */

import { posix, win32, type PlatformPath } from "node:path";

/** What the user set. Empty values are not set. */
export interface Settings {
  readonly interpreter: string;
  readonly command: readonly string[];
}

/** What is around the workspace. Empty values are not there. */
export interface Surroundings {
  /** The folders of the workspace, first the one that counts. */
  readonly folders: readonly string[];
  /** The interpreter that is chosen in the Python extension. */
  readonly chosen: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  readonly home: string;
  exists(file: string): boolean;
}

/** A Python that may have devlint, or a command that starts the server as it is. */
export interface Candidate {
  readonly kind: "python" | "command";
  readonly argv: readonly [string, ...string[]];
}

/** What is in a Python: versions, and null for what is not there. */
export interface Contents {
  readonly devlint: string | null;
  readonly hasServer: boolean;
}

export interface Found {
  readonly kind: "found";
  readonly argv: readonly [string, ...string[]];
  readonly version: string;
}

export interface Missing {
  readonly kind: "missing";
  readonly message: string;
  /** The command that mends it, when one does. */
  readonly install: string;
}

/** Asks a Python what is in it. Rejects when the Python cannot be run. */
export type Probe = (python: string) => Promise<Contents>;

// The folder in which Python starts is the workspace: no module of it may take the place of Python's own or of devlint.
const SAFE = "import sys; sys.path[:] = [each for each in sys.path if each]";
const SERVE = `${SAFE}; from devlint.cli import main; sys.exit(main())`;

/** Prints what `contentsOf` reads. */
export const PROBE = [
  SAFE,
  "import importlib.util, json",
  "there = importlib.util.find_spec('devlint') is not None",
  "version = __import__('devlint').__version__ if there else None",
  "server = importlib.util.find_spec('pygls') is not None",
  "print(json.dumps({'devlint': version, 'server': server}))",
].join("; ");

/** What a Python printed for `PROBE`. Throws for any other text. */
export function contentsOf(printed: string): Contents {
  const given: unknown = JSON.parse(printed.trim().split("\n").at(-1) ?? "");
  if (typeof given !== "object" || given === null || !("devlint" in given) || !("server" in given)) {
    throw new Error(`unexpected answer: ${printed}`);
  }
  return { devlint: typeof given.devlint === "string" ? given.devlint : null, hasServer: given.server === true };
}

/** What may have devlint, the likeliest first. What the user set stands alone: nothing else is tried in its place. */
export function candidates(settings: Settings, around: Surroundings): Candidate[] {
  const [command, ...rest] = settings.command.map((word) => expanded(word, around));
  if (command !== undefined && command !== "") {
    return [{ kind: "command", argv: [command, ...rest] }];
  }
  if (settings.interpreter !== "") {
    return [python(expanded(settings.interpreter, around))];
  }
  const environments = [
    ...around.folders.flatMap((folder) => [".venv", "venv"].map((name) => pathOf(around).join(folder, name))),
    ...["VIRTUAL_ENV", "CONDA_PREFIX"].flatMap((name) => around.variables[name] ?? []),
  ];
  const found = [around.chosen, ...environments.map((each) => pythonOf(each, around)), ...onSearchPath(around)];
  return [...new Set(found.filter((each) => each !== ""))].map(python);
}

/** The rules of paths on the platform of the workspace. */
function pathOf(around: Surroundings): PlatformPath {
  return around.platform === "win32" ? win32 : posix;
}

function python(file: string): Candidate {
  return { kind: "python", argv: [file] };
}

/** The interpreter of an environment, or nothing. */
function pythonOf(environment: string, around: Surroundings): string {
  const windows = around.platform === "win32";
  const places = windows ? [["Scripts", "python.exe"], ["python.exe"]] : [["bin", "python"], ["bin", "python3"]];
  return places.map((parts) => pathOf(around).join(environment, ...parts)).find((file) => around.exists(file)) ?? "";
}

/**
 * The Pythons on the search path: first those that belong to a `devlint` command. On Windows a command of an environment
 * lies beside its Python, and a command of a plain Python one folder below it.
 */
function onSearchPath(around: Surroundings): string[] {
  const windows = around.platform === "win32";
  const path = pathOf(around);
  const folders = (around.variables.PATH ?? around.variables.Path ?? "").split(path.delimiter);
  const names = windows ? ["python.exe"] : ["python3", "python"];
  const here = folders.map((folder) => folder.replace(/^"(.*)"$/, "$1")).filter((folder) => path.isAbsolute(folder));
  const commands = here.filter((folder) => around.exists(path.join(folder, windows ? "devlint.exe" : "devlint")));
  const beside = commands.flatMap((folder) => (windows ? [folder, path.join(folder, "..")] : [folder]));
  const files = [...beside, ...here].flatMap((folder) => names.map((name) => path.join(folder, name)));
  return files.filter((file) => around.exists(file));
}

/** A setting with its variables replaced. */
export function expanded(text: string, around: Surroundings): string {
  const path = pathOf(around);
  const known = text
    .replace(/^~(?=[/\\]|$)/, () => around.home)
    .replaceAll("${workspaceFolder}", () => around.folders[0] ?? "")
    .replace(/\$\{env:(\w+)\}/g, (_, name: string) => around.variables[name] ?? "");
  const isRelative = /[/\\]/.test(known) && !path.isAbsolute(known) && around.folders[0] !== undefined;
  return isRelative && known.startsWith(".") ? path.join(around.folders[0] ?? "", known) : known;
}

/** The first candidate that can serve, or what is to be done so that one can. */
export async function find(tried: readonly Candidate[], probe: Probe): Promise<Found | Missing> {
  let best: Missing | undefined;
  for (const { kind, argv } of tried) {
    if (kind === "command") {
      return { kind: "found", argv, version: "" };
    }
    const [file] = argv;
    const contents = await probe(file).catch((error: unknown) => (error instanceof Error ? error.message : String(error)));
    if (typeof contents === "string") {
      best ??= { kind: "missing", message: `devlint cannot run ${file}: ${contents}`, install: "" };
    } else if (contents.devlint === null) {
      best = outranks(best) ? best : missing(`devlint is not installed in ${file}.`, file);
    } else if (!contents.hasServer) {
      return missing(`devlint ${contents.devlint} in ${file} has no language server.`, file);
    } else {
      return { kind: "found", argv: [file, "-c", SERVE, "server"], version: contents.devlint };
    }
  }
  const nothing = "devlint found no Python. Set `devlint.interpreter` to the one that has devlint.";
  return best ?? { kind: "missing", message: nothing, install: "" };
}

/** Whether a Python that was tried before is one to install devlint in. */
function outranks(before: Missing | undefined): before is Missing {
  return before !== undefined && before.install !== "";
}

function missing(what: string, file: string): Missing {
  const quoted = /[\s"']/.test(file) ? `"${file}"` : file;
  const install = `${quoted} -m pip install "devlint[lsp]"`;
  return { kind: "missing", message: `${what} Install it with: ${install}`, install };
}
