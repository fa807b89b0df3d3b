/**
 * Asks a server again and again whether it is alive, and tells how long the slowest answer took. In a thread of its own: what
 * keeps the bench busy would be taken for the server's slowness.
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
