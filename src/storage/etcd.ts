/** The etcd backend, for high availability: any number of API servers on one etcd cluster, 3.4 or newer. */
import { type Clock, sleep } from '#lib/clock.ts'
import type { GrpcTarget } from '#lib/grpc/connection.ts'
import type { ClientTls } from '#lib/http/dial.ts'
import type { Random } from '#lib/random.ts'

import { type Backend, StorageError } from './backend.ts'
import { EtcdBackend } from './etcd/backend.ts'

export interface EtcdOptions {
  readonly clock: Clock
  readonly random: Random
  /** Receives messages for operators. */
  readonly log?: (message: string) => void
  /** The history window; default 5 minutes. Infinity: never compacts by itself. */
  readonly historyMs?: number
  readonly progressEveryMs?: number
  /** The timeout of a call, including fail-over; default 10 s. */
  readonly timeoutMs?: number
  /** For `https` URLs: the authority of the members, and the client certificate and key, as PEM. */
  readonly tls?: ClientTls
  /** For a cluster with authentication; the user must be allowed to read, write and watch every key. */
  readonly credentials?: { readonly user: string; readonly password: string }
}

const TIMEOUT_MS = 10_000
/**
 * Opening may take twice as long as a call, by default 20 s as upstream: etcd and its servers are often started
 * together.
 */
const OPENING_CALLS = 2
const OPENING_PAUSE_MS = 100
const DEFAULT_PORT = 2379

/**
 * Opens the store of the cluster with these client URLs. Throws TypeError for other URLs; fails with `unavailable` if
 * no member answers.
 */
export async function openEtcdBackend(urls: readonly string[], options: EtcdOptions): Promise<Backend> {
  const { log = () => undefined, timeoutMs = TIMEOUT_MS } = options
  const targets = urls.map((url) => parseUrl(url.trim(), options.tls))
  const backend = new EtcdBackend({ ...options, log, timeoutMs, targets })
  try {
    await untilAnswered(backend, options.clock, OPENING_CALLS * timeoutMs)
    return backend
  } catch (error) {
    await backend.close()
    throw error
  }
}

async function untilAnswered(backend: Backend, clock: Clock, limitMs: number): Promise<void> {
  const deadlineMs = clock.elapsed() + limitMs
  for (;;) {
    try {
      await backend.currentRevision()
      return
    } catch (error) {
      const isPassing = error instanceof StorageError && (error.code === 'unavailable' || error.code === 'timeout')
      if (!isPassing || clock.elapsed() >= deadlineMs) throw error
      await sleep(clock, OPENING_PAUSE_MS)
    }
  }
}

function parseUrl(text: string, tls: ClientTls = {}): GrpcTarget {
  const url = URL.parse(text)
  const isTls = url?.protocol === 'https:'
  if (url === null || !(isTls || url.protocol === 'http:') || url.hostname === '' || url.pathname !== '/') {
    throw new TypeError(`"${text}" is not the URL of an etcd member; give it as "https://HOST:2379"`)
  }
  if (url.username !== '' || url.password !== '') {
    throw new TypeError(`The URL of etcd member "${url.host}" must not contain a user; give it separately`)
  }
  const host = url.hostname.replaceAll(/[[\]]/g, '')
  const port = url.port === '' ? DEFAULT_PORT : Number(url.port)
  return isTls ? { host, port, tls } : { host, port }
}
