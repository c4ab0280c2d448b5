// Preloaded into a process under test: blocks its event loop whenever its parent sends a number of
// milliseconds, as a long computation would. It says so first, so that a test knows from when on.

process.on('message', (ms) => {
  if (typeof ms !== 'number') return
  process.send?.('blocked', () => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
  })
})
