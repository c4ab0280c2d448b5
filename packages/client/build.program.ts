// Builds the folder `dist`, which `pnpm pack` packs. Its users install no other package, so the
// types that `src/contract.ts` takes from the contract are written out.
import { execFileSync } from 'node:child_process'
import { cp, rm, writeFile } from 'node:fs/promises'
import { clientTypes } from './client-types.program.ts'

process.chdir(import.meta.dirname)
const compile = (...options: string[]) =>
  execFileSync('tsc', ['-p', 'tsconfig.build.json', ...options], { stdio: 'inherit' })

await rm('dist', { recursive: true, force: true })
await cp('src', 'dist/src', { recursive: true })
await writeFile('dist/src/contract.ts', clientTypes())
compile()
compile('--emitDeclarationOnly', '--outDir', 'dist/cjs')
await rm('dist/src', { recursive: true })
// For programs that load the package by `require`.
await writeFile('dist/cjs/package.json', '{"type":"commonjs"}\n')
