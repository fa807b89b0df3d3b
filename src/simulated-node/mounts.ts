/**
 * Checks with the identity of the node that the ConfigMaps, Secrets and claims of simulated pods exist. All nodes share
 * the results for a while.
 */
import { ConfigMaps, PersistentVolumeClaims, Secrets } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { claimFailed, type EventSpec, mountFailed } from '#kubelet/pod/events.ts'
import { environmentReferences, mountedReferences, type Reference } from '#kubelet/pod/pod-references.ts'
import { goQuote } from '#lib/go/text.ts'
import { isForbidden, isNotFound } from '#meta/status.ts'

import type { SimulatedPod } from './simulated-pod.ts'

const KINDS = { configmap: ConfigMaps, secret: Secrets } as const

/** Time for which a found object counts as existing. */
const REMEMBER_MS = 60_000
const MAX_REMEMBERED = 10_000
/** Back-off of mounts in a kubelet. */
const RETRY = { baseMs: 500, capMs: 122_000 }
const CONFIG_RETRY_MS = 10_000

export class Mounts {
  readonly #found = new Map<string, number>()

  /**
   * Mounts the volumes and checks the environment of a pod. Returns the time of the next attempt; Infinity when
   * nothing is missing.
   */
  async mount(simulatedPod: SimulatedPod, client: ApiClient, recordEvent: (event: EventSpec) => void): Promise<number> {
    const nowMs = client.clock.now()
    const { namespace = '' } = simulatedPod.pod.metadata
    const events: EventSpec[] = []
    for (const { volume, ...reference } of simulatedPod.isMounted ? [] : mountedReferences(simulatedPod.pod)) {
      const missing = await this.#missing(namespace, reference, client)
      if (missing === undefined) continue
      const isClaim = reference.kind === 'persistentvolumeclaim'
      events.push(
        isClaim ? claimFailed(volume, `${namespace}/${reference.name}`, missing) : mountFailed(volume, missing),
      )
    }
    events.forEach(recordEvent)
    if (events.length > 0) return nowMs + Math.min(RETRY.baseMs * 2 ** simulatedPod.mountTries++, RETRY.capMs)
    simulatedPod.isMounted = true
    let isComplete = true
    for (const container of simulatedPod.containers) {
      container.configError = undefined
      for (const reference of container.run === undefined ? environmentReferences(container.spec) : [])
        container.configError ??= await this.#missing(namespace, reference, client)
      isComplete &&= container.configError === undefined
    }
    simulatedPod.isComplete = isComplete
    return isComplete ? Infinity : nowMs + CONFIG_RETRY_MS
  }

  async #missing(namespace: string, { kind, name }: Reference, client: ApiClient): Promise<string | undefined> {
    const key = `${kind}/${namespace}/${name}`
    const nowMs = client.clock.now()
    if ((this.#found.get(key) ?? -Infinity) > nowMs) return undefined
    try {
      if (kind === 'persistentvolumeclaim') {
        const { status } = await client.get(PersistentVolumeClaims, { namespace, name })
        if (status.phase !== 'Bound') return 'PVC is not bound'
      } else await client.get(KINDS[kind], { namespace, name }, { metadataOnly: true })
    } catch (error) {
      // The node authorizer answers Forbidden for a missing object.
      if (isNotFound(error) || isForbidden(error)) return `${kind} ${goQuote(name)} not found`
      throw error
    }
    if (this.#found.size >= MAX_REMEMBERED) this.#found.clear()
    this.#found.set(key, nowMs + REMEMBER_MS)
    return undefined
  }
}
