/** A pod sandbox of the in-memory runtime: a name, an address and a state. */
import { type PodSandbox, PodSandboxConfig, type PodSandboxStatus } from '#apis/wire/cri.ts'
import { NAMESPACE, SANDBOX_STATE } from '#cri/codes.ts'
import type { Input } from '#lib/protobuf/message.ts'

import { nanosOf } from './nanos.ts'

export class MemorySandbox {
  readonly id: string
  readonly config: PodSandboxConfig
  readonly runtimeHandler: string
  readonly createdMs: number
  state: number = SANDBOX_STATE.ready
  ip = ''

  constructor(
    id: string,
    of: { readonly config: Input<PodSandboxConfig>; readonly runtimeHandler: string; readonly nowMs: number },
  ) {
    this.id = id
    this.config = PodSandboxConfig.decode(PodSandboxConfig.encode(of.config))
    this.runtimeHandler = of.runtimeHandler
    this.createdMs = of.nowMs
  }

  /** Its own ID, for filters. */
  get podSandboxId(): string {
    return this.id
  }

  get isOnHostNetwork(): boolean {
    return this.config.linux?.securityContext?.namespaceOptions?.network === NAMESPACE.node
  }

  get reservedName(): string {
    const { name = '', namespace = '', uid = '', attempt = 0 } = this.config.metadata ?? {}
    return [name, namespace, uid, attempt].join('_')
  }

  summary(): PodSandbox {
    const { metadata, labels, annotations } = this.config
    const { id, state, runtimeHandler } = this
    return { id, metadata, state, createdAt: nanosOf(this.createdMs), labels, annotations, runtimeHandler }
  }

  status(): PodSandboxStatus {
    const options = this.config.linux?.securityContext?.namespaceOptions
    return {
      ...this.summary(),
      network: { ip: this.state === SANDBOX_STATE.ready ? this.ip : '', additionalIps: [] },
      linux: { namespaces: { options } },
    }
  }
}

/** Allocates addresses in order, so that a released one is reused last. */
export class SandboxAddresses {
  readonly #network: readonly number[]
  readonly #taken = new Set<string>()
  #next = 2

  constructor(network: string) {
    this.#network = network.split('.').map(Number)
  }

  take(): string {
    for (;;) {
      const [a = 10, b = 88, c = 0] = this.#network
      const host = this.#next++
      const address = [a, b, (c + (host >> 8)) & 255, host & 255].join('.')
      if ((host & 255) === 0 || (host & 255) === 255 || this.#taken.has(address)) continue
      this.#taken.add(address)
      return address
    }
  }

  release(address: string): void {
    this.#taken.delete(address)
  }
}
