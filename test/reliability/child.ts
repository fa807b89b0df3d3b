/**
 * The child process with the store, which the reliability harness kills: a backend, optionally with a seeded defect, a
 * watch cache and a socket. It reports its start time when it serves, and exits when its parent exits or closes stdin.
 * Usage: child.ts SETTINGS (JSON of ChildSettings)
 */
import { createServer, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'

import { realClock } from '#lib/clock.ts'
import { createSeededRandom, secureRandom } from '#lib/random.ts'
import { StorageError, type Backend } from '#storage/backend.ts'

import { startCache } from './cache-watch.ts'
import { withDefect } from './defects.ts'
import type { Store } from './store.ts'
import { createTextStore } from './text-store.ts'
import { type ChildSettings, hearLines, sendLine, type ToChild, type WireError } from './wire.ts'

/** The phases of the start, in milliseconds since the process began. */
const started: Record<string, number> = { loadedMs: performance.now() }
const settings = JSON.parse(process.argv[2] ?? '{}') as ChildSettings
const backend = withDefect(await open(settings), settings.defect, createSeededRandom(settings.seed))
started['openMs'] = performance.now()
const cached = await startCache(backend)
started['servingMs'] = performance.now()
started['cpuMs'] = process.cpuUsage().user / 1000
const store = createTextStore(backend, cached)
const server = createServer((socket) => serve(store, socket))
server.listen(settings.socket, () => process.stdout.write(`${JSON.stringify(started)}\n`))
process.stdin.resume().on('end', () => void stop())

async function open({ location, ballastBytes }: ChildSettings): Promise<Backend> {
  const log = (message: string): void => void process.stderr.write(`${message}\n`)
  const options = { clock: realClock, random: secureRandom, log, historyMs: Infinity }
  if (!location.startsWith('sqlite:')) {
    const { openEtcdBackend } = await import('#storage/etcd.ts')
    return openEtcdBackend(location.split(','), { ...options, progressEveryMs: 100, timeoutMs: 5000 })
  }
  const { openSqliteBackend } = await import('#storage/sqlite.ts')
  return openSqliteBackend(location.slice('sqlite:'.length), {
    ...options,
    progressEveryMs: 100,
    ...(ballastBytes !== undefined && { ballastBytes }),
  })
}

async function stop(): Promise<void> {
  server.close()
  await cached.cache.close()
  await backend.close()
  process.exit(0)
}

function serve(store: Store, socket: Socket): void {
  const watches = new Map<number, AbortController>()
  socket.on('error', () => undefined)
  socket.on('close', () => {
    for (const watch of watches.values()) watch.abort()
  })
  hearLines(socket, (heard) => {
    const message = heard as ToChild
    const { id } = message
    if ('cancel' in message) return watches.get(id)?.abort()
    const fail = (cause: unknown): void => sendLine(socket, { id, error: toWire(cause) })
    if ('watch' in message) {
      const controller = new AbortController()
      watches.set(id, controller)
      void follow(store, message, { socket, signal: controller.signal })
        .catch(fail)
        .finally(() => watches.delete(id))
      return
    }
    store.call(message.method, message.argument as never).then((result) => sendLine(socket, { id, result }), fail)
  })
}

async function follow(
  store: Store,
  { id, watch }: Extract<ToChild, { watch: unknown }>,
  { socket, signal }: { readonly socket: Socket; readonly signal: AbortSignal },
): Promise<void> {
  for await (const batch of store.watch(watch, signal)) sendLine(socket, { id, batch })
  sendLine(socket, { id, end: true })
}

function toWire(cause: unknown): WireError {
  if (cause instanceof StorageError) return { code: cause.code, message: cause.message }
  // A defect of ours: let it be seen, and count as an answer that never came.
  process.stderr.write(`${cause instanceof Error ? cause.stack : String(cause)}\n`)
  return { code: 'unavailable', message: String(cause) }
}
