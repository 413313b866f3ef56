// Writes `devlint-VERSION.vsix`: `npm run package`. The version is that of the Python package; publisher and addresses are
// those of `devlint/addresses.py`. While they are empty, a placeholder stands for the publisher.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const STAGE = "dist/package";
const root = new URL("../../../", import.meta.url);

function value(file, name) {
  const text = readFileSync(new URL(file, root), "utf8");
  const found = new RegExp(`^${name} = "(.*)"$`, "m").exec(text);
  if (found === null) {
    throw new Error(`${file} has no ${name}`);
  }
  return found[1];
}

const version = value("devlint/__init__.py", "__version__");
const repository = value("devlint/addresses.py", "REPOSITORY");
const site = value("devlint/addresses.py", "SITE");
const manifest = JSON.parse(readFileSync("package.json", "utf8"));
for (const key of ["private", "scripts", "devDependencies"]) {
  delete manifest[key];
}
manifest.version = version;
manifest.publisher = value("devlint/addresses.py", "VSCODE_PUBLISHER") || "undefined-publisher";
if (repository !== "") {
  manifest.repository = { type: "git", url: repository };
}
if (site !== "") {
  manifest.homepage = site;
}

execFileSync(process.execPath, ["scripts/build.mjs"], { stdio: "inherit" });
rmSync(STAGE, { recursive: true, force: true });
mkdirSync(`${STAGE}/dist`, { recursive: true });
cpSync("dist/extension.js", `${STAGE}/dist/extension.js`);
cpSync("README.md", `${STAGE}/README.md`);
cpSync(new URL("LICENSE", root), `${STAGE}/LICENSE`);
writeFileSync(`${STAGE}/package.json`, `${JSON.stringify(manifest, null, 2)}\n`);

const vsce = createRequire(import.meta.url).resolve("@vscode/vsce/vsce");
const file = `devlint-${version}.vsix`;
execFileSync(
  process.execPath,
  [
    vsce, "package", "--no-dependencies", "--allow-missing-repository", "--no-rewrite-relative-links",
    "--out", `../../${file}`,
  ],
  { cwd: STAGE, stdio: "inherit" },
);
console.log(file);
