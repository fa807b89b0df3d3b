/**
 * What the runtime holds, by pod: one listing for the whole node, again and again. A runtime that tells what happens is
 * listened to, and then listed as a safety net only; others are listed every second.
 */
import { type Clock, sleep, type Timer } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'

import type { Container } from '../cri/container-messages.ts'
import type { Runtime } from '../cri/runtime.ts'
import type { PodSandbox } from '../cri/sandbox-messages.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import { LABELS } from './sandbox-config.ts'

export interface PodHeld {
  /** The newest first. */
  readonly sandboxes: readonly PodSandbox[]
  readonly containers: readonly Container[]
}

const RELIST_MS = 1000
/** While the runtime tells by itself. */
const SAFETY_MS = 10_000
const NOTHING: PodHeld = { sandboxes: [], containers: [] }

export class RuntimePods {
  readonly #runtime: Runtime
  readonly #clock: Clock
  readonly #log: Logger
  readonly #meters: KubeletMeters
  /** Told of pods in which something is different. */
  readonly #onChange: (uids: readonly string[]) => void
  readonly #ending = new AbortController()
  #held = new Map<string, PodHeld>()
  #isListening = false
  #timer: Timer | undefined
  #running: Promise<void> | undefined
  #isStale = false
  /** When the last listing began. */
  #beganMs: number | undefined
  /** How many listings were begun that have ended well. */
  rounds = 0
  /** When the last one did. */
  listedMs: number | undefined

  constructor(options: {
    readonly runtime: Runtime
    readonly clock: Clock
    readonly log: Logger
    readonly meters: KubeletMeters
    readonly onChange: (uids: readonly string[]) => void
  }) {
    this.#runtime = options.runtime
    this.#clock = options.clock
    this.#log = options.log
    this.#meters = options.meters
    this.#onChange = options.onChange
  }

  start(): void {
    void this.#listen()
    void this.relist()
  }

  stop(): void {
    this.#ending.abort()
    this.#timer?.cancel()
  }

  of(uid: string): PodHeld {
    return this.#held.get(uid) ?? NOTHING
  }

  /** Of all pods. */
  get all(): PodHeld {
    const held = [...this.#held.values()]
    return {
      sandboxes: held.flatMap(({ sandboxes }) => sandboxes),
      containers: held.flatMap(({ containers }) => containers),
    }
  }

  get uids(): Iterable<string> {
    return this.#held.keys()
  }

  /** Resolves after a listing that began after this call. Never fails: what went wrong is tried again. */
  async relist(): Promise<void> {
    if (this.#running !== undefined) {
      this.#isStale = true
      await this.#running
      if (!this.#isStale) return
    }
    this.#isStale = false
    this.#running ??= this.#list().finally(() => {
      this.#running = undefined
      this.#schedule()
    })
    await this.#running
  }

  #schedule(): void {
    this.#timer?.cancel()
    if (this.#ending.signal.aborted) return
    const delayMs = this.#isListening ? SAFETY_MS : RELIST_MS
    this.#timer = this.#clock.after(delayMs, () => void this.relist(), { background: true })
  }

  async #list(): Promise<void> {
    const startMs = this.#clock.elapsed()
    const seconds = (sinceMs: number): number => (this.#clock.elapsed() - sinceMs) / 1000
    if (this.#beganMs !== undefined) {
      this.#meters.family('kubelet_pleg_relist_interval_seconds').labels().observe(seconds(this.#beganMs))
    }
    this.#beganMs = startMs
    try {
      const [{ items }, { containers }] = await Promise.all([
        this.#runtime.listPodSandbox({}),
        this.#runtime.listContainers({}),
      ])
      const before = this.#held
      this.#held = group(items, containers)
      this.rounds++
      this.listedMs = this.#clock.now()
      this.#meters.family('kubelet_pleg_relist_duration_seconds').labels().observe(seconds(startMs))
      this.#meters
        .family('kubelet_pleg_last_seen_seconds')
        .labels()
        .set(Math.trunc(this.listedMs / 1000))
      const uids = new Set([...before.keys(), ...this.#held.keys()])
      const changed = [...uids].filter((uid) => faceOf(before.get(uid)) !== faceOf(this.#held.get(uid)))
      if (changed.length > 0 || this.rounds === 1) this.#onChange(changed)
    } catch (error) {
      this.#log.error(error, 'Unable to list what the runtime holds')
    }
  }

  #heard(atMs: number): void {
    const seconds = (this.#clock.now() - atMs) / 1000
    this.#meters.family('kubelet_evented_pleg_connection_latency_seconds').labels().observe(seconds)
    if (!this.#isListening) this.#meters.family('kubelet_evented_pleg_connection_success_count').labels().inc()
    this.#isListening = true
  }

  async #listen(): Promise<void> {
    const { signal } = this.#ending
    while (!signal.aborted) {
      try {
        for await (const { createdAt } of this.#runtime.getContainerEvents({}, { signal })) {
          this.#heard(Number(createdAt) / 1e6)
          void this.relist()
        }
      } catch (error) {
        if (signal.aborted) break
        this.#meters.family('kubelet_evented_pleg_connection_error_count').labels().inc()
        this.#log.v(4)?.info('The runtime tells no events', { err: String(error) })
      }
      this.#isListening = false
      await sleep(this.#clock, RELISTEN_MS, signal, { background: true }).catch(() => undefined)
    }
  }
}

const RELISTEN_MS = 60_000

function group(sandboxes: readonly PodSandbox[], containers: readonly Container[]): Map<string, PodHeld> {
  const held = new Map<string, { sandboxes: PodSandbox[]; containers: Container[] }>()
  const of = (
    labels: ReadonlyMap<string, string>,
  ): { sandboxes: PodSandbox[]; containers: Container[] } | undefined => {
    const uid = labels.get(LABELS.podUid)
    // What has no label is not of a kubelet's making.
    if (uid === undefined) return undefined
    const found = held.get(uid) ?? { sandboxes: [], containers: [] }
    held.set(uid, found)
    return found
  }
  for (const sandbox of sandboxes) of(sandbox.labels)?.sandboxes.push(sandbox)
  for (const container of containers) of(container.labels)?.containers.push(container)
  for (const each of held.values()) {
    each.sandboxes.sort(newestFirst)
    each.containers.sort(newestFirst)
  }
  return held
}

const newestFirst = (a: PodSandbox | Container, b: PodSandbox | Container): number =>
  Number(BigInt(b.createdAt) - BigInt(a.createdAt))

function faceOf(held: PodHeld | undefined): string {
  if (held === undefined) return ''
  return [...held.sandboxes, ...held.containers].map(({ id, state }) => `${id}${state}`).join()
}
