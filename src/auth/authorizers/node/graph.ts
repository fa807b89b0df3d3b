/** Node graph: the objects that each node may access, through the pods on the node and their volumes. */
import type { PersistentVolume, Pod } from '#apis/core/v1.ts'
import { semanticEqual } from '#meta/object.ts'

import { podReferences, referenceTo, volumeSecretReferences } from './references.ts'

/** An object that connects references with a node: a pod, an attachment or a slice. */
interface Tie {
  readonly node: string
  readonly references: ReadonlySet<string>
}

interface BoundVolume {
  /** The reference of the claim. */
  readonly claim: string
  readonly secrets: readonly string[]
}

export class NodeGraph {
  /** By the reference of the connecting object. */
  readonly #ties = new Map<string, Tie>()
  /** For each reference, the number of connections to each node. No count is 0 and no map is empty. */
  readonly #nodes = new Map<string, Map<string, number>>()
  readonly #volumes = new Map<string, BoundVolume>()
  /** Volumes by the secrets they need. */
  readonly #volumesBySecret = new Map<string, Set<string>>()

  /** `previous` is the replaced pod: status updates, the most frequent ones, then cost nothing. */
  setPod(pod: Pod, previous: Pod | undefined): void {
    if (previous !== undefined && sameReferences(pod, previous)) return
    const { namespace = '', name = '' } = pod.metadata
    const node = pod.spec.nodeName ?? ''
    const key = referenceTo('pod', namespace, name)
    if (node === '') this.#untie(key)
    else this.#tie(key, { node, references: podReferences(pod) })
  }

  removePod(namespace: string, name: string): void {
    this.#untie(referenceTo('pod', namespace, name))
  }

  /** An object that belongs directly to one node. An empty node name means none. */
  setOwned(reference: string, node: string): void {
    if (node === '') this.#untie(reference)
    else this.#tie(reference, { node, references: new Set([reference]) })
  }

  removeOwned(reference: string): void {
    this.#untie(reference)
  }

  setVolume(volume: PersistentVolume): void {
    const { name = '' } = volume.metadata
    this.removeVolume(name)
    const { claimRef } = volume.spec
    if (claimRef === undefined) return
    const claim = referenceTo('persistentvolumeclaim', claimRef.namespace ?? '', claimRef.name ?? '')
    const secrets = volumeSecretReferences(volume)
    this.#volumes.set(name, { claim, secrets })
    for (const secret of secrets) {
      const users = this.#volumesBySecret.get(secret) ?? new Set()
      this.#volumesBySecret.set(secret, users.add(name))
    }
  }

  removeVolume(name: string): void {
    const volume = this.#volumes.get(name)
    if (volume === undefined) return
    this.#volumes.delete(name)
    for (const secret of volume.secrets) {
      const users = this.#volumesBySecret.get(secret)
      users?.delete(name)
      if (users?.size === 0) this.#volumesBySecret.delete(secret)
    }
  }

  clear(): void {
    for (const map of [this.#ties, this.#nodes, this.#volumes, this.#volumesBySecret]) map.clear()
  }

  /** True if the node may access the object. */
  relates(node: string, reference: string): boolean {
    if (this.#nodes.get(reference)?.has(node) === true) return true
    for (const volume of this.#volumesBySecret.get(reference) ?? []) {
      if (this.relatesToVolume(node, volume)) return true
    }
    return false
  }

  relatesToVolume(node: string, name: string): boolean {
    const volume = this.#volumes.get(name)
    return volume !== undefined && this.#nodes.get(volume.claim)?.has(node) === true
  }

  #tie(key: string, tie: Tie): void {
    this.#untie(key)
    this.#ties.set(key, tie)
    for (const reference of tie.references) {
      const counts = this.#nodes.get(reference) ?? new Map<string, number>()
      this.#nodes.set(reference, counts.set(tie.node, (counts.get(tie.node) ?? 0) + 1))
    }
  }

  #untie(key: string): void {
    const tie = this.#ties.get(key)
    if (tie === undefined) return
    this.#ties.delete(key)
    for (const reference of tie.references) {
      const counts = this.#nodes.get(reference)
      const left = (counts?.get(tie.node) ?? 0) - 1
      if (left > 0) counts?.set(tie.node, left)
      else counts?.delete(tie.node)
      if (counts?.size === 0) this.#nodes.delete(reference)
    }
  }
}

/** A bound pod's references are immutable except for ephemeral containers and generated claims. */
function sameReferences(pod: Pod, previous: Pod): boolean {
  const { spec, status, metadata } = pod
  return (
    metadata.uid === previous.metadata.uid &&
    spec.nodeName === previous.spec.nodeName &&
    spec.ephemeralContainers?.length === previous.spec.ephemeralContainers?.length &&
    semanticEqual(status?.resourceClaimStatuses, previous.status?.resourceClaimStatuses) &&
    semanticEqual(status?.extendedResourceClaimStatus, previous.status?.extendedResourceClaimStatus)
  )
}
