// Stands for the Python extension in `vscode.mjs`: the part of its interface that `editors/vscode` uses, as
// https://github.com/microsoft/vscode-python/blob/main/src/client/api/types.ts declares it. The file `.chosen` of the
// workspace names the interpreter, where the true extension has a list to choose from.
const fs = require("node:fs");
const path = require("node:path");
const vscode = require("vscode");

exports.activate = (context) => {
  const folder = vscode.workspace.workspaceFolders[0].uri.fsPath;
  const changed = new vscode.EventEmitter();
  const watcher = vscode.workspace.createFileSystemWatcher(new vscode.RelativePattern(folder, ".chosen"));
  const read = () => fs.readFileSync(path.join(folder, ".chosen"), "utf8").trim();
  watcher.onDidChange(() => changed.fire({ path: read() }));
  context.subscriptions.push(changed, watcher);
  return {
    environments: {
      getActiveEnvironmentPath: () => ({ id: read(), path: read() }),
      resolveEnvironment: async (environment) => ({ executable: { uri: vscode.Uri.file(environment.path) } }),
      onDidChangeActiveEnvironmentPath: changed.event,
    },
  };
};
