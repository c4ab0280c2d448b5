// Names the programs of this folder for the settings of a process under test.

/** The settings by which a process loads one of them before its own code. */
export function preload(name: 'block-loop' | 'shift-clock', settings: Record<string, string> = {}) {
  return { NODE_OPTIONS: `--import=${new URL(`${name}.ts`, import.meta.url)}`, ...settings }
}
