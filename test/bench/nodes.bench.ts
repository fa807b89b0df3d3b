/**
 * Simulated nodes: a whole cluster in one process, its objects on disk, until all nodes are ready, until all pods run, and
 * until they are gone again. kwok's own measure is 60 s for 5,000 nodes and 60 s for 10,000 pods.
 */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import type { Bench } from './bench.ts'
import { type Figures, toTable } from './table.ts'

/** `NODES=10000 PODS=100000 npm run bench -- nodes` for more. */
const { NODES: nodes = '5000', PODS: pods = '10000' } = process.env
const COLUMNS = ['', 'seconds', 'CPU seconds', 'resident MB']

export const bench: Bench = {
  about: `${nodes} nodes, ${pods} pods: server, controllers, scheduler and nodes in one process`,
  async run() {
    return [
      toTable({ title: 'with events, as kubelets write them', columns: COLUMNS, rows: await play('events') }),
      toTable({ title: 'without events', columns: COLUMNS, rows: await play('none') }),
    ]
  },
}

interface Told {
  readonly what: string
  readonly seconds: number
  readonly cpuSeconds: number
  readonly residentMb: number
}

async function play(events: 'events' | 'none'): Promise<Figures['rows']> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-nodes-bench-'))
  const worker = fileURLToPath(new URL('nodes.worker.ts', import.meta.url))
  const args = ['--max-old-space-size=16384', worker, `sqlite:${join(folder, 'store.db')}`, nodes, pods, events]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const rows: { name: string; values: number[] }[] = []
    for await (const line of createInterface({ input: child.stdout })) {
      const { what, seconds, cpuSeconds, residentMb } = JSON.parse(line) as Told
      rows.push({ name: what, values: [seconds, cpuSeconds, residentMb] })
    }
    return rows
  } finally {
    child.kill()
    await rm(folder, { recursive: true, force: true })
  }
}
