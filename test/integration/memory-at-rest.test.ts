/** Tests that an idle server releases the memory that it needed under load. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'

import { createVirtualClock } from '#lib/clock.ts'
import { startControlPlane } from '#testing/control-plane.ts'

const MB = 1 << 20

/** Says how many bytes went back when others that lie between them are still needed. */
const FREES_MUCH = `
  import { thisProcess } from '#lib/process/tidy-memory.ts'
  const holder = thisProcess()
  const kept = []
  let dropped = []
  for (let at = 0; at < 30_000; at++) (at % 50 === 0 ? kept : dropped).push(Buffer.allocUnsafeSlow(4096).fill(1))
  dropped = []
  while (process.memoryUsage().arrayBuffers > 8 * ${MB}) {
    holder.collect()
    await new Promise((done) => setTimeout(done, 20))
  }
  const before = holder.ownBytes()
  holder.giveBack()
  console.log(before - holder.ownBytes(), kept.length)
`

/** Says how many KB of files it has mapped before and after, and that all goes on. */
const USES_LITTLE = `
  import { readFileSync } from 'node:fs'
  import { thisProcess } from '#lib/process/tidy-memory.ts'
  const ofFiles = () => /^RssFile:\\s+(\\d+) kB$/m.exec(readFileSync('/proc/self/status', 'latin1'))[1]
  const holder = thisProcess()
  const before = ofFiles()
  holder.giveBack()
  console.log(before, ofFiles(), JSON.parse(JSON.stringify([new Intl.NumberFormat('de').format(1e6)]))[0])
`

async function run(script: string): Promise<string[]> {
  const args = ['--expose-gc', '--input-type=module-typescript', '--eval', script]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname })
  return stdout.trim().split(' ')
}

const { glibcVersionRuntime } = (process.report.getReport() as { header: { glibcVersionRuntime?: string } }).header
const skip = glibcVersionRuntime === undefined && 'the libc here is not glibc, which is the one that is asked'

describe('idle API server', () => {
  it('returns freed memory to the operating system', { skip }, async () => {
    const [returned = 0] = (await run(FREES_MUCH)).map(Number)
    assert.ok(returned > 60 * MB, `${returned} bytes of some 115 MB`)
  })

  it('unmaps unused pages of its program, and continues to work', { skip }, async () => {
    const [before = '', after = '', said] = await run(USES_LITTLE)
    assert.ok(Number(after) < Number(before) / 2, `${before} KB before, ${after} after`)
    assert.equal(said, '1.000.000')
  })

  it('evicts responses and watch frames that are not used again', async () => {
    const clock = createVirtualClock()
    await using plane = await startControlPlane({ clock })
    const { memos } = plane.running.server.registry.services
    const memo = new Map<string, unknown>()
    memos.keep(memo, 'frame', { value: 'x', bytes: MB })
    await clock.advance(60_000)
    assert.equal(memo.size, 0)
  })
})
