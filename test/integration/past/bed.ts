/** Starts an API server with a virtual clock for tests of the paths below `/past`, and sends it requests as any user. */
import assert from 'node:assert/strict'

import type { User } from '#auth/user.ts'
import { createVirtualClock, realClock, sleep, type VirtualClock } from '#lib/clock.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import { yieldToEventLoop } from '#lib/time-slicing.ts'
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from '#testing/control-plane.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- answers are looked into, not relied upon
export type Json = any

export const JSON_TYPE = 'application/json'
export const PROTOBUF = 'application/vnd.kubernetes.protobuf'
export const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'
export const METADATA = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
export const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'

export const ADMIN: User = { name: 'admin', uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }

export interface Reply {
  readonly status: number
  readonly bytes: Buffer
  readonly text: string
  readonly json: () => Json
}

export interface Sent {
  readonly as?: User
  readonly method?: string
  readonly accept?: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** A watch whose events arrive while virtual time passes. */
export interface OpenWatch {
  readonly status: number
  /** All that has arrived so far. */
  bytes(): Buffer
  /** Resolves when the server or `end` has ended the watch. */
  readonly ended: Promise<void>
  /** Ends the watch; resolves when the server has noticed. */
  end(): Promise<void>
}

export interface Bed extends AsyncDisposable {
  readonly plane: ControlPlane
  readonly clock: VirtualClock
  send(path: string, sent?: Sent): Promise<Reply>
  /** A request that must succeed; returns its object. */
  must(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Json>
  watch(path: string, sent?: Sent): Promise<OpenWatch>
  /** The revision of the store. */
  revision(): Promise<number>
  /** Waits until nothing is left to do at this time. */
  settle(): Promise<void>
  /** Waits until the history file has everything, and drops the past from the store. */
  leaveToHistory(): Promise<void>
}

const MAX_BYTES = 64 << 20
/** The turns after which requests and followers without timers are done. */
const TURNS = 12

/** A store that keeps its whole history, unless the settings have another window. */
export async function startBed({ settings, ...options }: ControlPlaneOptions = {}): Promise<Bed> {
  const clock = createVirtualClock()
  const kept = { 'etcd-compaction-interval': 0, ...settings }
  const plane = await startControlPlane({ clock, ...options, settings: kept })
  const request = ({ as = ADMIN, ...sent }: Sent, path: string, signal?: AbortSignal): Promise<HttpResponse> => {
    const { method = 'GET', accept = JSON_TYPE, body, headers } = sent
    const content = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
    return plane.running.server.clientAs(as).request({
      method,
      url: 'https://localhost',
      path,
      headers: { accept, ...(body !== undefined && { 'content-type': JSON_TYPE }), ...headers },
      ...content,
      ...(signal !== undefined && { signal }),
    })
  }
  const send = async (path: string, sent: Sent = {}): Promise<Reply> => {
    const response = await request(sent, path)
    const bytes = await response.bytes(MAX_BYTES)
    const text = bytes.toString('latin1')
    return { status: response.status, bytes, text, json: () => JSON.parse(bytes.toString()) }
  }
  return {
    plane,
    clock,
    send,
    async must(method, path, body, headers = {}) {
      const reply = await send(path, { method, body, headers })
      assert.ok(reply.status < 300, `${method} ${path}: ${reply.status} ${reply.text.slice(0, 500)}`)
      return reply.json()
    },
    watch: async (path, sent = {}) => {
      const leaving = new AbortController()
      return follow(await request(sent, path, leaving.signal), leaving)
    },
    revision: () => plane.running.server.registry.services.backend.currentRevision(),
    settle: () => clock.advance(0),
    leaveToHistory: () => leaveToHistory(plane, clock),
    [Symbol.asyncDispose]: () => stop(plane, clock),
  }
}

async function leaveToHistory({ running: { server, history } }: ControlPlane, clock: VirtualClock): Promise<void> {
  const { backend } = server.registry.services
  const revision = await backend.currentRevision()
  // The thread of the history works in real time.
  for (let tries = 0; history.recordedUntil < revision; tries++) {
    assert.ok(tries < 1000, `the history has ${history.recordedUntil} of ${revision} revisions`)
    await clock.advance(300)
    await sleep(realClock, 5)
  }
  await backend.compact(await backend.currentRevision())
}

function follow(response: HttpResponse, leaving: AbortController): OpenWatch {
  const pieces: Buffer[] = []
  const reading = (async () => {
    for await (const piece of response.body) pieces.push(piece)
  })().catch((error: unknown) => {
    if (!leaving.signal.aborted) throw error
  })
  return {
    status: response.status,
    bytes: () => Buffer.concat(pieces),
    ended: reading,
    async end() {
      leaving.abort()
      await reading
      await turns()
    },
  }
}

/** Lets everything run that needs no time. */
export async function turns(count: number = TURNS): Promise<void> {
  for (let turn = 0; turn < count; turn++) await yieldToEventLoop()
}

/** Stopping may need virtual time. */
async function stop(plane: ControlPlane, clock: VirtualClock): Promise<void> {
  const state = { isOver: false }
  const stopping = plane.stop().finally(() => (state.isOver = true))
  while (!state.isOver) await clock.advance(50)
  await stopping
}

/** A path below `/past`. */
export function past(moment: string, path: string): string {
  return `/past/${encodeURIComponent(moment)}${path}`
}
