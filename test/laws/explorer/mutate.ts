import { registerHooks } from 'node:module'
import { mutants } from './mutants.ts'

// Preloaded (`node --import`): the store's files are loaded with one of the mutants' edits, the one
// that MUTANT names.

const mutant = mutants.find(({ name }) => name === process.env.MUTANT)
if (mutant === undefined) throw new Error(`there is no mutant ${process.env.MUTANT}`)
const left = new Set(mutant.edits)

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    let source = String(loaded.source)
    for (const edit of mutant.edits) {
      if (!url.endsWith(`/packages/store/src/${edit.file}`)) continue
      if (source.split(edit.find).length !== 2)
        throw new Error(`${edit.file} does not hold once: ${edit.find}`)
      source = source.replace(edit.find, () => edit.replace)
      left.delete(edit)
    }
    return left.size === mutant.edits.length ? loaded : { ...loaded, source }
  },
})
