/**
 * Lists objects for pages and sends their changes over a WebSocket, in the form of a Kubernetes list and watch. A watch from a
 * version of another process, or from before a deletion, gets the error 410: the page lists again.
 */
import { createHash } from 'node:crypto'

import type { Kind } from '#apis/kinds.ts'
import type { Clock } from '#lib/clock.ts'
import { acceptWebSocket, type WebSocketConnection } from '#lib/http/websocket.ts'
import { kindKey } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { badRequestError, failure } from '#meta/status-errors.ts'

import type { Memberships } from '../access/memberships.ts'
import type { ClusterUser } from '../links/link.ts'
import type { ManagementObjects } from '../objects.ts'
import type { Person } from '../person.ts'
import type { Reply, RouteCall } from '../port/route.ts'
import { canContinue, ChangedObjects, formatVersion, type ListVersion, parseVersion } from './changed-objects.ts'

export interface ObjectWatchesOptions {
  readonly objects: ManagementObjects
  readonly memberships: Pick<Memberships, 'userOfManagement'>
  readonly open: OpenWatches
}

/** The part of `OpenRequests` that watches use: it aborts the signal when the rights of the person end. */
interface OpenWatches {
  during(
    request: {
      readonly person: Person
      readonly user: ClusterUser
      readonly current: (person: Person) => ClusterUser | undefined
    },
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<void>
}

/** The objects of a kind that a route shows to a person. */
export interface ShownObjects<T extends KubeObject> {
  readonly kind: Kind<T>
  /** Also of an object that was deleted. */
  readonly isVisible: (object: T) => boolean
  readonly view: (object: T) => object
  /** Of the list. */
  readonly order?: (one: T, other: T) => number
}

type PersonCall = RouteCall & { readonly person: Person }

/** Clients send nothing. A client that answers no ping is gone. */
const LIMITS = { pingIntervalMs: 10_000, silenceLimitMs: 25_000, maxPayloadBytes: 4096 }
const MAX_SECONDS = 600

export class ObjectWatches {
  readonly #options: ObjectWatchesOptions
  readonly #process: string
  readonly #counts = new Map<string, { changes: number; deletions: number }>()

  constructor(options: ObjectWatchesOptions) {
    this.#options = options
    this.#process = options.objects.random.bytes(6).toString('hex')
  }

  /** Serves a list, or with `watch` in the query its changes. Throws StatusError. */
  async serve<T extends KubeObject>(call: PersonCall, shown: ShownObjects<T>): Promise<Reply> {
    if (!call.query.has('watch')) return { status: 200, body: this.#list(call.person, shown) }
    if (call.exchange.upgradeProtocol !== 'websocket') throw badRequestError('a watch needs a WebSocket')
    const { memberships, open } = this.#options
    const { person } = call
    const current = ({ user }: Person): ClusterUser => memberships.userOfManagement(user)
    await open.during({ person, user: current(person), current }, (signal) => this.#watch(call, shown, signal))
    return { served: 101 }
  }

  #list<T extends KubeObject>(person: Person, { kind, isVisible, view, order }: ShownObjects<T>): object {
    const metadata = { resourceVersion: formatVersion(this.#version(kind, person)) }
    const visible = this.#options.objects.list(kind).filter((object) => isVisible(object))
    const items = (order === undefined ? visible : visible.toSorted(order)).map((object) => view(object))
    return { apiVersion: `${kind.group}/${kind.version}`, kind: kind.listKind, metadata, items }
  }

  async #watch<T extends KubeObject>(
    { exchange, person, query }: PersonCall,
    { kind, isVisible, view }: ShownObjects<T>,
    allowed: AbortSignal,
  ): Promise<void> {
    const { objects } = this.#options
    const connection = await acceptWebSocket(exchange, { clock: objects.clock, ...LIMITS })
    const from = parseVersion(query.get('resourceVersion') ?? '')
    const now = this.#version(kind, person)
    if (!canContinue(from, now)) {
      await connection.send(JSON.stringify(GONE)).catch(() => undefined)
      return connection.close()
    }
    const changed = new ChangedObjects()
    const unlisten = objects.listen(kind, (object, isDeleted) => {
      if (isVisible(object)) changed.add(object, { type: isDeleted ? 'DELETED' : 'MODIFIED', object: view(object) })
    })
    // These are the objects that exist. The client has them if nothing has changed since its list.
    if (from.changes === now.changes) changed.clear()
    try {
      await sendChanges(connection, changed, { clock: objects.clock, seconds: secondsIn(query), allowed })
    } finally {
      unlisten()
    }
  }

  #version(kind: Kind, { user }: Person): ListVersion {
    const { groups } = this.#options.memberships.userOfManagement(user)
    const rights = createHash('sha256').update(groups.join('\n')).digest('hex').slice(0, 16)
    return { process: this.#process, ...this.#countsOf(kind), rights }
  }

  #countsOf(kind: Kind): { readonly changes: number; readonly deletions: number } {
    const known = this.#counts.get(kindKey(kind))
    if (known !== undefined) return { ...known }
    const counts = { changes: 0, deletions: 0 }
    this.#counts.set(kindKey(kind), counts)
    this.#options.objects.listen<KubeObject>(kind, (_object, isDeleted) => {
      counts.changes++
      if (isDeleted) counts.deletions++
    })
    return { ...counts }
  }
}

const GONE = {
  type: 'ERROR',
  object: failure({ code: 410, reason: 'Expired', message: 'the version of the list is too old: list again' }).status,
}

function secondsIn(query: URLSearchParams): number {
  const seconds = Number(query.get('timeoutSeconds') ?? MAX_SECONDS)
  return seconds > 0 && seconds < MAX_SECONDS ? seconds : MAX_SECONDS
}

interface Ending {
  readonly clock: Clock
  readonly seconds: number
  /** Aborted when the person may not watch any more. */
  readonly allowed: AbortSignal
}

/** Resolves when the connection or the time is over. A client that reads slowly gets the latest state of each object only. */
async function sendChanges(
  connection: WebSocketConnection,
  changed: ChangedObjects,
  { clock, seconds, allowed }: Ending,
): Promise<void> {
  const ended = new AbortController()
  const end = (): void => ended.abort()
  allowed.addEventListener('abort', end, { once: true })
  const timer = clock.after(seconds * 1000, end, { background: true })
  void connection.closed.then(end)
  void drop(connection).catch(end)
  const over = new Promise<void>((resolve) => ended.signal.addEventListener('abort', () => resolve(), { once: true }))
  try {
    while (!ended.signal.aborted) {
      const event = changed.next()
      if (event === undefined) await Promise.race([changed.changed(), over])
      else await connection.send(JSON.stringify(event)).catch(end)
    }
  } finally {
    timer.cancel()
    allowed.removeEventListener('abort', end)
    await connection.close()
  }
}

/** Reads what the client sends, so that its goodbye arrives. */
async function drop(connection: WebSocketConnection): Promise<void> {
  for await (const _ of connection) void _
}
