/**
 * A scheduler for tests with a virtual clock. Its bindings of pods and volumes may fail, or succeed without a response,
 * and it can be killed.
 */
import { PersistentVolumeClaims, PersistentVolumes } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { ApiClient, type Draft } from '#client/api-client.ts'
import { startTestScheduler, type TestScheduler } from '#kits/scheduler/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import type { KubeObject } from '#meta/object.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

export type Failure = 'before' | 'after' | 'not at all'

const VOLUMES: readonly Kind[] = [PersistentVolumes, PersistentVolumeClaims]

class FlakyClient extends ApiClient {
  failures: Failure[] = []
  failed = 0

  override async create<T extends KubeObject>(
    kind: Kind<T>,
    object: Draft<T>,
    options: Parameters<ApiClient['create']>[2] = {},
  ): Promise<T> {
    const create = (): Promise<T> => super.create(kind, object, options)
    return options.subresource === 'binding' ? this.#maybe(create) : create()
  }

  override async update<T extends KubeObject>(
    kind: Kind<T>,
    object: T,
    options: Parameters<ApiClient['update']>[2] = {},
  ): Promise<T> {
    const update = (): Promise<T> => super.update(kind, object, options)
    return VOLUMES.includes(kind) ? this.#maybe(update) : update()
  }

  async #maybe<T>(write: () => Promise<T>): Promise<T> {
    const failure = this.failures.shift()
    if (failure === 'before' || failure === 'after') this.failed++
    if (failure === 'before') throw new Error('the connection was lost')
    const answer = await write()
    if (failure === 'after') throw new Error('the answer was lost')
    return answer
  }
}

function flakyClient(plane: ControlPlane, clock: VirtualClock): FlakyClient {
  const user = { name: 'system:kube-scheduler', uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }
  return new FlakyClient({ transport: plane.running.server.clientAs(user), clock, userAgent: 'flaky/v1' })
}

type Options = NonNullable<Parameters<typeof startTestScheduler>[2]>

export interface FlakyOptions {
  /** Admission plugins that are off, besides those that need other controllers. */
  readonly off?: readonly string[]
  readonly profiles?: Options['profiles']
}

const OFF = ['ServiceAccount', 'TaintNodesByCondition', 'DefaultTolerationSeconds']

export class FlakyScheduler {
  readonly clock: VirtualClock
  readonly #plane: ControlPlane
  readonly #options: FlakyOptions
  #flaky: FlakyClient
  #scheduler: TestScheduler

  static async start(options: FlakyOptions = {}): Promise<FlakyScheduler> {
    const clock = createVirtualClock(Date.UTC(2026, 0, 1))
    const off = [...OFF, ...(options.off ?? [])]
    const plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': off } })
    const flaky = flakyClient(plane, clock)
    const scheduler = await startTestScheduler(plane, clock, optionsFor(flaky, options))
    return new FlakyScheduler({ clock, plane, options, flaky, scheduler })
  }

  private constructor(parts: {
    readonly clock: VirtualClock
    readonly plane: ControlPlane
    readonly options: FlakyOptions
    readonly flaky: FlakyClient
    readonly scheduler: TestScheduler
  }) {
    this.clock = parts.clock
    this.#plane = parts.plane
    this.#options = parts.options
    this.#flaky = parts.flaky
    this.#scheduler = parts.scheduler
  }

  get client(): ApiClient {
    return this.#scheduler.client
  }

  /** The numbers of failed bindings and kills. */
  get failed(): number {
    return this.#flaky.failed
  }

  /** The results of the next bindings. */
  fail(failures: readonly Failure[]): void {
    this.#flaky.failures = [...failures]
  }

  /** Kills it at once; another one takes over. */
  async kill(): Promise<void> {
    const { failed } = this.#flaky
    this.#flaky = flakyClient(this.#plane, this.clock)
    this.#flaky.failed = failed + 1
    await this.#scheduler.stop()
    this.#scheduler = await startTestScheduler(this.#plane, this.clock, optionsFor(this.#flaky, this.#options))
  }

  async stop(): Promise<void> {
    await this.#scheduler.stop()
    await this.#plane.stop()
  }
}

function optionsFor(client: ApiClient, { profiles }: FlakyOptions): Options {
  return { client, ...(profiles !== undefined && { profiles }) }
}
