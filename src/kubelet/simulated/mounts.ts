/** Whether what pods are made from is there, asked with the identity of their node, and remembered for a while by all. */
import { ConfigMaps, PersistentVolumeClaims, Secrets } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { goQuote } from '#lib/go-text.ts'
import { isForbidden, isNotFound } from '#meta/status.ts'

import { claimFailed, mountFailed, type Note } from '../kubelet-notes.ts'
import { environmentReferences, mountedReferences, type Reference } from '../pod-references.ts'
import type { PodLife } from './pod-life.ts'

const KINDS = { configmap: ConfigMaps, secret: Secrets } as const

/** What was found is taken to be there for so long. */
const REMEMBER_MS = 60_000
const MAX_REMEMBERED = 10_000
/** As kubelets try to mount again. */
const RETRY = { baseMs: 500, capMs: 122_000 }
const CONFIG_RETRY_MS = 10_000

export class Mounts {
  readonly #found = new Map<string, number>()

  /** Brings the pod its volumes and environment; returns when to try again what is missing, Infinity when nothing is. */
  async bring(life: PodLife, client: ApiClient, say: (note: Note) => void): Promise<number> {
    const nowMs = client.clock.now()
    const { namespace = '' } = life.pod.metadata
    const notes: Note[] = []
    for (const { volume, ...reference } of life.isMounted ? [] : mountedReferences(life.pod)) {
      const missing = await this.#missing(namespace, reference, client)
      if (missing === undefined) continue
      const isClaim = reference.kind === 'persistentvolumeclaim'
      notes.push(
        isClaim ? claimFailed(volume, `${namespace}/${reference.name}`, missing) : mountFailed(volume, missing),
      )
    }
    notes.forEach(say)
    if (notes.length > 0) return nowMs + Math.min(RETRY.baseMs * 2 ** life.mountTries++, RETRY.capMs)
    life.isMounted = true
    let isComplete = true
    for (const container of life.lives) {
      container.configError = undefined
      for (const reference of container.run === undefined ? environmentReferences(container.spec) : [])
        container.configError ??= await this.#missing(namespace, reference, client)
      isComplete &&= container.configError === undefined
    }
    life.isComplete = isComplete
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
      // A node is told that it may not before it is told that there is none.
      if (isNotFound(error) || isForbidden(error)) return `${kind} ${goQuote(name)} not found`
      throw error
    }
    if (this.#found.size >= MAX_REMEMBERED) this.#found.clear()
    this.#found.set(key, nowMs + REMEMBER_MS)
    return undefined
  }
}
