/**
 * Pod lifecycle event generator: lists the sandboxes and containers of the node periodically and reports changed pods.
 * Events of the runtime trigger a list earlier.
 */
import type { Container, PodSandbox } from '#apis/wire/cri.ts'
import type { Runtime } from '#cri/runtime.ts'
import { type Clock, sleep, type Timer } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'

import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import { LABELS } from '../pod/sandbox-config.ts'

export interface RuntimePod {
  /** Newest first. */
  readonly sandboxes: readonly PodSandbox[]
  readonly containers: readonly Container[]
}

/** Called with the UIDs of changed pods. */
type OnChange = (uids: readonly string[]) => void

const RELIST_MS = 1000
/** Interval while the runtime sends events. */
const SAFETY_MS = 10_000
const NOTHING: RuntimePod = { sandboxes: [], containers: [] }

export class Pleg {
  readonly #runtime: Runtime
  readonly #clock: Clock
  readonly #log: Logger
  readonly #meters: KubeletMeters
  #onChange: OnChange = () => undefined
  readonly #ending = new AbortController()
  #pods = new Map<string, RuntimePod>()
  #isListening = false
  #timer: Timer | undefined
  #running: Promise<void> | undefined
  #isStale = false
  /** Start of the last relist. */
  #beganMs: number | undefined
  /** The prefix of container IDs: `containerd`. */
  runtimeName = 'containerd'
  /** Number of successful relists. */
  rounds = 0
  /** Time of the last successful relist. */
  listedMs: number | undefined

  constructor(options: {
    readonly runtime: Runtime
    readonly clock: Clock
    readonly log: Logger
    readonly meters: KubeletMeters
  }) {
    this.#runtime = options.runtime
    this.#clock = options.clock
    this.#log = options.log
    this.#meters = options.meters
  }

  /** Relists until `stop`. */
  async start(onChange: OnChange): Promise<void> {
    this.#onChange = onChange
    try {
      this.runtimeName = (await this.#runtime.version({})).runtimeName
    } catch (error) {
      this.#log.error(error, 'Failed to get the runtime version')
    }
    if (this.#ending.signal.aborted) return
    void this.#listen()
    void this.relist()
  }

  stop(): void {
    this.#ending.abort()
    this.#timer?.cancel()
  }

  of(uid: string): RuntimePod {
    return this.#pods.get(uid) ?? NOTHING
  }

  /** Sandboxes and containers of all pods. */
  get all(): RuntimePod {
    const pods = [...this.#pods.values()]
    return {
      sandboxes: pods.flatMap(({ sandboxes }) => sandboxes),
      containers: pods.flatMap(({ containers }) => containers),
    }
  }

  get uids(): Iterable<string> {
    return this.#pods.keys()
  }

  /** Resolves after a relist that began after this call. Never rejects: failures are retried. */
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
      const before = this.#pods
      this.#pods = group(items, containers)
      this.rounds++
      this.listedMs = this.#clock.now()
      this.#meters.family('kubelet_pleg_relist_duration_seconds').labels().observe(seconds(startMs))
      this.#meters
        .family('kubelet_pleg_last_seen_seconds')
        .labels()
        .set(Math.trunc(this.listedMs / 1000))
      const uids = new Set([...before.keys(), ...this.#pods.keys()])
      const changed = [...uids].filter((uid) => fingerprintOf(before.get(uid)) !== fingerprintOf(this.#pods.get(uid)))
      if (changed.length > 0 || this.rounds === 1) this.#onChange(changed)
    } catch (error) {
      this.#log.error(error, 'Unable to list pod sandboxes and containers')
    }
  }

  #eventReceived(atMs: number): void {
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
          this.#eventReceived(Number(createdAt) / 1e6)
          void this.relist()
        }
      } catch (error) {
        if (signal.aborted) break
        this.#meters.family('kubelet_evented_pleg_connection_error_count').labels().inc()
        this.#log.v(4)?.info('Failed to receive container events', { err: String(error) })
      }
      this.#isListening = false
      await sleep(this.#clock, RELISTEN_MS, signal, { background: true }).catch(() => undefined)
    }
  }
}

const RELISTEN_MS = 60_000

function group(sandboxes: readonly PodSandbox[], containers: readonly Container[]): Map<string, RuntimePod> {
  const pods = new Map<string, { sandboxes: PodSandbox[]; containers: Container[] }>()
  const of = (
    labels: ReadonlyMap<string, string>,
  ): { sandboxes: PodSandbox[]; containers: Container[] } | undefined => {
    const uid = labels.get(LABELS.podUid)
    // Without the label it was not created by a kubelet.
    if (uid === undefined) return undefined
    const found = pods.get(uid) ?? { sandboxes: [], containers: [] }
    pods.set(uid, found)
    return found
  }
  for (const sandbox of sandboxes) of(sandbox.labels)?.sandboxes.push(sandbox)
  for (const container of containers) of(container.labels)?.containers.push(container)
  for (const each of pods.values()) {
    each.sandboxes.sort(newestFirst)
    each.containers.sort(newestFirst)
  }
  return pods
}

const newestFirst = (a: PodSandbox | Container, b: PodSandbox | Container): number =>
  Number(BigInt(b.createdAt) - BigInt(a.createdAt))

function fingerprintOf(pods: RuntimePod | undefined): string {
  if (pods === undefined) return ''
  return [...pods.sandboxes, ...pods.containers].map(({ id, state }) => `${id}${state}`).join()
}
