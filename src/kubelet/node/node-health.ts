/** Health of the node: checks the runtime and collects the reasons why the node is not ready. */
import type { ContainerImage } from '#apis/core/v1.ts'
import type { RuntimeFeatures, RuntimeHandler, RuntimeStatus } from '#apis/wire/cri.ts'
import { withDeadlines } from '#cri/deadlines.ts'
import type { Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'

import { contactFaults } from '../runtime/runtime-health.ts'
import type { NodeState } from './node-state.ts'
import { type NodeConditionValue, pressureConditions } from './node-status.ts'

export interface NodeHealthOptions {
  readonly state: NodeState
  readonly runtime: Runtime
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  /** The last successful relist of the runtime. */
  readonly relists: { readonly listedMs: number | undefined }
  /** Timeout of runtime calls. Default: two minutes. */
  readonly runtimeTimeoutMs?: number | undefined
}

/** Last answers of the runtime. */
export interface RuntimeView {
  /** `containerd://2.4.2`. */
  readonly version: string
  readonly handlers: readonly RuntimeHandler[]
  readonly features: RuntimeFeatures | undefined
  readonly images: readonly ContainerImage[]
  /** Why the runtime is not ready, in its words; undefined when it is. */
  readonly fault: string | undefined
}

/** Maximum number of names reported per image. */
const MAX_NAMES = 5

export class NodeHealth {
  readonly #options: NodeHealthOptions
  readonly #runtime: Runtime
  readonly #startedMs: number
  /** Last time the runtime reported that it is ready. */
  #answeredMs: number | undefined
  view: RuntimeView = { version: '', handlers: [], features: undefined, images: [], fault: undefined }
  /** The CSINode exists. */
  hasCsiNode = false

  constructor(options: NodeHealthOptions) {
    this.#options = options
    this.#runtime = withDeadlines(options.runtime, options.clock, options.runtimeTimeoutMs)
    this.#startedMs = options.clock.now()
  }

  /** The runtime has never been ready, or it is not ready now. */
  get lacksRuntime(): boolean {
    return this.#answeredMs === undefined || this.view.fault !== undefined
  }

  get isReady(): boolean {
    return this.#faults.length === 0
  }

  /** Conditions of the Node that are not healthy. */
  get unhealthy(): readonly NodeConditionValue[] {
    const pressures = pressureConditions(this.#options.state.pressures)
    const faults = this.#faults
    if (faults.length === 0) return pressures
    const message = faults.length === 1 ? (faults[0] ?? '') : `[${faults.join(', ')}]`
    return [{ type: 'Ready', status: 'False', reason: 'KubeletNotReady', message }, ...pressures]
  }

  get #faults(): readonly string[] {
    const { clock, relists, state } = this.#options
    const contact = { startedMs: this.#startedMs, answeredMs: this.#answeredMs, listedMs: relists.listedMs }
    return [
      ...contactFaults(contact, clock.now()),
      this.view.fault,
      this.hasCsiNode ? undefined : 'CSINode is not yet initialized',
      state.isShuttingDown ? 'node is shutting down' : undefined,
    ].filter((fault) => fault !== undefined)
  }

  /** Checks the runtime. While it does not answer, its last answer stays valid for a while. */
  async checkRuntime(): Promise<void> {
    const runtime = this.#runtime
    try {
      const [version, status, { images }] = await Promise.all([
        runtime.version({}),
        runtime.status({}),
        runtime.listImages({}),
      ])
      this.view = {
        version: `${version.runtimeName}://${plainVersion(version.runtimeVersion)}`,
        handlers: status.runtimeHandlers,
        features: status.features,
        images: images
          .map(({ repoDigests, repoTags, size }) => ({
            names: [...repoDigests, ...repoTags].slice(0, MAX_NAMES),
            sizeBytes: Number(size),
          }))
          .sort((a, b) => b.sizeBytes - a.sizeBytes),
        fault: faultOf(status.status),
      }
      if (isTrue(status.status, 'RuntimeReady')) this.#answeredMs = this.#options.clock.now()
    } catch (error) {
      if (!this.#options.signal.aborted) this.#options.log.error(error, 'Container runtime sanity check failed')
    }
  }
}

const SEMANTIC = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/

/** The version without a distribution's suffix, as upstream parses it. Pure. */
export function plainVersion(text: string): string {
  const version = text.replace(/^v/, '')
  return SEMANTIC.test(version) ? version : (/^\d+(?:\.\d+)+/.exec(version)?.[0] ?? version)
}

/** Upstream's message for a runtime that is not ready. Pure. */
export function faultOf(status: RuntimeStatus | undefined): string | undefined {
  const conditions = status?.conditions ?? []
  const bad = (type: string): string | undefined => {
    const found = conditions.find((condition) => condition.type === type)
    if (isTrue(status, type)) return undefined
    return `${type}=false reason:${found?.reason ?? ''} message:${found?.message ?? ''}`
  }
  const [runtime, network] = [bad('RuntimeReady'), bad('NetworkReady')]
  if (runtime !== undefined) return `container runtime not ready: ${runtime}`
  return network === undefined ? undefined : `container runtime network not ready: ${network}`
}

function isTrue(status: RuntimeStatus | undefined, type: string): boolean {
  return status?.conditions.some((condition) => condition.type === type && condition.status) ?? false
}
