/** The requests of the garbage collector to the API server. Kinds come from the last discovery. */
import { kindFor } from '#apis/kinds.ts'
import type { ApiClient, Where } from '#client/api-client.ts'
import type { KindMap, ServedKind } from '#client/discovery.ts'
import type { KubeObject, OwnerReference } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'

import type { CollectorServer, Propagation } from './collector.ts'
import type { Identity } from './identity.ts'

export class LiveServer implements CollectorServer {
  readonly #client: ApiClient
  readonly #signal: AbortSignal
  readonly #kinds: () => KindMap

  constructor(client: ApiClient, signal: AbortSignal, kinds: () => KindMap) {
    this.#client = client
    this.#signal = signal
    this.#kinds = kinds
  }

  isNamespaced(identity: Pick<Identity, 'apiVersion' | 'kind'>): boolean | undefined {
    return this.#kinds().ofObject(identity)?.namespaced
  }

  async get(identity: Identity): Promise<KubeObject | undefined> {
    const options = { metadataOnly: true, signal: this.#signal }
    try {
      return await this.#client.get(this.#kindOf(identity), whereOf(identity), options)
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }

  delete(identity: Identity, resourceVersion: string, propagationPolicy: Propagation): Promise<void> {
    const preconditions = { uid: identity.uid, resourceVersion }
    const options = { preconditions, propagationPolicy, signal: this.#signal }
    return this.#client.delete(this.#kindOf(identity), whereOf(identity), options)
  }

  disown(identity: Identity, uids: readonly string[]): Promise<void> {
    const patches = uids.map((uid) => ({ $patch: 'delete', uid }))
    return this.#reown(identity, patches, (owners) => owners.filter(({ uid }) => !uids.includes(uid)))
  }

  unblock(identity: Identity, owners: readonly OwnerReference[]): Promise<void> {
    const unblocked = (all: readonly OwnerReference[]): OwnerReference[] =>
      all.map((owner) => ({ ...owner, blockOwnerDeletion: false }))
    return this.#reown(identity, unblocked(owners), unblocked)
  }

  setFinalizers(identity: Identity, resourceVersion: string, finalizers: readonly string[]): Promise<void> {
    return this.#patch(identity, 'merge', { resourceVersion, finalizers })
  }

  /**
   * Uses a strategic merge patch, which cannot conflict; for kinds without it, a JSON merge patch of the whole list.
   */
  async #reown(
    identity: Identity,
    patches: readonly object[],
    change: (owners: readonly OwnerReference[]) => readonly OwnerReference[],
  ): Promise<void> {
    const { uid } = identity
    if (kindFor(this.#kindOf(identity)) !== undefined) {
      return this.#patch(identity, 'strategic', { uid, ownerReferences: patches })
    }
    const latest = await this.get(identity)
    if (latest === undefined || latest.metadata.uid !== uid) return
    const { resourceVersion, ownerReferences = [] } = latest.metadata
    await this.#patch(identity, 'merge', { resourceVersion, ownerReferences: change(ownerReferences) })
  }

  async #patch(identity: Identity, type: 'merge' | 'strategic', metadata: object): Promise<void> {
    const patch = { type, value: { metadata } }
    await this.#client.patch(this.#kindOf(identity), whereOf(identity), patch, { signal: this.#signal })
  }

  #kindOf(identity: Identity): ServedKind {
    const kind = this.#kinds().ofObject(identity)
    if (kind === undefined) throw new Error(`unable to get REST mapping for ${identity.apiVersion}/${identity.kind}.`)
    return kind
  }
}

function whereOf({ namespace, name }: Identity): Where {
  return { namespace, name }
}
