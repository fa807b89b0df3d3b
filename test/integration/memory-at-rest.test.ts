/** A server that nobody asks anything holds nothing that only its busiest moment needed. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'

import { createVirtualClock } from '#lib/clock.ts'
import { startControlPlane } from '#testing/control-plane.ts'

const MB = 1 << 20

/** Says how many bytes went back when others that lie between them are still needed. */
const FREES_MUCH = `
  import { thisProcess } from '#lib/tidy-memory.ts'
  const holder = thisProcess()
  const kept = []
  let dropped = []
  for (let at = 0; at < 30_000; at++) (at % 50 === 0 ? kept : dropped).push(Buffer.allocUnsafeSlow(4096).fill(1))
  dropped = []
  while (process.memoryUsage().arrayBuffers > 8 * ${MB}) {
    holder.collect()
    await new Promise((done) => setTimeout(done, 20))
  }
  const before = holder.residentBytes()
  holder.giveBack()
  console.log(before - holder.residentBytes(), kept.length)
`

describe('a server at rest', () => {
  it('returns to the system what was freed', async (t) => {
    const { glibcVersionRuntime } = (process.report.getReport() as { header: { glibcVersionRuntime?: string } }).header
    if (glibcVersionRuntime === undefined) return t.skip('the libc here is not glibc, which is the one that is asked')
    const args = ['--expose-gc', '--input-type=module-typescript', '--eval', FREES_MUCH]
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname })
    const [returned = 0] = stdout.split(' ').map(Number)
    assert.ok(returned > 60 * MB, `${returned} bytes of some 115 MB`)
  })

  it('forgets answers and frames that nobody has asked for again', async () => {
    const clock = createVirtualClock()
    await using plane = await startControlPlane({ clock })
    const { memos } = plane.running.server.registry.services
    const memo = new Map<string, unknown>()
    memos.keep(memo, 'frame', { value: 'x', bytes: MB })
    await clock.advance(60_000)
    assert.equal(memo.size, 0)
  })
})
