// Builds the folder `dist`, which `pnpm pack` packs: the program in one file, with all that it
// imports.
import { copyFile, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { build } from 'rolldown'
import manifest from './package.json' with { type: 'json' }

const PROGRAM = 'sluice-import'
/**
 * Node 20.3 lacks both symbols. The code that the bundler writes for `using` looks for them under
 * these names.
 */
const SYMBOLS = ['dispose', 'asyncDispose'].map(
  (name) => `Symbol.${name} ??= Symbol.for('Symbol.${name}')`,
)

process.chdir(import.meta.dirname)
await rm('dist', { recursive: true, force: true })
const { output } = await build({
  input: 'src/main.ts',
  platform: 'node',
  transform: { target: 'node20.3' },
  // Code that nothing uses is left out: no module of ours or of a dependency has an effect beside
  // its exports.
  treeshake: { moduleSideEffects: false },
  // An example in an error names the program.
  plugins: [{ name: 'program', renderChunk: (code) => code.replaceAll('sluice import', PROGRAM) }],
  output: { file: `dist/${PROGRAM}.js`, intro: SYMBOLS.join('\n'), codeSplitting: false },
})

/** The name of a package, and its licence, which has to go with its code. */
async function licenceOf(folder: string): Promise<string> {
  const { name, version, license } = JSON.parse(await readFile(`${folder}/package.json`, 'utf8'))
  const file = (await readdir(folder)).find((one) => /^licen[cs]e/i.test(one))
  const text = file === undefined ? '' : await readFile(`${folder}/${file}`, 'utf8')
  return `${name} ${version} (${license})\n\n${text}`
}

const modules = output.flatMap((chunk) => (chunk.type === 'chunk' ? chunk.moduleIds : []))
const folders = modules.flatMap(
  (path) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [],
)
const licences = await Promise.all([...new Set(folders)].sort().map(licenceOf))
await writeFile('dist/LICENSES.txt', licences.join(`\n${'-'.repeat(80)}\n\n`))
await copyFile('README.md', 'dist/README.md')
const { name, version, description, license, type, engines } = manifest
const packed = {
  name,
  version,
  description,
  license,
  type,
  engines,
  bin: { [PROGRAM]: `${PROGRAM}.js` },
}
await writeFile('dist/package.json', `${JSON.stringify(packed, null, 2)}\n`)
