import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'

import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'

import { openRotatingFile, type RotatingFileOptions } from './rotating-file.ts'

const DAY_MS = 86_400_000

describe('rotating audit log file', () => {
  let root = ''
  before(() => {
    root = mkdtempSync(join(tmpdir(), 'rotating-'))
  })
  after(() => rmSync(root, { recursive: true, force: true }))

  let places = 0
  function place(): { readonly dir: string; readonly path: string; readonly clock: VirtualClock } {
    const dir = join(root, String(places++))
    return { dir, path: join(dir, 'audit.log'), clock: createVirtualClock(Date.UTC(2026, 0, 2, 3, 4, 5, 678)) }
  }
  const options = (clock: VirtualClock, more: Partial<RotatingFileOptions> = {}): RotatingFileOptions => ({
    clock,
    maxBytes: 10,
    maxAgeDays: 0,
    maxBackups: 0,
    compress: false,
    ...more,
  })

  it('is readable by its owner only, and continues after a restart', async () => {
    const { path, clock } = place()
    for (const line of ['a\n', 'b\n']) {
      const file = await openRotatingFile(path, options(clock))
      await file.write(line)
      await file.close()
    }
    assert.equal(readFileSync(path, 'utf8'), 'a\nb\n')
    assert.equal(statSync(path).mode & 0o777, 0o600)
  })

  it('is not rotated if it is a named pipe', async (t) => {
    const { path, dir, clock } = place()
    mkdirSync(dir)
    execFileSync('mkfifo', [path])
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    t.after(() => closeSync(reader))
    const file = await openRotatingFile(path, options(clock))
    for (let at = 0; at < 5; at++) await file.write('12345678\n')
    await file.write('longer than the limit of ten bytes\n')
    await file.close()
    assert.deepEqual([readdirSync(dir), statSync(path).isFIFO()], [['audit.log'], true])
  })

  it('contains complete lines in the order of their writes', async () => {
    const { path, dir, clock } = place()
    const file = await openRotatingFile(path, options(clock, { maxBytes: 100 }))
    const lines = Array.from({ length: 500 }, (_, at) => `line ${at}\n`)
    await Promise.all(lines.map((line) => file.write(line)))
    await file.close()
    const names = readdirSync(dir)
      .filter((name) => name !== 'audit.log')
      .sort()
    const all = [...names, 'audit.log'].map((name) => readFileSync(join(dir, name), 'latin1'))
    assert.equal(all.join(''), lines.join(''))
    assert.ok(all.every((text) => text.length <= 100 && text.endsWith('\n')))
  })

  it('is rotated before a line that does not fit, and the backup is named after the time in UTC', async () => {
    const { path, dir, clock } = place()
    const file = await openRotatingFile(path, options(clock))
    await file.write('12345678\n')
    await file.write('\n')
    await file.write('next\n')
    await file.close()
    assert.deepEqual(readdirSync(dir).sort(), ['audit-2026-01-02T03-04-05.678.log', 'audit.log'])
    assert.equal(readFileSync(path, 'utf8'), 'next\n')
  })

  it('is never rotated without a size limit', async () => {
    const { path, dir, clock } = place()
    const file = await openRotatingFile(path, options(clock, { maxBytes: 0 }))
    for (let at = 0; at < 50; at++) await file.write('12345678\n')
    await file.close()
    assert.deepEqual(readdirSync(dir), ['audit.log'])
  })

  it('rejects a line that exceeds the size limit and accepts the next', async () => {
    const { path, clock } = place()
    const file = await openRotatingFile(path, options(clock))
    await assert.rejects(file.write('12345678901'), /^Error: write length 11 exceeds maximum file size 10$/)
    await file.write('ok\n')
    await file.close()
    assert.equal(readFileSync(path, 'utf8'), 'ok\n')
  })

  it('keeps the youngest backups and removes those beyond their maximum age', async () => {
    const { path, dir, clock } = place()
    const file = await openRotatingFile(path, options(clock, { maxBackups: 2, maxAgeDays: 3 }))
    writeFileSync(join(dir, 'audit-other.log'), 'not ours')
    for (let day = 0; day < 4; day++) {
      await file.write(`day ${day}\n 8\n`)
      await clock.advance(DAY_MS)
    }
    await file.close()
    const names = (): string[] =>
      readdirSync(dir)
        .filter((name) => name !== 'audit.log')
        .sort()
    assert.deepEqual(names(), [
      'audit-2026-01-04T03-04-05.678.log',
      'audit-2026-01-05T03-04-05.678.log',
      'audit-other.log',
    ])
    await clock.advance(2 * DAY_MS)
    await (await openRotatingFile(path, options(clock, { maxAgeDays: 3 }))).close()
    assert.deepEqual(names(), ['audit-2026-01-05T03-04-05.678.log', 'audit-other.log'])
  })

  it('has compressed backups on request', async () => {
    const { path, dir, clock } = place()
    const file = await openRotatingFile(path, options(clock, { compress: true }))
    await file.write('12345678\n')
    await file.write('next one\n')
    await file.close()
    const name = 'audit-2026-01-02T03-04-05.678.log.gz'
    assert.deepEqual(readdirSync(dir).sort(), [name, 'audit.log'])
    assert.equal(gunzipSync(readFileSync(join(dir, name))).toString(), '12345678\n')
    assert.equal(statSync(join(dir, name)).mode & 0o777, 0o600)
  })

  it('continues after another process truncates or removes the file', async () => {
    const { path, clock } = place()
    const file = await openRotatingFile(path, options(clock))
    await file.write('12345678\n')
    truncateSync(path)
    await file.write('after\n')
    rmSync(path)
    await file.write('12345678\n')
    await file.close()
    assert.equal(readFileSync(path, 'utf8'), '12345678\n')
  })

  it('reports a full disk, and continues when space is free again', { skip: !existsSync('/dev/full') }, async () => {
    const file = await openRotatingFile('/dev/full', options(createVirtualClock(), { maxBytes: 0 }))
    const outcomes = await Promise.allSettled([file.write('a\n'), file.write('b\n')])
    assert.deepEqual(
      outcomes.map((one) => (one.status === 'rejected' ? (one.reason as NodeJS.ErrnoException).code : 'written')),
      ['ENOSPC', 'ENOSPC'],
    )
    await file.close()
  })
})
