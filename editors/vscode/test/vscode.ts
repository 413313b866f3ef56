/** Stands for VS Code in the tests: the parts that `src/surroundings.ts` reads, as a test sets them. */

export const given = {
  folders: [] as string[],
  settings: {} as Record<string, unknown>,
  /** What the extensions give when they are activated, by their names. */
  extensions: {} as Record<string, () => Promise<unknown>>,
};

export const workspace = {
  get workspaceFolders() {
    return given.folders.length === 0 ? undefined : given.folders.map((fsPath) => ({ uri: { fsPath } }));
  },
  getConfiguration: (section: string) => ({
    get: (name: string, otherwise: unknown) => given.settings[`${section}.${name}`] ?? otherwise,
  }),
};

export const extensions = {
  getExtension(name: string) {
    const activate = given.extensions[name];
    return activate === undefined ? undefined : { activate };
  },
};
