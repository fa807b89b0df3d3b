/** Tests the order, the filter and the limit of log lines, and their ANSI escapes. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { plainText, styledTexts } from './ansi.ts'
import { lineOf, LogLines } from './log-lines.ts'
import { sourcesOf } from './log-sources.ts'

const line = (seconds: number, text = `line ${seconds}`, source = 0) => ({
  source,
  time: `2026-11-19T05:00:${String(seconds).padStart(2, '0')}.000000000Z`,
  text,
})

describe('LogLines', () => {
  it('merges the lines of several sources by time', () => {
    const lines = new LogLines()
    lines.add([line(1), line(4), line(9)])
    lines.add([line(3, 'b3', 1), line(10, 'b10', 1)])
    lines.add([line(0, 'c0', 2)])
    assert.deepEqual(
      lines.shown.map(({ text }) => text),
      ['c0', 'line 1', 'b3', 'line 4', 'line 9', 'b10'],
    )
  })

  it('keeps the order of lines with the same time', () => {
    const lines = new LogLines()
    lines.add([line(1, 'a'), line(1, 'b')])
    lines.add([line(1, 'c')])
    assert.deepEqual(
      lines.shown.map(({ text }) => text),
      ['a', 'b', 'c'],
    )
  })

  it('shows the lines that fit a text or a regular expression, also new ones', () => {
    const lines = new LogLines()
    lines.add([line(1, 'Error: disk'), line(2, 'ok')])
    lines.filter('error')
    lines.add([line(3, 'ERROR 7'), line(4, 'fine')])
    assert.deepEqual(
      lines.shown.map(({ text }) => text),
      ['Error: disk', 'ERROR 7'],
    )
    lines.filter('/error \\d/')
    assert.deepEqual(
      lines.shown.map(({ text }) => text),
      ['ERROR 7'],
    )
    assert.throws(() => lines.filter('/(/'), SyntaxError)
    lines.filter('')
    assert.equal(lines.shown.length, 4)
  })

  it('drops the oldest lines above its limit', () => {
    const lines = new LogLines(20)
    lines.filter('line')
    for (let second = 0; second < 50; second++) lines.add([line(second)])
    assert.ok(lines.total <= 20)
    assert.equal(lines.dropped + lines.total, 50)
    assert.deepEqual(lines.shown.at(-1)?.text, 'line 49')
    assert.equal(lines.shown.length, lines.total)
  })
})

describe('lineOf()', () => {
  it('cuts off the time of the runtime', () => {
    assert.deepEqual(lineOf(2, '2026-11-19T05:00:00.5Z a b'), {
      source: 2,
      time: '2026-11-19T05:00:00.5Z',
      text: 'a b',
    })
    assert.deepEqual(lineOf(0, 'no time here'), { source: 0, time: '', text: 'no time here' })
  })
})

describe('styledTexts()', () => {
  const cases: readonly (readonly [line: string, texts: readonly object[]])[] = [
    ['plain', [{ text: 'plain' }]],
    ['\u001B[31mred\u001B[0m not', [{ text: 'red', color: 1 }, { text: ' not' }]],
    [
      '\u001B[1;94mx\u001B[39my',
      [
        { text: 'x', color: 4, isBold: true },
        { text: 'y', isBold: true },
      ],
    ],
    ['a\u001B[2Kb\u001B]0;title\u0007c', [{ text: 'a' }, { text: 'b' }, { text: 'c' }]],
    ['bell\u0007 \u202Ebidi', [{ text: 'bell\u2407 \uFFFDbidi' }]],
  ]
  for (const [text, expected] of cases) {
    it(`splits ${JSON.stringify(text)}`, () => assert.deepEqual(styledTexts(text), expected))
  }

  it('cuts a very long line', () => {
    const [{ text } = { text: '' }] = styledTexts('x'.repeat(1_000_000))
    assert.ok(text.length < 21_000)
    assert.match(text, /1000000 characters/)
  })

  it('leaves no escapes in plain text', () => assert.equal(plainText('\u001B[31mred\u001B[0m'), 'red'))
})

describe('sourcesOf()', () => {
  const containers = [
    { namespace: 'web', pod: 'a', container: 'app' },
    { namespace: 'web', pod: 'b', container: 'app' },
    { namespace: 'web', pod: 'b', container: 'proxy' },
  ]
  const options = { tailLines: 10, isPrevious: false, container: '' }

  it('names pod and container when there are several pods', () => {
    const sources = sourcesOf('local', containers, options)
    assert.deepEqual(
      sources.map(({ label }) => label),
      ['a/app', 'b/app', 'b/proxy'],
    )
    assert.match(
      sources[0]?.path ?? '',
      /namespaces\/web\/pods\/a\/log\?container=app&timestamps=true&follow=true&tailLines=10/,
    )
  })

  it('reads the chosen container of each pod, and earlier logs without following', () => {
    const sources = sourcesOf('local', containers, { tailLines: 0, isPrevious: true, container: 'proxy' })
    assert.deepEqual(
      sources.map(({ label }) => label),
      ['proxy'],
    )
    assert.match(sources[0]?.path ?? '', /previous=true$/)
  })
})
