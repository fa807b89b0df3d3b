/**
 * Worker thread that floods the server as one user: each of many connections sends its next request as soon as the last
 * is answered. Reports counts.
 */
import { parentPort, workerData } from 'node:worker_threads'

import type { FloodPlan } from './flood.bench.ts'
import { encodeRequest, openConnection } from './http-load.ts'

const { server, connections, paths, headers } = workerData as FloodPlan
const counts: Record<number, number> = {}
const requests = paths.map((path) => encodeRequest({ path, headers }))

async function flood(first: number): Promise<void> {
  const { send } = await openConnection(server)
  for (let turn = first; ; turn++) {
    const { status } = await send(requests[turn % requests.length] as Buffer)
    counts[status] = (counts[status] ?? 0) + 1
  }
}

for (let at = 0; at < connections; at++) void flood(at).catch(() => (counts[0] = (counts[0] ?? 0) + 1))
parentPort?.on('message', () => parentPort?.postMessage(counts))
