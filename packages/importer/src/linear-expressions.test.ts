// Each regular expression that reads what callers and files wrote takes time in proportion to its
// text.
import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseAst } from 'rolldown/parseAst'
import { analyse } from 'scslre'
import { afterAll, describe, expect, it } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../../..')
const READERS = '{packages/importer,packages/contract,apps/api}/src/**/*.ts'
const sources = globSync(READERS, { cwd: ROOT, exclude: ['**/*.{test,test-support,program}.ts'] })

interface Expression {
  pattern: string
  flags: string
}

/** The literals in a syntax tree. */
function* literalsIn(node: unknown): Generator<Expression> {
  if (typeof node !== 'object' || node === null) return
  if ('regex' in node) yield node.regex as Expression
  for (const child of Object.values(node)) yield* literalsIn(child)
}

/**
 * Finds what takes the square of the text's length or more, also where a match may begin anywhere.
 */
function faultsOf({ pattern, flags }: Expression): string[] {
  return analyse({ source: pattern, flags }).reports.map(
    ({ type }) => `${type}: /${pattern}/${flags}`,
  )
}

describe('a regular expression is linear', () => {
  it('if it is a literal', () => {
    const expressions = sources.flatMap((path) => {
      const code = readFileSync(resolve(ROOT, path), 'utf8')
      return [...literalsIn(parseAst(code, { lang: 'ts' }))].map((each) => ({ path, ...each }))
    })
    expect(expressions.length).toBeGreaterThan(200)
    expect(
      expressions.flatMap((each) => faultsOf(each).map((fault) => `${each.path}: ${fault}`)),
    ).toEqual([])
  })

  const Original = RegExp
  afterAll(() => {
    globalThis.RegExp = Original
  })

  it('if it is made of parts when its module is loaded', async () => {
    const made: Expression[] = []
    globalThis.RegExp = new Proxy(Original, {
      construct(target, [pattern, flags = '']) {
        made.push({ pattern, flags })
        return new target(pattern, flags)
      },
    })
    const makers = sources.filter((path) =>
      readFileSync(resolve(ROOT, path), 'utf8').includes('new RegExp('),
    )
    // The query loads the module again, whoever loaded it before.
    for (const path of makers) await import(`${resolve(ROOT, path)}?made`)
    globalThis.RegExp = Original
    expect(made.length).toBeGreaterThanOrEqual(makers.length)
    expect(made.flatMap(faultsOf)).toEqual([])
  })

  it.each([/^a*a*$/, /\s+$/, /(a|a)*$/, /"?\s*;/])('and %s is found', ({ source, flags }) => {
    expect(faultsOf({ pattern: source, flags })).not.toEqual([])
  })
})
