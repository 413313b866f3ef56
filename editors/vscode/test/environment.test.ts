import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { describe, test } from "node:test";

import { candidates, contentsOf, expanded, find, PROBE, type Contents, type Surroundings } from "../src/environment.js";

const UNSET = { interpreter: "", command: [] };

function around(given: Partial<Surroundings> & { files?: string[] } = {}): Surroundings {
  const files = given.files ?? [];
  return {
    folders: ["/w"],
    chosen: "",
    variables: {},
    platform: "linux",
    home: "/home/ada",
    exists: (file) => files.includes(file),
    ...given,
  };
}

function pythons(given: Parameters<typeof around>[0], settings = UNSET): string[] {
  return candidates(settings, around(given)).map((each) => each.argv[0]);
}

describe("what is tried", () => {
  test("the interpreter of the Python extension comes first, then the workspace's environment, then the search path", () => {
    const files = ["/w/.venv/bin/python", "/usr/bin/python3"];
    const found = pythons({ chosen: "/conda/bin/python", files, variables: { PATH: "/usr/bin" } });
    assert.deepEqual(found, ["/conda/bin/python", "/w/.venv/bin/python", "/usr/bin/python3"]);
  });

  test("an environment of any folder of the workspace", () => {
    const found = pythons({ folders: ["/w", "/v"], files: ["/v/venv/bin/python3"] });
    assert.deepEqual(found, ["/v/venv/bin/python3"]);
  });

  test("the environment that is active where the editor was started", () => {
    const files = ["/e/bin/python", "/c/bin/python"];
    const found = pythons({ files, variables: { VIRTUAL_ENV: "/e", CONDA_PREFIX: "/c" } });
    assert.deepEqual(found, ["/e/bin/python", "/c/bin/python"]);
  });

  test("the Python beside a `devlint` command comes before others of the search path", () => {
    const files = ["/usr/bin/python3", "/tools/bin/devlint", "/tools/bin/python"];
    assert.deepEqual(pythons({ files, variables: { PATH: "/usr/bin:/tools/bin" } }), [
      "/tools/bin/python",
      "/usr/bin/python3",
    ]);
  });

  test("no relative folder of the search path", () => {
    assert.deepEqual(pythons({ files: ["bin/python"], variables: { PATH: "bin:." } }), []);
  });

  test("each Python once", () => {
    const found = pythons({ chosen: "/w/.venv/bin/python", files: ["/w/.venv/bin/python"] });
    assert.deepEqual(found, ["/w/.venv/bin/python"]);
  });

  test("the interpreter of the settings stands alone", () => {
    const settings = { interpreter: "${workspaceFolder}/env/bin/python", command: [] };
    assert.deepEqual(pythons({ chosen: "/conda/bin/python" }, settings), ["/w/env/bin/python"]);
  });

  test("the command of the settings stands alone and is not asked what it has", () => {
    const settings = { interpreter: "/p", command: ["uvx", "devlint", "server"] };
    assert.deepEqual(candidates(settings, around()), [{ kind: "command", argv: ["uvx", "devlint", "server"] }]);
  });
});

describe("variables of a setting", () => {
  for (const [text, wanted] of [
    ["~/env/bin/python", "/home/ada/env/bin/python"],
    ["${workspaceFolder}/p", "/w/p"],
    ["${env:PREFIX}/p", "/opt/p"],
    ["./env/bin/python", "/w/env/bin/python"],
    ["python3.12", "python3.12"],
    ["a~b", "a~b"],
  ] as const) {
    test(text, () => {
      assert.equal(expanded(text, around({ variables: { PREFIX: "/opt" } })), wanted);
    });
  }
});

describe("on Windows", () => {
  const windows = (given: Parameters<typeof around>[0]) =>
    around({ platform: "win32", folders: ["C:\\w"], home: "C:\\Users\\Ada", ...given });
  const tried = (given: Parameters<typeof around>[0], set = UNSET) =>
    candidates(set, windows(given)).map((each) => each.argv[0]);

  test("the interpreter of the Python extension comes first, then the workspace's environment", () => {
    const files = ["C:\\w\\.venv\\Scripts\\python.exe"];
    assert.deepEqual(tried({ chosen: "D:\\conda\\python.exe", files }), ["D:\\conda\\python.exe", ...files]);
  });

  test("an environment of conda has its Python at its top", () => {
    const files = ["D:\\conda\\envs\\torch\\python.exe"];
    assert.deepEqual(tried({ files, variables: { CONDA_PREFIX: "D:\\conda\\envs\\torch" } }), files);
  });

  test("the search path has semicolons, and colons behind drives", () => {
    const files = ["C:\\Python312\\python.exe", "D:\\tools\\python.exe"];
    assert.deepEqual(tried({ files, variables: { Path: "C:\\Python312;D:\\tools;tools" } }), files);
  });

  test("a folder of the search path may stand in quotes", () => {
    const files = ["C:\\Program Files\\Python312\\python.exe"];
    assert.deepEqual(tried({ files, variables: { Path: '"C:\\Program Files\\Python312"' } }), files);
  });

  test("the Python one folder above a `devlint` command comes before others of the search path", () => {
    const files = ["C:\\a\\python.exe", "C:\\b\\python.exe", "C:\\b\\Scripts\\devlint.exe"];
    const variables = { Path: "C:\\a;C:\\b;C:\\b\\Scripts" };
    assert.deepEqual(tried({ files, variables }), ["C:\\b\\python.exe", "C:\\a\\python.exe"]);
  });

  test("a share of the network", () => {
    const files = ["\\\\server\\share\\w\\venv\\Scripts\\python.exe"];
    assert.deepEqual(tried({ folders: ["\\\\server\\share\\w"], files }), files);
  });

  for (const [text, wanted] of [
    ["~\\env\\Scripts\\python.exe", "C:\\Users\\Ada\\env\\Scripts\\python.exe"],
    ["${workspaceFolder}\\.venv\\Scripts\\python.exe", "C:\\w\\.venv\\Scripts\\python.exe"],
    ["${workspaceFolder}/.venv/Scripts/python.exe", "C:\\w/.venv/Scripts/python.exe"],
    [".\\.venv\\Scripts\\python.exe", "C:\\w\\.venv\\Scripts\\python.exe"],
    ["./.venv/Scripts/python.exe", "C:\\w\\.venv\\Scripts\\python.exe"],
    ["D:\\py\\python.exe", "D:\\py\\python.exe"],
    ["D:/py/python.exe", "D:/py/python.exe"],
    ["py.exe", "py.exe"],
  ] as const) {
    test(`the setting ${text}`, () => {
      assert.equal(expanded(text, windows({})), wanted);
    });
  }

  test("a path with a blank is quoted in the command that installs", async () => {
    const bare = () => Promise.resolve({ devlint: null, hasServer: false });
    const found = await find([{ kind: "python", argv: ["C:\\my env\\python.exe"] }], bare);
    assert.equal(found.kind === "missing" && found.install, '"C:\\my env\\python.exe" -m pip install "devlint[lsp]"');
  });
});

describe("what is found", () => {
  const python = (file: string) => ({ kind: "python", argv: [file] }) as const;
  const holds = (contents: Record<string, Contents>) => (file: string) =>
    contents[file] !== undefined ? Promise.resolve(contents[file]) : Promise.reject(new Error("ENOENT"));
  const BARE = { devlint: null, hasServer: false };
  const OLD = { devlint: "0.2.0", hasServer: false };
  const READY = { devlint: "0.2.0", hasServer: true };

  test("the first Python that has devlint and its server", async () => {
    const found = await find([python("/a"), python("/b")], holds({ "/a": BARE, "/b": READY }));
    assert.equal(found.kind, "found");
    assert.deepEqual([found.argv[0], found.argv.at(-1), found.version], ["/b", "server", "0.2.0"]);
  });

  test("devlint without its server is named, with the command that adds it", async () => {
    const found = await find([python("/a")], holds({ "/a": OLD }));
    assert.equal(found.kind, "missing");
    assert.match(found.message, /^devlint 0\.2\.0 in \/a has no language server\. Install it with: /);
    assert.equal(found.install, '/a -m pip install "devlint[lsp]"');
  });

  test("without devlint anywhere, the first Python that runs is the one to install it in", async () => {
    const found = await find([python("/gone"), python("/my env/p"), python("/c")], holds({ "/my env/p": BARE, "/c": BARE }));
    assert.equal(found.kind, "missing");
    assert.equal(found.install, '"/my env/p" -m pip install "devlint[lsp]"');
  });

  test("an interpreter that cannot be run is named with the reason", async () => {
    const found = await find([python("/gone")], holds({}));
    assert.deepEqual(found, { kind: "missing", message: "devlint cannot run /gone: ENOENT", install: "" });
  });

  test("no Python at all", async () => {
    const found = await find([], holds({}));
    assert.equal(found.kind, "missing");
    assert.match(found.message, /devlint\.interpreter/);
  });
});

describe("the question to a Python", () => {
  test("is answered by one", (context) => {
    let printed: string;
    try {
      printed = execFileSync("python3", ["-c", PROBE], { encoding: "utf8" });
    } catch {
      context.skip("no python3");
      return;
    }
    assert.equal(typeof contentsOf(printed).hasServer, "boolean");
  });

  test("is answered behind what a site prints at its start", () => {
    const printed = 'welcome\n{"devlint": "0.2.0", "server": true}\n';
    assert.deepEqual(contentsOf(printed), { devlint: "0.2.0", hasServer: true });
  });

  test("has no other answer", () => {
    assert.throws(() => contentsOf("[]"));
  });
});
