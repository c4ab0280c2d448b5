// Preloaded into a process under test: its wall clock is wrong by CLOCK_SHIFT_MS. Its monotonic
// clock stays right, as on a real machine.

const shift = Number(process.env.CLOCK_SHIFT_MS)
const now = Date.now
const shiftedNow = () => now() + shift

globalThis.Date = new Proxy(Date, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [shiftedNow()] : args, newTarget),
  get: (target, name) => (name === 'now' ? shiftedNow : Reflect.get(target, name)),
})
