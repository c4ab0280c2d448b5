import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { describe, it } from 'vitest'
import { htmlToText } from './html-text.ts'

const cases: [rule: string, html: string, text: string][] = [
  ['paragraphs and breaks as lines', '<p>One<br>two</p><p>three</p>', 'One\ntwo\n\nthree'],
  ['entities as characters', 'a &lt; b &amp;&nbsp;c', 'a < b &\u00a0c'],
  [
    'links with their addresses',
    '<a href="https://a.example">here</a>',
    'here (https://a.example)',
  ],
  [
    'a link that shows its address once',
    '<a href="https://a.example">https://a.example</a>',
    'https://a.example',
  ],
  ['headings as they are written', '<h1>Printers</h1>burn', 'Printers\n\nburn'],
  ['neither images nor scripts', '<img src="a" alt="b"><script>c()</script><style>d</style>e', 'e'],
  ['no title', '<html><head><title>a</title></head><body>b</body></html>', 'b'],
  ['what stands behind the end of the body', '<html><body>a</body> b</html><br>c', 'a b\nc'],
  [
    'every one of several documents',
    '<html><body>a</body></html>\n<html><body>b</body></html>',
    'a b',
  ],
  ['long lines unbroken', `<p>${'word '.repeat(50)}</p>`, 'word '.repeat(50).trim()],
  [
    'cells apart and rows as lines',
    '<table><tr><td>Total<td>42</tr><tr><th>Rye</th>\n<td>7</td></tr></table>',
    'Total 42\nRye 7',
  ],
  [
    'tables in cells',
    '<table><tr><td><table><tr><td>a</td><td>b</td></tr></table></td></tr></table>c',
    'a b\n\nc',
  ],
  [
    'terms and items as lines',
    '<dl><dt>Key<dd>Value</dl><li>a<li>b<address>c</address>',
    'Key\nValue\na\nb\nc',
  ],
  ['words that elements only mark', 'a<wbr>b <span>c</span><span>d</span>', 'ab cd'],
  ['what is not HTML', '1 < 2', '1 < 2'],
]

describe('HTML as text has', () => {
  for (const [rule, html, text] of cases) it(rule, () => assert.equal(htmlToText(html), text))

  // Before the converter had bounds, each of these took from ten seconds to minutes.
  const dear: [nesting: string, html: string][] = [
    ['deep', '<div>'.repeat(200_000)],
    ['deep behind close tags of elements that are not open', '<div></b></b>'.repeat(100_000)],
    ['deep with elements that only some others end', '<li><td>'.repeat(100_000)],
    ['480 quotes deep', `${'<blockquote>'.repeat(480)}${'b<br>'.repeat(100_000)}`],
    ['40 quotes deep around a long text', `${'<blockquote>'.repeat(40)}${'b<br>'.repeat(200_000)}`],
    [
      '40 lists deep around a long text',
      `${'<ul>'.repeat(40)}<pre>${'b\n'.repeat(1_000_000)}</pre>`,
    ],
  ]
  for (const [nesting, html] of dear)
    it(`no tags, and is there within three seconds, if it nests ${nesting}`, {
      timeout: 3_000,
    }, () => {
      assert.match(htmlToText(`${html}a`), /^[^<>]*a$/)
    })

  it('its links and quotes if it nests as deep as long conversations do', () => {
    const html = `${'<blockquote>'.repeat(40)}<a href="https://a.example">b</a>`
    assert.equal(htmlToText(html), `${'> '.repeat(40)}b (https://a.example)`)
  })

  it('every word of a long document, and needs little memory', async () => {
    const code = `import(${JSON.stringify(import.meta.resolve('./html-text.ts'))}).then(
      ({ htmlToText }) => {
        const words = htmlToText('<p title="a b">one two</p>'.repeat(100_000)).split(/\\s+/)
        require('node:worker_threads').parentPort.postMessage(words.join(' '))
      },
    )`
    const resourceLimits = { maxOldGenerationSizeMb: 64 }
    const [words] = await once(new Worker(code, { eval: true, resourceLimits }), 'message')
    assert.equal(words, 'one two '.repeat(100_000).trim())
  })

  it('whole words and tags, if a document is cut into pieces', () => {
    const long = `<img alt="${'b '.repeat(200_000)}">${'c'.repeat(200_000)} `
    const words = htmlToText(`<p>a &amp; ${long.repeat(3)}</p>`).split(/\s+/)
    assert.deepEqual(
      words.map((word) => word.length),
      [1, 1, 200_000, 200_000, 200_000],
    )
  })
})
