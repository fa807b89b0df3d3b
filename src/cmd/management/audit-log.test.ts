import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { Collector } from '#kits/cmd/run-program.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'
import { ProgramError } from '#lib/program.ts'

import { type AuditLog, openAuditLog } from './audit-log.ts'

const FLAGS = { 'audit-log-path': '', 'audit-log-maxsize': 1, 'audit-log-maxbackup': 2, 'audit-log-maxage': 0 }

describe('audit log of the management server', () => {
  const clock = createVirtualClock()
  const stdout = new Collector()
  const errors = new Collector()
  const { logger: log } = createLog({ clock, stream: errors, errorStream: errors })
  const open = (path: string, flags: Partial<typeof FLAGS> = {}): Promise<AuditLog> =>
    openAuditLog({ flags: { ...FLAGS, ...flags }, defaultPath: path, cwd: '/', stdout, clock, log })

  it('writes a JSON line for each event to a file with mode 600, and rotates it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'audit-log-'))
    try {
      const path = join(folder, 'audit.log')
      const audit = await open(path)
      const event = { route: '/k8s/clusters/:cluster/*', cluster: 'c-1', user: 'u-jané', filler: 'x'.repeat(10_000) }
      for (let n = 0; n < 450; n++) audit.write({ ...event, n })
      await audit.close()
      const files = readdirSync(folder)
      assert.equal(files.length, 3, files.join())
      assert.equal(statSync(path).mode & 0o777, 0o600)
      const last = readFileSync(path, 'utf8').trimEnd().split('\n').at(-1) ?? ''
      const { time, n, ...found } = JSON.parse(last) as { time: string; n: number }
      assert.deepEqual([time, n, found], ['2026-01-01T00:00:00.000Z', 449, event])
      assert.equal(audit.lost, 0)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('writes to standard output with --audit-log-path=-', async () => {
    const audit = await open('/nowhere', { 'audit-log-path': '-' })
    audit.write({ route: '/ping' })
    assert.match(stdout.text, /^\{"time":"2026-01-01T00:00:00.000Z","route":"\/ping"\}\n$/)
  })

  it(
    'counts lines that it cannot write to a full disk, and logs the first failure',
    { skip: process.platform !== 'linux' },
    async () => {
      const audit = await open('/dev/full')
      for (let n = 0; n < 3; n++) audit.write({ n })
      await audit.close()
      assert.equal(audit.lost, 3)
      assert.equal(errors.text.split('Failed to write the audit log').length, 2, errors.text)
    },
  )

  it('refuses a file that cannot be written', async () => {
    await assert.rejects(open('/dev/null/audit.log'), ProgramError)
  })
})
