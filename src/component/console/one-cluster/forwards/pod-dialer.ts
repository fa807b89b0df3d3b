/** Connects to the pod of a forward. Connections share one to the API server, until the pod goes. */
import { Pods, Services } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { dialPodPortsBySpdy, type ForwardedStreams, type PodPorts } from '#client/streams/port-forward.ts'
import type { Clock } from '#lib/clock.ts'
import { userAgent } from '#model/version.ts'

import type { ConsoleTarget } from '../cluster-route.ts'
import { type Backend, backendsOf, chooseBackend, type ForwardTarget } from './target.ts'

export interface DialerOptions {
  readonly clock: Clock
  readonly target: ConsoleTarget
  readonly to: ForwardTarget
  /** Aborted when the forward ends. */
  readonly signal: AbortSignal
}

/** A ready pod is looked up again after this time, so that connections leave a pod that is going. */
const RECHECK_MS = 5000
/** Pods of one Service. */
const MAX_PODS = 500
const AGENT = userAgent('hyperkube-console')

interface Dialed extends Backend {
  readonly ports: PodPorts
}

export class PodDialer {
  readonly #options: DialerOptions
  readonly #client: ApiClient
  #dialed: Dialed | undefined
  #dialing: Promise<Dialed> | undefined
  #checkedAtMs = -Infinity

  constructor(options: DialerOptions) {
    this.#options = options
    const { clock, target } = options
    this.#client = new ApiClient({ transport: target.client, server: target.server, clock, userAgent: AGENT })
  }

  /** The name of the pod that got the last connection. */
  get pod(): string | undefined {
    return this.#dialed?.pod
  }

  /** Opens a connection to the port of the pod. Rejects with the reason of the API server. */
  async connect(): Promise<ForwardedStreams> {
    this.#dialing ??= this.#dial().finally(() => (this.#dialing = undefined))
    const { ports, port } = await this.#dialing
    return ports.connect(port)
  }

  close(): void {
    this.#dialed?.ports.destroy()
  }

  async #dial(): Promise<Dialed> {
    const nowMs = this.#options.clock.now()
    const known = this.#dialed
    if (known !== undefined && nowMs - this.#checkedAtMs < RECHECK_MS) return known
    const backend = await this.#choose(known?.pod)
    this.#checkedAtMs = nowMs
    if (known?.pod === backend.pod && known.port === backend.port) return known
    const { clock, target, to, signal } = this.#options
    const path = `/api/v1/namespaces/${to.namespace}/pods/${encodeURIComponent(backend.pod)}/portforward`
    const connection = {
      server: target.server,
      upgrade: (request: Parameters<typeof target.client.upgrade>[0]) => target.client.upgrade(request),
    }
    const ports = await dialPodPortsBySpdy({ connection, clock, userAgent: AGENT, path, signal })
    const dialed = { ...backend, ports }
    this.#dialed = dialed
    void this.#forget(dialed)
    return dialed
  }

  /** A pod that is gone is not used again. */
  async #forget(dialed: Dialed): Promise<void> {
    await dialed.ports.closed
    if (this.#dialed === dialed) this.#dialed = undefined
  }

  async #choose(current: string | undefined): Promise<Backend> {
    const { kind, namespace, name, port } = this.#options.to
    const { signal } = this.#options
    if (kind === 'Pod') return { pod: name, port }
    const service = await this.#client.get(Services, { namespace, name }, { signal })
    const selector = Object.entries(service.spec.selector ?? {})
    if (selector.length === 0) throw new Error('The Service selects no pods')
    const labelSelector = selector.map(([key, value]) => `${key}=${value}`).join(',')
    const { items } = await this.#client.list(Pods, { namespace, labelSelector, limit: MAX_PODS, signal })
    const chosen = chooseBackend(backendsOf(service, port, items), current)
    if (chosen === undefined) throw new Error('The Service has no ready pod')
    return chosen
  }
}
