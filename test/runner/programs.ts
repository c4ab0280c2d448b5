// The programs that single tests need beside Node.js. What is missing is installed before the tests
// where that is possible without asking; else those tests are skipped, and the last lines of the
// run say so.
import { type SpawnSyncOptions, spawnSync } from 'node:child_process'
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'

export type Program = keyof typeof PROGRAMS

declare module 'vitest' {
  interface TaskMeta {
    /** What the tests of a suite, or a test, need beside Node.js. */
    needs?: Program
  }
}

interface Source {
  isThere: () => boolean
  /** The package of Debian and Ubuntu. */
  debian?: string
  /** Installs the program without root. */
  install?: () => void
  /** The command that a person enters. */
  byHand: string
}

const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'sluice')
/** The folders of programs that are installed into the cache. */
const cached: string[] = []

/** Debian's names, and others. The shell has no windows, and takes half of the CPU. */
const CHROMIUM = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome']
/** A headless Chromium for Linux on x86-64 with its libraries, all inside a package of npm. */
const CHROMIUM_PACKAGE = '@sparticuz/chromium'
const CHROMIUM_VERSION = '153.0.0'

const DEBIAN_ARCH = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
export const FAKETIME = `/usr/lib/${DEBIAN_ARCH}-linux-gnu/faketime/libfaketimeMT.so.1`

const PROGRAMS = {
  chromium: chromium(),
  nginx: ofDebian('nginx-light', () => onPath('nginx') !== undefined),
  prometheus: ofDebian('prometheus', () =>
    ['prometheus', 'promtool'].every((name) => onPath(name) !== undefined),
  ),
  libfaketime: ofDebian('libfaketime', () => existsSync(FAKETIME)),
  // The servers of tests are installed as wheels by it, unless they are there.
  'python3-venv': ofDebian('python3-venv', () => run('python3', ['-c', 'import venv, ensurepip'])),
  openssl: ofDebian('openssl', () => onPath('openssl') !== undefined),
  systemd: ofDebian('systemd', () => onPath('systemd-analyze') !== undefined),
  // The version is the newest Kubernetes that it knows.
  'kubernetes-validate': ofPypi('kubernetes-validate', '1.37.0'),
  schemathesis: ofPypi('schemathesis', '4.32.5'),
} satisfies Record<string, Source>

function ofDebian(name: string, isThere: () => boolean): Source {
  return { isThere, debian: name, byHand: `apt-get install ${name}` }
}

function ofPypi(name: string, version: string): Source {
  const folder = join(CACHE, `${name}-${version}`)
  cached.push(join(folder, 'bin'))
  return {
    isThere: () => onPath(name) !== undefined,
    install() {
      if (run('python3', ['-m', 'venv', folder]))
        run(join(folder, 'bin/pip'), ['install', '--quiet', `${name}==${version}`])
    },
    byHand: `pip install ${name}==${version}`,
  }
}

function chromium(): Source {
  const debian = ofDebian('chromium', () => onPath(...CHROMIUM) !== undefined)
  if (process.platform !== 'linux' || process.arch !== 'x64') return debian
  const folder = join(CACHE, `chromium-${CHROMIUM_VERSION}`)
  cached.push(join(folder, 'bin'))
  return { isThere: debian.isThere, byHand: debian.byHand, install: () => installChromium(folder) }
}

function installChromium(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(join(folder, 'bin'), { recursive: true })
  // The package unpacks into the temporary folder, and its libraries only if it is asked to.
  const unpack = `import chromium, { inflate } from '${CHROMIUM_PACKAGE}'
    await chromium.executablePath()
    await inflate('node_modules/${CHROMIUM_PACKAGE}/bin/al2023.tar.br')`
  const program = join(folder, 'bin/chromium')
  const start = `#!/bin/sh
here=$(dirname "$0")/..
LD_LIBRARY_PATH=$here/al2023/lib FONTCONFIG_PATH=$here/fonts exec "$here/chromium" "$@"
`
  const isInstalled =
    run('npm', ['install', '--prefix', folder, `${CHROMIUM_PACKAGE}@${CHROMIUM_VERSION}`]) &&
    run(process.execPath, ['--input-type=module', '--eval', unpack], {
      cwd: folder,
      env: { ...process.env, TMPDIR: folder },
    })
  if (isInstalled) {
    // Without a font, Chromium ends. The package's file names the folders of fonts of other
    // machines.
    const fonts = join(folder, 'fonts/fonts.conf')
    writeFileSync(
      fonts,
      readFileSync(fonts, 'utf8').replaceAll('/tmp/fonts', join(folder, 'fonts')),
    )
    writeFileSync(program, start, { mode: 0o755 })
  }
  // An old system lacks what its libraries need.
  if (!run(program, ['--version'])) rmSync(program, { force: true })
}

const NAMES = Object.keys(PROGRAMS).filter((name): name is Program => name in PROGRAMS)

/**
 * The options of a test or a suite that needs this program: without it, it is skipped, and the run
 * says so.
 */
export function needs(program: Program) {
  // `skip: false` would run what `skipIf` skips.
  return { ...(isMissing(program) && { skip: true }), meta: { needs: program } }
}

export function isMissing(program: Program): boolean {
  return !PROGRAMS[program].isThere()
}

/** Returns the path of the browser of the tests. */
export function findChromium(): string {
  const found = onPath(...CHROMIUM)
  if (found === undefined) throw new Error(`Chromium is missing: ${commandFor('chromium')}`)
  return found
}

/** Returns the command by which a person installs this program. */
export function commandFor(program: Program): string {
  return PROGRAMS[program].byHand
}

interface InstallOptions {
  usesServers: boolean
  /** Throws an error that names the programs that are missing in the end. */
  required: boolean
  say: (line: string) => void
}

/**
 * Installs what these tests need and is missing, where that asks nobody: as root by the package
 * manager of Debian or Ubuntu, or into the cache folder.
 *
 * @param tests the texts of all test files.
 */
export function installPrograms(
  tests: string,
  { usesServers, required, say }: InstallOptions,
): void {
  process.env.PATH = [process.env.PATH, ...cached].join(delimiter)
  const needed = NAMES.filter(
    (name) => tests.includes(`needs('${name}')`) || (usesServers && name === 'python3-venv'),
  )
  const missing = needed.map((name): Source => PROGRAMS[name]).filter(({ isThere }) => !isThere())
  const packages = missing.flatMap(({ debian }) => debian ?? [])
  if (packages.length > 0 && process.getuid?.() === 0 && onPath('apt-get') !== undefined) {
    say(`Installing what tests need: apt-get install ${packages.join(' ')}`)
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    run('apt-get', ['update', '-qq'], { env })
    // One by one: a system that lacks one of them has the others.
    for (const name of packages)
      run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', name], { env })
  }
  for (const { install } of missing) install?.()
  const left = needed.filter(isMissing)
  if (required && left.length > 0) throw new Error(`missing: ${left.map(commandFor).join('; ')}`)
}

/** Returns whether the command succeeded. */
function run(command: string, args: readonly string[], options: SpawnSyncOptions = {}): boolean {
  return spawnSync(command, args, { stdio: 'ignore', timeout: INSTALL_MS, ...options }).status === 0
}

/** Chromium alone is 80 MB. */
const INSTALL_MS = 600_000

/** Returns the path of the first of these programs that is there. */
function onPath(...names: string[]): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.flatMap((folder) => names.map((name) => join(folder, name))).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
