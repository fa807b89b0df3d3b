/**
 * Worker thread that probes a server repeatedly and reports the slowest response time. It has its own thread, so that a
 * busy benchmark does not add to the measured time.
 */
import { performance } from 'node:perf_hooks'
import { parentPort, workerData } from 'node:worker_threads'

import { encodeRequest, openConnection, pause } from './http-load.ts'
import type { Target } from './up-under-test.ts'

const EVERY_MS = 100

const target = workerData as Target
const request = encodeRequest({ path: '/livez' })
const over = new AbortController()
parentPort?.once('message', () => over.abort())

let slowestMs = 0
let connection = await openConnection(target).catch(() => undefined)
while (!over.signal.aborted) {
  const startMs = performance.now()
  connection ??= await openConnection(target).catch(() => undefined)
  await connection?.send(request).catch(() => (connection = undefined))
  if (connection !== undefined) slowestMs = Math.max(slowestMs, performance.now() - startMs)
  await pause(EVERY_MS)
}
connection?.socket.destroy()
parentPort?.postMessage(slowestMs)
