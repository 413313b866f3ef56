// Bundles the tests and runs them with Node's own runner: `npm test`. No VS Code is needed: `test/vscode.ts` stands for it.
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

rmSync("dist/test", { recursive: true, force: true });
const names = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
await build({
  entryPoints: names.map((name) => `test/${name}`),
  outdir: "dist/test",
  bundle: true,
  alias: { vscode: "./test/vscode.ts" },
  platform: "node",
  format: "cjs",
  target: "node20",
  logLevel: "warning",
});
const files = names.map((name) => `dist/test/${name.replace(/\.ts$/, ".js")}`);
process.exit(spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status ?? 1);
