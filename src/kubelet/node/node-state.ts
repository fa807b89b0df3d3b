/**
 * The node's state that pods, admission and the node status read: Node object, Services, pressure conditions and
 * shutdown.
 */
import type { Node, Service } from '#apis/core/v1.ts'

import type { NodeTraits } from '../pod/admission-rules.ts'

export class NodeState {
  /** From the API server; undefined until it was read. */
  node: Node | undefined
  readonly services: Map<string, Service> = new Map()
  /** Node conditions such as `MemoryPressure`. */
  pressures: readonly string[] = []
  isShuttingDown = false
  #reportRequest = new AbortController()

  get traits(): NodeTraits {
    return { pressures: this.pressures, isShuttingDown: this.isShuttingDown }
  }

  /** Requests a report of the node status, because a change of the node must not wait for the next interval. */
  reportNow(): void {
    this.#reportRequest.abort()
  }

  /** Aborted by a request after this call, which drops earlier requests. */
  nextReportRequest(): AbortSignal {
    this.#reportRequest = new AbortController()
    return this.#reportRequest.signal
  }
}
