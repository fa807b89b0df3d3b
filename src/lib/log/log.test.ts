import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'

import * as fc from 'fast-check'

import { createVirtualClock } from '../clock.ts'
import { createLog, type Log, type LogOptions, type LogStream, type LogValues } from './log.ts'
import { Redacted } from './value.ts'
import { parseVmodule } from './vmodule.ts'

interface Tape extends LogStream {
  text: string
  writes: number
}

function createTape(): Tape {
  return {
    text: '',
    writes: 0,
    write(text, done) {
      this.text += text
      this.writes++
      done()
    },
  }
}

/** Local time on purpose: klog's head has no zone. */
const START = new Date(2026, 10, 15, 2, 5, 12, 123).getTime()

function create(options: Partial<LogOptions> = {}): { log: Log; tape: Tape } {
  const tape = createTape()
  const log = createLog({ stream: tape, clock: createVirtualClock(START), pid: 42, caller: false, ...options })
  return { log, tape }
}

/** The output of one call, without the head of the line. */
function written(act: (log: Log) => void, options: Partial<LogOptions> = {}): string {
  const { log, tape } = create(options)
  act(log)
  void log.flush()
  return tape.text.replaceAll(/^[IE]\d{4} [^\]]*\] /gm, '')
}

function pairs(values: LogValues): string {
  return written(({ logger }) => logger.info('m', values))
    .replace(/^"m" ?/, '')
    .slice(0, -1)
}

class Pod {
  readonly namespace = 'kube-system'
  readonly name = 'dns'

  toString(): string {
    return `${this.namespace}/${this.name}`
  }

  toJSON(): unknown {
    return { name: this.name, namespace: this.namespace }
  }
}

class Broken {
  toString(): string {
    throw new Error('fake String panic')
  }
}

const circular: Record<string, unknown> = {}
circular['self'] = circular

describe('log in text format', () => {
  it('starts a line with severity, local time, process ID and source', async () => {
    const { log, tape } = create({ caller: true })
    log.logger.info('Started')
    log.logger.error(new Error('whoops'), 'Failed')
    await log.flush()
    assert.match(
      tape.text,
      /^I1115 02:05:12\.123000 {6}42 log\.test\.ts:\d+\] "Started"\nE1115 02:05:12\.123000 {6}42 log\.test\.ts:\d+\] "Failed" err="whoops"\n$/,
    )
    const [first, second] = [...tape.text.matchAll(/ts:(\d+)/g)].map((match) => Number(match[1]))
    assert.equal(second, first! + 1)
  })

  it('writes microseconds in the time zone at that moment', async () => {
    const tape = createTape()
    const clock = createVirtualClock(START)
    const log = createLog({ stream: tape, clock, pid: 1234567, caller: false })
    await clock.advance(0.456)
    log.logger.info('a')
    await clock.advance(60_000)
    log.logger.info('b')
    await log.flush()
    assert.match(tape.text, /^I1115 02:05:12\.12345\d 1234567 \?\?\?:1\] "a"\nI1115 02:06:12\.12345\d 1234567 /)
  })

  const table: readonly [string, LogValues, string][] = [
    ['a string in quotes', { akey: 'avalue' }, 'akey="avalue"'],
    ['HTML characters of a string as they are', { akey: '<&>' }, 'akey="<&>"'],
    ['quotes and backslashes with escapes', { key: '"quoted" \\' }, String.raw`key="\"quoted\" \\"`],
    ['control characters as Go does', { key: '\t\r\x07\x00\x7f\u0080' }, String.raw`key="\t\r\a\x00\x7f\u0080"`],
    ['printable text of any language unchanged', { key: 'Zürich 日本 🙂' }, 'key="Zürich 日本 🙂"'],
    ['unprintable characters as their code', { key: '\u200b\u{e0001}\ud800' }, String.raw`key="\u200b\U000e0001�"`],
    ['a text with several lines indented below the key', { key: 'line 1\nline 2' }, 'key=<\n\tline 1\n\tline 2\n >'],
    ['a final line break only once', { key: 'line 1\n >\n' }, 'key=<\n\tline 1\n\t >\n >'],
    [
      'numbers and booleans without quotes',
      { i: 1, f: 0.5, big: 12345678901234567890n, yes: true },
      'i=1 f=0.5 big=12345678901234567890 yes=true',
    ],
    ['undefined as null', { a: null, b: undefined }, 'a=null b=null'],
    [
      'a map or an object as JSON',
      {
        s: { hello: 'world' },
        i: new Map([
          [1, 2],
          [3, 4],
        ]),
      },
      's={"hello":"world"} i={"1":2,"3":4}',
    ],
    ['a list or a set as JSON', { s: ['hello', 'world'], i: new Set([1, 2, 3]) }, 's=["hello","world"] i=[1,2,3]'],
    ['HTML characters in JSON with escapes', { o: { a: '<&>' } }, String.raw`o={"a":"\u003c\u0026\u003e"}`],
    ['a big integer in JSON as a number', { o: { a: 12345678901234567890n } }, 'o={"a":12345678901234567890}'],
    ['an object with toString by its text', { pod: new Pod() }, 'pod="kube-system/dns"'],
    [
      'objects with toString in a list as JSON',
      { pods: [new Pod()] },
      'pods=[{"name":"dns","namespace":"kube-system"}]',
    ],
    [
      'keys such as __proto__ like others',
      { o: JSON.parse('{"toString":"x","__proto__":{"a":1}}') },
      'o={"toString":"x","__proto__":{"a":1}}',
    ],
    ['an error by its message', { err: new Error('whoops') }, 'err="whoops"'],
    ['bytes as ASCII text', { b: Buffer.from('aé"\n') }, String.raw`b="a\u00e9\"\n"`],
    [
      'bytes that are no text as a list of numbers',
      { b: Uint8Array.of(0x61, 0xff, 0x80, 0x0a) },
      String.raw`b="a\xff\x80\n"`,
    ],
    ['a time as Go does', { t: new Date(Date.UTC(2026, 0, 2, 3, 4, 5, 60)) }, 't="2026-01-02 03:04:05.06 +0000 UTC"'],
    [
      'a time of a whole second without a fraction',
      { t: new Date(Date.UTC(2026, 0, 2, 3, 4, 50)) },
      't="2026-01-02 03:04:50 +0000 UTC"',
    ],
    ['the result of a function', { lazy: () => 'now' }, 'lazy="now"'],
    [
      'a value whose toString throws as PANIC with the error',
      { stringer: new Broken() },
      'stringer="<panic: fake String panic>"',
    ],
    ['a Redacted value masked', { token: new Redacted('s3cret') }, 'token="--- REDACTED ---"'],
    [
      'a Redacted value masked inside other objects',
      { o: { list: [new Redacted('s3cret')] } },
      'o={"list":["--- REDACTED ---"]}',
    ],
  ]
  for (const [what, values, text] of table) it(`writes ${what}`, () => assert.equal(pairs(values), text))

  it('writes a circular value as an error', () => {
    assert.match(pairs({ list: circular }), /^list="<internal error: Converting circular structure to JSON>"$/)
  })

  it('quotes a message with several lines', () => {
    assert.equal(
      written(({ logger }) => logger.info('a\nI1115 forged')),
      '"a\\nI1115 forged"\n',
    )
  })

  it('puts the error first, then name and values of the logger and values of the line', () => {
    const text = written(({ logger }) =>
      logger.withValues({ x: 1 }).withName('a').withName('b').error(new Error('no'), 'm', { y: 2 }),
    )
    assert.equal(text, '"m" err="no" logger="a.b" x=1 y=2\n')
  })

  it('has no line break outside an indented value', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (message, value) => {
        const lines = written(({ logger }) => logger.info(message, { value }))
          .slice(0, -1)
          .split('\n')
        for (const line of lines.slice(1)) assert.match(line, /^\t| >$/)
      }),
    )
  })
})

describe('log of an error', () => {
  const text = (error: unknown): string => written(({ logger }) => logger.error(error, 'm')).slice('"m"'.length, -1)
  const table: readonly [string, unknown, string][] = [
    [
      'contains the causes after the message',
      new Error('a', { cause: new Error('b', { cause: 'c' }) }),
      ' err="a: b: c"',
    ],
    ['omits a cause that the message contains', new Error('a: b', { cause: new Error('b') }), ' err="a: b"'],
    [
      'omits several errors that the message contains',
      new AggregateError([new Error('x'), new Error('y')], 'x; y'),
      ' err="x; y"',
    ],
    [
      'lists every error of an AggregateError',
      new AggregateError([new Error('a'), new Error('b')], 'both'),
      ' err="both: [a, b]"',
    ],
    ['contains the name of an error without a message', new TypeError(), ' err="TypeError"'],
    ['contains a thrown string', 'just words', ' err="just words"'],
    ['contains a thrown object', { code: 1 }, ' err={"code":1}'],
    ['has no key for an undefined error', undefined, ''],
  ]
  for (const [what, error, expected] of table) it(what, () => assert.equal(text(error), expected))

  it('ends for circular causes', () => {
    const error = new Error('a')
    error.cause = new Error('b', { cause: error })
    assert.match(text(error), /^ err="a: b/)
  })

  it('takes precedence over a value with the key err', () => {
    const act = ({ logger }: Log): void => logger.withValues({ err: 1, x: 2 }).error(new Error('no'), 'm', { err: 3 })
    assert.equal(written(act), '"m" err="no" x=2\n')
  })
})

describe('log in JSON format', () => {
  const json = (act: (log: Log) => void): string => written(act, { format: 'json' })

  it('has time, source, message, level and values in the order of zap', () => {
    const text = json(({ logger }) => logger.withValues({ x: 1 }).withName('a').withName('b').info('m', { y: 'z' }))
    assert.equal(text, `{"ts":${START},"logger":"a.b","caller":"???:1","msg":"m","x":1,"v":0,"y":"z"}\n`)
  })

  it('has no level for errors, and the error last', () => {
    const text = json(({ logger }) => logger.error(new Error('whoops'), 'm', { y: 'z' }))
    assert.equal(text, `{"ts":${START},"caller":"???:1","msg":"m","y":"z","err":"whoops"}\n`)
  })

  it('contains folder and file of the caller', () => {
    const text = written(({ logger }) => logger.info('m'), { format: 'json', caller: true })
    assert.match(JSON.parse(text).caller, /^log\/log\.test\.ts:\d+$/)
  })

  const table: readonly [string, unknown, string][] = [
    ['an object with toJSON as that JSON', new Pod(), '"key":{"name":"dns","namespace":"kube-system"}'],
    ['an object that has only toString as text', new URL('https://a/b').searchParams, '"key":""'],
    ['bytes in base64', Buffer.from('hello'), '"key":"aGVsbG8="'],
    ['bytes inside an object in base64', { a: Uint8Array.of(1) }, '"key":{"a":"AQ=="}'],
    ['an error inside an object as its message', { a: new Error('no') }, '"key":{"a":"no"}'],
    ['a text with several lines in one line', 'a\nb', String.raw`"key":"a\nb"`],
    ['HTML characters as they are', { a: '<&>' }, '"key":{"a":"<&>"}'],
    ['undefined as null', undefined, '"key":null'],
    ['the result of a function', () => 7, '"key":7'],
    ['a value that throws under the key with Error appended', new Broken(), '"keyError":"PANIC=fake String panic"'],
    [
      'a circular value under the key with Error appended',
      circular,
      '"keyError":"PANIC=Converting circular structure to JSON"',
    ],
    ['a Redacted value masked', new Redacted({ a: 1 }), '"key":"--- REDACTED ---"'],
  ]
  for (const [what, key, text] of table) {
    it(`writes ${what}`, () => {
      assert.equal(
        json(({ logger }) => logger.info('m', { key })),
        `{"ts":${START},"caller":"???:1","msg":"m","v":0,${text}}\n`,
      )
    })
  }

  it('is valid JSON for any logged value', () => {
    fc.assert(
      fc.property(fc.string(), fc.dictionary(fc.string(), fc.jsonValue()), (message, values) => {
        const line = JSON.parse(json(({ logger }) => logger.info(message, { values })))
        assert.equal(line.msg, message)
        assert.deepEqual(line.values, JSON.parse(JSON.stringify(values)))
      }),
    )
  })
})

describe('log levels', () => {
  it('are written up to the verbosity, and cost nothing above it', () => {
    const { log, tape } = create({ verbosity: 2 })
    const costly = (): never => assert.fail('worked out')
    log.logger.v(2)?.info('two')
    log.logger.v(3)?.info('three', { value: costly() })
    void log.flush()
    assert.match(tape.text, /"two"\n$/)
    assert.doesNotMatch(tape.text, /three/)
  })

  it('add up when loggers are nested, and errors are always written', () => {
    const { log, tape } = create({ verbosity: 4, format: 'json' })
    const detail = log.logger.v(2)!
    assert.equal(detail.v(3), undefined)
    detail.v(2)?.info('four')
    detail.withName('x').withValues({ y: 1 }).error(undefined, 'failed')
    void log.flush()
    assert.match(tape.text, /"msg":"four","v":4\}\n.*"logger":"x".*"msg":"failed","y":1\}\n$/)
  })

  it('can change at run time for existing loggers', () => {
    const { log } = create()
    const child = log.logger.withName('child')
    assert.equal(child.v(5), undefined)
    log.verbosity = 5
    assert.equal(log.verbosity, 5)
    assert.notEqual(child.v(5), undefined)
  })

  const rules: readonly [string, string, number][] = [
    ['scheduler=4', 'scheduler', 4],
    ['scheduler=4', 'scheduler.binding', 4],
    ['scheduler=4', 'kube-scheduler', -1],
    ['*scheduler=4', 'kube-scheduler', 4],
    ['sched*r=4', 'scheduler', 4],
    ['s?heduler=4', 'scheduler', 4],
    ['a.b=4', 'a.b', 4],
    ['a.b=4', 'a.c', -1],
    ['a*=1,ab=9', 'ab', 1],
    ['a*b*c=3', 'axxbyybzzc', 3],
    ['a*b*c=3', 'axxbyybzz', -1],
    ['*=3', '', 3],
  ]
  for (const [vmodule, name, level] of rules) {
    it(`are up to ${level} for logger "${name}" with --vmodule ${vmodule}`, () => {
      const { log } = create({ vmodule: parseVmodule(vmodule) })
      const logger = name === '' ? log.logger : log.logger.withName(name)
      for (let tested = 1; tested < 10; tested++)
        assert.equal(logger.v(tested) !== undefined, tested <= level, `${tested}`)
    })
  }

  it('are never lowered by --vmodule', () => {
    const { log } = create({ verbosity: 5, vmodule: parseVmodule('quiet=1') })
    assert.notEqual(log.logger.withName('quiet').v(5), undefined)
  })
})

describe('parseVmodule()', () => {
  it('accepts a list and ignores empty items', () => {
    const rules = [
      { pattern: 'foo', level: 1 },
      { pattern: 'bar*', level: 2147483647 },
    ]
    assert.deepEqual(parseVmodule('foo=1,bar*=2147483647,'), rules)
    assert.deepEqual(parseVmodule(''), [])
  })

  const faults: readonly [string, string][] = [
    ['gopher*', '"gopher*" does not have the pattern=N format'],
    ['=1', '"=1" does not have the pattern=N format'],
    ['a=', '"a=" does not have the pattern=N format'],
    ['a=1=2', '"a=1=2" does not have the pattern=N format'],
    ['foo=-1', 'parsing verbosity in "foo=-1": strconv.ParseUint: parsing "-1": invalid syntax'],
    [
      'x=2147483648',
      'parsing verbosity in "x=2147483648": strconv.ParseUint: parsing "2147483648": value out of range',
    ],
  ]
  for (const [text, message] of faults) {
    it(`rejects ${text}`, () => assert.throws(() => parseVmodule(text), { message }))
  }
})

describe('values of a logger', () => {
  it('precede those of the line in order, and the last of a repeated key wins', () => {
    const text = written(({ logger }) => {
      const first = logger.withValues({ a: 1, b: 2 })
      first.withValues({ a: 3, c: 4 }).info('m', { b: 5, d: 6 })
      first.info('m')
    })
    assert.equal(text, '"m" a=3 c=4 b=5 d=6\n"m" a=1 b=2\n')
  })
})

describe('Redacted value in the log', () => {
  it('is masked unless it is requested explicitly', () => {
    const secret = new Redacted('s3cret')
    assert.equal(secret.reveal(), 's3cret')
    assert.equal(`${String(secret)} ${JSON.stringify({ secret })}`, '--- REDACTED --- {"secret":"--- REDACTED ---"}')
    assert.doesNotMatch(inspect(secret, { showHidden: true, depth: 9 }), /s3cret/)
    assert.deepEqual(Object.entries(secret), [])
  })
})

describe('log output', () => {
  it('combines the lines of one event loop turn into one write', async () => {
    const { log, tape } = create()
    for (let line = 0; line < 100; line++) log.logger.info('line')
    assert.equal(tape.writes, 0)
    await new Promise<void>((resolve) => process.nextTick(resolve))
    assert.equal(tape.writes, 1)
    assert.equal(tape.text.split('\n').length, 101)
  })

  it('limits the size of a combined write', () => {
    const { log, tape } = create()
    log.logger.info('x'.repeat(100_000))
    assert.equal(tape.writes, 1)
  })

  it('goes to the error stream for errors if there is an error stream', async () => {
    const errorStream = createTape()
    const { log, tape } = create({ errorStream })
    log.logger.info('fine')
    log.logger.error(undefined, 'broken')
    await log.flush()
    assert.match(tape.text, /"fine"\n$/)
    assert.match(errorStream.text, /"broken"\n$/)
    assert.equal(tape.writes + errorStream.writes, 2)
  })

  it('is complete when flush() resolves', async () => {
    const pending: (() => void)[] = []
    const { log } = create({ stream: { write: (_text, done) => pending.push(done) } })
    log.logger.info('a')
    let flushed = false
    const flushing = log.flush().then(() => (flushed = true))
    await new Promise<void>((resolve) => setImmediate(resolve))
    assert.equal(flushed, false)
    pending[0]!()
    await flushing
    await log.flush()
  })

  it('drops lines of a blocked stream, and reports how many', async () => {
    const pending: (() => void)[] = []
    let text = ''
    const stream: LogStream = {
      write(chunk, done) {
        text += chunk
        pending.push(done)
      },
    }
    const { log } = create({ stream })
    for (let line = 0; line < 200; line++) log.logger.info('x'.repeat(100_000))
    assert.ok(pending.length < 100)
    const kept = pending.length
    for (const done of pending.splice(0)) done()
    log.logger.info('again')
    const flushed = log.flush()
    for (const done of pending.splice(0)) done()
    await flushed
    assert.ok(text.includes(`"Dropped log lines because the stream was too slow" count=${200 - kept}\n`))
    assert.match(text, /"again"\n$/)
  })
})
