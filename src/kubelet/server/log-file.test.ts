import assert from 'node:assert/strict'
import { appendFile, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

import { realClock } from '#lib/clock.ts'

import type { LogOptions } from '../pod/log-options.ts'
import { sendLog } from './log-file.ts'

const dir = await mkdtemp(join(tmpdir(), 'hyperkube-log-'))
after(() => rm(dir, { recursive: true }))

const OPTIONS: LogOptions = {
  previous: false,
  follow: false,
  timestamps: false,
  tailLines: undefined,
  sinceMs: undefined,
  limitBytes: Infinity,
}
const at = (second: number): string => `2026-11-15T10:13:0${second}.271175292Z`
const LINES = [
  `${at(1)} stdout F one`,
  `${at(2)} stderr P tw`,
  `${at(3)} stderr F o`,
  `${at(4)} stdout F `,
  `${at(5)} stdout F five words in a line`,
  '',
].join('\n')

async function read(options: Partial<LogOptions>, text = LINES): Promise<string> {
  const path = join(dir, 'read.log')
  await writeFile(path, text)
  const pieces: Buffer[] = []
  const source = { path, clock: realClock, isGrowing: () => false, signal: new AbortController().signal }
  await sendLog(source, { ...OPTIONS, ...options }, { write: async (piece) => pieces.push(piece) > 0 })
  return Buffer.concat(pieces).toString()
}

test('partial lines in the file of a container log are joined', async () => {
  assert.equal(await read({}), 'one\ntwo\n\nfive words in a line\n')
})

test('each line of a container log with timestamps begins with one timestamp', async () => {
  const text = await read({ timestamps: true })
  assert.equal(text.split('\n')[1], `${at(2)} two`)
  assert.equal(text.split('\n').length, 5)
})

test('tailLines, sinceTime and limitBytes limit the output of a container log', async () => {
  assert.equal(await read({ tailLines: 1 }), 'five words in a line\n')
  assert.equal(await read({ tailLines: 0 }), '')
  assert.equal(await read({ tailLines: 100 }), await read({}))
  assert.equal(await read({ sinceMs: Date.parse(at(4)) }), '\nfive words in a line\n')
  assert.equal(await read({ limitBytes: 5 }), 'one\nt')
})

test('tailLines of a container log does not include lines written meanwhile', async () => {
  const path = join(dir, 'meanwhile.log')
  await writeFile(path, LINES)
  const pieces: string[] = []
  const source = { path, clock: realClock, isGrowing: () => true, signal: new AbortController().signal }
  const write = async (piece: Buffer): Promise<boolean> => {
    if (pieces.push(piece.toString()) === 1) await appendFile(path, `${at(6)} stdout F more\n`)
    return true
  }
  await sendLog(source, { ...OPTIONS, tailLines: 1 }, { write })
  assert.equal(pieces.join(''), 'five words in a line\n')
})

test('tailLines of a container log spans blocks, and an incomplete line is returned later', async () => {
  const many = Array.from({ length: 20_000 }, (_, n) => `${at(1)} stdout F line ${n}\n`).join('')
  assert.equal(await read({ tailLines: 2 }, `${many}${at(2)} stdout F not yet`), 'line 19998\nline 19999\n')
  assert.equal((await read({}, many)).split('\n').length, 20_001)
})

test('a followed container log continues after a rotation', async () => {
  const path = join(dir, 'follow.log')
  await writeFile(path, `${at(1)} stdout F first\n`)
  let isGrowing = true
  let received = ''
  const steps: Readonly<Record<string, () => Promise<void>>> = {
    'first\n': () => appendFile(path, `${at(2)} stdout F second\n`),
    'first\nsecond\n': async () => {
      await appendFile(path, `${at(3)} stdout F last of the old\n`)
      await rename(path, `${path}.old`)
      await writeFile(path, `${at(4)} stdout F third\n`)
    },
    'first\nsecond\nlast of the old\nthird\n': async () => void (isGrowing = false),
  }
  const sink = {
    async write(piece: Buffer): Promise<boolean> {
      received += piece.toString()
      await steps[received]?.()
      return true
    },
  }
  const source = { path, clock: realClock, isGrowing: () => isGrowing, signal: new AbortController().signal }
  await sendLog(source, { ...OPTIONS, follow: true }, sink)
  assert.equal(received, 'first\nsecond\nlast of the old\nthird\n')
})
