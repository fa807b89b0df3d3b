/**
 * Benchmarks an idle cluster: processor time and memory of `hyperkube up` with three simulated nodes and no requests.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'

import type { Bench } from './bench.ts'
import { pause } from './http-load.ts'
import { proportionalMb, usageOfAll } from './server-under-test.ts'
import { figure } from './table.ts'
import { startUp } from './up-under-test.ts'

/** `IDLE_SECONDS=60 npm run bench -- idle` for a first look. */
const { IDLE_SECONDS = '300' } = process.env
const NODES = 3
/** The work after a start has ended by then. */
const SETTLE_MS = 30_000
const LOOK_MS = 5000

export const bench: Bench = {
  about: `${NODES} simulated nodes, nothing asked for ${IDLE_SECONDS} s, from ${SETTLE_MS / 1000} s after all were ready on`,
  async run() {
    const folder = await mkdtemp(join(tmpdir(), 'hyperkube-idle-bench-'))
    const { pids, nodesReady, stop } = await startUp(folder, NODES)
    try {
      await nodesReady()
      await pause(SETTLE_MS)
      const startMs = performance.now()
      const before = await usageOfAll(pids)
      let mostMb = before.residentMb
      while (performance.now() - startMs < Number(IDLE_SECONDS) * 1000) {
        await pause(LOOK_MS)
        mostMb = Math.max(mostMb, (await usageOfAll(pids)).residentMb)
      }
      const after = await usageOfAll(pids)
      const share = (100 * (after.cpuMs - before.cpuMs)) / (performance.now() - startMs)
      const rows = [
        ['CPU, % of one core', figure(share), '1'],
        ['seconds measured', figure((performance.now() - startMs) / 1000), '300'],
        ['resident MB at the end', figure(after.residentMb), '150'],
        ['of it without file pages, MB', figure(after.anonymousMb), ''],
        ['of it proportional (PSS), MB', figure(await proportionalMb(pids)), '150'],
        ['resident MB at most', figure(mostMb), '150'],
      ]
      return [{ title: 'a cluster at rest', columns: ['', 'measured', 'budget'], rows }]
    } finally {
      await stop()
      await rm(folder, { recursive: true, force: true })
    }
  },
}
