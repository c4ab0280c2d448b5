// Preloaded into a process under test: blocks its event loop whenever its parent sends a number of milliseconds, as a
// long computation would.

process.on('message', (ms) => {
  if (typeof ms === 'number') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
})
