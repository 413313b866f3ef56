import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";

import { chosenPython, onChosenPython, probe, settings, surroundings } from "../src/surroundings.js";
import { given } from "./vscode.js";

/** The Python extension, with an interpreter chosen for each folder. */
function pythonExtension(chosen: Record<string, string>, changes: (() => void)[] = []): void {
  const environments = {
    getActiveEnvironmentPath: (folder?: { fsPath: string }) => ({ path: folder?.fsPath ?? "" }),
    resolveEnvironment: ({ path }: { path: string }) => {
      const file = chosen[path];
      return Promise.resolve({ executable: { uri: file === undefined ? undefined : { fsPath: file } } });
    },
    onDidChangeActiveEnvironmentPath: (changed: () => void) => {
      changes.push(changed);
      return { dispose: () => undefined };
    },
  };
  given.extensions["ms-python.python"] = () => Promise.resolve({ environments });
}

beforeEach(() => {
  given.folders = ["/w"];
  given.settings = {};
  given.extensions = {};
});

describe("the interpreter of the Python extension", () => {
  test("is the one that is chosen for the first folder of the workspace", async () => {
    given.folders = ["/w", "/v"];
    pythonExtension({ "/w": "/w/env/bin/python", "/v": "/v/env/bin/python" });
    assert.equal(await chosenPython(), "/w/env/bin/python");
  });

  test("of a window without a folder", async () => {
    given.folders = [];
    pythonExtension({ "": "/usr/bin/python3.12" });
    assert.equal(await chosenPython(), "/usr/bin/python3.12");
  });

  test("on Windows", async () => {
    given.folders = ["C:\\w"];
    pythonExtension({ "C:\\w": "C:\\w\\.venv\\Scripts\\python.exe" });
    assert.equal(await chosenPython(), "C:\\w\\.venv\\Scripts\\python.exe");
  });

  test("is nothing while an environment has no Python, as a new one of conda", async () => {
    pythonExtension({});
    assert.equal(await chosenPython(), "");
  });

  test("is nothing without the extension", async () => {
    assert.equal(await chosenPython(), "");
    assert.equal(await onChosenPython(() => undefined), undefined);
  });

  test("is nothing where the extension does not start", async () => {
    given.extensions["ms-python.python"] = () => Promise.reject(new Error("broken"));
    assert.equal(await chosenPython(), "");
  });

  test("is nothing where the extension is too old to say it", async () => {
    given.extensions["ms-python.python"] = () => Promise.resolve({});
    assert.equal(await chosenPython(), "");
    assert.equal(await onChosenPython(() => undefined), undefined);
  });

  test("is nothing where the extension fails to resolve it", async () => {
    const environments = {
      getActiveEnvironmentPath: () => ({ path: "/gone" }),
      resolveEnvironment: () => Promise.reject(new Error("gone")),
    };
    given.extensions["ms-python.python"] = () => Promise.resolve({ environments });
    assert.equal(await chosenPython(), "");
  });

  test("calls back when another one is chosen", async () => {
    const changes: (() => void)[] = [];
    pythonExtension({}, changes);
    let calls = 0;
    await onChosenPython(() => (calls += 1));
    changes.forEach((changed) => {
      changed();
    });
    assert.equal(calls, 1);
  });

  test("comes with the rest of the surroundings", async () => {
    pythonExtension({ "/w": "/w/env/bin/python" });
    const around = await surroundings();
    assert.deepEqual([around.chosen, around.folders, around.platform], ["/w/env/bin/python", ["/w"], process.platform]);
  });
});

describe("the settings", () => {
  test("are empty until somebody sets them", () => {
    assert.deepEqual(settings(), { interpreter: "", command: [] });
  });

  test("are those of the section devlint", () => {
    given.settings = { "devlint.interpreter": "/p", "devlint.command": ["uvx"] };
    assert.deepEqual(settings(), { interpreter: "/p", command: ["uvx"] });
  });
});

describe("the question to an interpreter", () => {
  beforeEach(() => {
    given.folders = []; // a process starts in the folder of the workspace, which has to be there
  });

  test("that is not there", async () => {
    await assert.rejects(probe("/no/such/python"), { message: "ENOENT" });
  });

  test("that is no Python", async () => {
    await assert.rejects(probe(process.execPath), (error: Error) => error.message.length > 0 && error.message.length < 200);
  });
});
