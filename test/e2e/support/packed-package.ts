import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { TestScope } from '@sluice/test-support'

/**
 * A project of a user, outside of the workspace, with one of our packages installed from its
 * tarball and nothing else.
 */
export interface UserProject {
  folder: string
  /** The packages in its `node_modules`. */
  installed: string[]
  /**
   * Compiles a file with the strictest options, the declarations of the package included. Returns
   * what the compiler reports.
   */
  compile(file: string, ...options: string[]): Promise<string>
  run(file: string, ...args: string[]): Promise<{ stdout: string; stderr: string }>
  write(file: string, text: string): Promise<void>
}

const execute = promisify(execFile)
const root = fileURLToPath(new URL('../../../', import.meta.url))
const tsc = join(root, 'node_modules/.bin/tsc')
const STRICT = [
  '--strict',
  '--exactOptionalPropertyTypes',
  '--skipLibCheck',
  'false',
  '--target',
  'es2022',
]

/** Packs a package of this repository as for a registry, and installs it without one. */
export async function installPacked(
  t: TestScope,
  name: 'client' | 'importer',
): Promise<UserProject> {
  const folder = await mkdtemp(join(tmpdir(), `sluice-${name}-`))
  t.onTestFinished(() => rm(folder, { recursive: true }))
  const inFolder = (command: string, args: string[]) => execute(command, args, { cwd: folder })
  const write = (file: string, text: string) => writeFile(join(folder, file), text)
  await execute('npx', ['-y', 'pnpm@12', 'pack', '--pack-destination', folder], {
    cwd: join(root, 'packages', name),
  })
  await rm(join(root, 'packages', name, 'dist'), { recursive: true, force: true })
  const tarballs = (await readdir(folder)).map((name) => `./${name}`)
  await write('package.json', '{ "name": "example", "private": true, "type": "module" }')
  await inFolder('npm', [
    'install',
    '--offline',
    '--no-audit',
    '--no-fund',
    '--ignore-scripts',
    ...tarballs,
  ])
  const installed = await readdir(join(folder, 'node_modules'), { recursive: true })
  return {
    folder,
    installed: installed.filter((path) => /^(@[^/]+\/)?[^@./][^/]*$/.test(path)),
    write,
    run: (file, ...args) => inFolder(process.execPath, [file, ...args]),
    compile: (file, ...options) =>
      inFolder(tsc, [...STRICT, ...options, file]).then(
        () => '',
        ({ stdout }) => String(stdout),
      ),
  }
}

/** The example in the client's README. */
export async function readmeExample(): Promise<string> {
  const readme = await readFile(join(root, 'packages/client/README.md'), 'utf8')
  const [, example = ''] = /```ts\n(.*?)```/s.exec(readme) ?? []
  return example
}
