import { startSluice } from '../contenders/start-sluice.ts'
import { median } from '../percentiles.ts'
import { createPoster } from '../poster.ts'
import { warmUp } from './post-round.ts'
import { atMost, type Scenario } from './scenario.ts'

/** Appends per median: around the 100th, and at the end. */
const WINDOW = 100
const EARLY = 100

/** A channel's thread that grows by one message after the other. */
export const growingSource: Scenario = {
  name: 'growing-source',
  title: 'A source that grows one quote at a time',
  long: true,
  async run(bench) {
    await using sluice = await startSluice(bench)
    await warmUp(bench, sluice, 1)
    const poster = createPoster(sluice.urls, sluice.key, 1)
    const times: number[] = []
    let failed = 0
    for (let quote = 0; quote < bench.scale.grownQuotes; quote++) {
      const body = append(quote)
      const sent = performance.now()
      if ((await poster.post(body)) !== 200) failed += 1
      times.push(performance.now() - sent)
    }
    await poster.close()
    const early = median(times.slice(EARLY - WINDOW / 2, EARLY + WINDOW / 2))
    const last = median(times.slice(-WINDOW))
    const figures = [
      { what: 'quotes at the end', value: times.length, unit: '' },
      { what: 'an append around the 100th', value: early, unit: 'ms' },
      { what: 'one of the last 100', value: last, unit: 'ms' },
    ]
    return {
      measured: [],
      figures,
      floors: [
        atMost('errors', failed, 0),
        atMost('the last append, against the 100th', last / early, 2),
      ],
    }
  },
}

function append(quote: number): Buffer {
  const text = `Message ${quote} of a channel that never sleeps, about as long as such messages are.`
  const quotes = [{ externalId: `quote-${quote}`, text, speaker: `user-${quote % 20}` }]
  return Buffer.from(
    JSON.stringify({ title: 'A channel', externalId: 'grows', service: 'slack', quotes }),
  )
}
