/**
 * Processes a node of the graph. An object is garbage if none of its owners exists on the server. Every delete has uid
 * and resourceVersion preconditions, so that a new owner protects the object. If all owners are in the cache of absent
 * owners, that delete is the only request.
 */
import { exponentialDelayMs } from '#lib/backoff.ts'
import type { Requeue } from '#lib/work-queue.ts'
import {
  hasFinalizer,
  isBeingDeleted,
  type KubeObject,
  type ObjectMeta,
  type OwnerReference,
  semanticEqual,
} from '#meta/object.ts'
import { isConflict, isNotFound } from '#meta/status.ts'

import { blockingDependents, FOREGROUND, type Graph, type Node, ORPHAN } from './graph.ts'
import { type Identity, identityIn } from './identity.ts'

export type Propagation = 'Background' | 'Foreground' | 'Orphan'

/** The server operations of the collector. Each applies to the object with that uid, or fails. */
export interface CollectorServer {
  /** Whether the kind is namespaced; undefined if it is not served now. */
  isNamespaced(identity: Pick<Identity, 'apiVersion' | 'kind'>): boolean | undefined
  /** Undefined if the name does not exist. */
  get(identity: Identity): Promise<KubeObject | undefined>
  delete(identity: Identity, resourceVersion: string, propagation: Propagation): Promise<void>
  /** Removes owner references, or clears `blockOwnerDeletion` (`unblock`). */
  disown(identity: Identity, uids: readonly string[]): Promise<void>
  unblock(identity: Identity, owners: readonly OwnerReference[]): Promise<void>
  setFinalizers(identity: Identity, resourceVersion: string, finalizers: readonly string[]): Promise<void>
}

/** The backoff for nodes with unknown kinds: no event reports when they become known. */
const AGAIN = { baseMs: 5, factor: 2, capMs: 1_000_000 }
const FINALIZER_TRIES = 5

export class Collector {
  readonly #graph: Graph
  readonly #live: CollectorServer
  readonly #look: (node: Node) => void
  /** Failed attempts by uid. */
  readonly #tries = new Map<string, number>()

  constructor(graph: Graph, live: CollectorServer, look: (node: Node) => void) {
    this.#graph = graph
    this.#live = live
    this.#look = look
  }

  /** Processes a node. Throws errors that need a retry. */
  async process(uid: string): Promise<Requeue | undefined> {
    const node = this.#graph.get(uid)
    const outcome = node === undefined ? 'settled' : await this.#decide(node)
    const is = this.#graph.get(uid)
    // Otherwise a virtual node that came and went unwatched would stay forever.
    if (is === undefined || outcome === 'impossible' || !(outcome === 'unknown' || is.isVirtual)) {
      this.#tries.delete(uid)
      return undefined
    }
    const tries = this.#tries.get(uid) ?? 0
    this.#tries.set(uid, tries + 1)
    return { requeueAfterMs: exponentialDelayMs(AGAIN, tries) }
  }

  /** Removes the owner reference from all dependents, then the orphan finalizer. */
  async orphan(uid: string): Promise<void> {
    const node = this.#graph.get(uid)
    if (node === undefined) return
    const disowned = await Promise.allSettled(
      Array.from(node.dependents, ({ identity }) => ignoringAbsence(this.#live.disown(identity, [uid]))),
    )
    const failed = disowned.find((one) => one.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    await this.#removeFinalizer(node.identity, ORPHAN)
  }

  async #decide(node: Node): Promise<ProcessResult> {
    // Already being deleted: its dependents are processed when it is gone.
    if (node.isBeingDeleted && !node.isDeletingDependents) return 'settled'
    const { identity } = node
    const isNamespaced = this.#live.isNamespaced(identity)
    if (isNamespaced === undefined) return 'unknown'
    // A cluster-scoped object names a namespaced owner, which is impossible.
    if (isNamespaced && identity.namespace === '') return 'impossible'
    if (await this.#isDeletedAsSeen(node)) return 'settled'
    const latest = await this.#live.get(identity)
    if (latest === undefined || latest.metadata.uid !== identity.uid) {
      this.#graph.refute(identity)
      return 'settled'
    }
    if (node.isDeletingDependents) {
      await this.#goOn(node)
      return 'settled'
    }
    return this.#processOwners(node, latest)
  }

  /** Returns false if the object must be read: the server may have a newer version than the watch. */
  async #isDeletedAsSeen({ identity, seen, isDeletingDependents }: Node): Promise<boolean> {
    const { ownerReferences: owners = [], resourceVersion = '' } = seen ?? {}
    if (seen === undefined || isDeletingDependents || owners.length === 0 || resourceVersion === '') return false
    if (!owners.every((owner) => this.#isAbsent(owner, identity.namespace))) return false
    try {
      await this.#live.delete(identity, resourceVersion, propagationOf(seen))
      return true
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return false
      throw error
    }
  }

  #isAbsent(owner: OwnerReference, namespace: string): boolean {
    const { absent } = this.#graph
    return absent.has(identityIn('', owner)) || absent.has(identityIn(namespace, owner))
  }

  /** Foreground deletion: removes the finalizer when no dependent blocks any more. */
  async #goOn(node: Node): Promise<void> {
    const blocking = blockingDependents(node)
    if (blocking.length === 0) return this.#removeFinalizer(node.identity, FOREGROUND)
    for (const dependent of blocking) if (!dependent.isDeletingDependents) this.#look(dependent)
  }

  async #processOwners(node: Node, latest: KubeObject): Promise<ProcessResult> {
    const owners = latest.metadata.ownerReferences ?? []
    if (owners.length === 0) return 'settled'
    const verdict = await this.#classifyOwners(node, owners)
    if (verdict === 'unknown' || verdict === 'impossible') return verdict
    const { solid, dangling, waiting } = verdict
    if (solid.length > 0) {
      const gone = [...dangling, ...waiting].map(({ uid }) => uid)
      // Dependents in foreground deletion must not block an absent owner.
      if (gone.length > 0) await ignoringAbsence(this.#live.disown(node.identity, gone))
      return 'settled'
    }
    if (waiting.length > 0 && node.dependents.size > 0) {
      // A cycle: one of them must stop blocking.
      const isRing = [...node.dependents].some(({ isDeletingDependents }) => isDeletingDependents)
      if (isRing) await this.#live.unblock(node.identity, owners)
      await this.#delete(node.identity, latest, 'Foreground')
    } else await this.#delete(node.identity, latest, propagationOf(latest.metadata))
    return 'settled'
  }

  async #classifyOwners(
    { identity }: Node,
    owners: readonly OwnerReference[],
  ): Promise<OwnerStates | 'unknown' | 'impossible'> {
    const verdict: OwnerStates = { solid: [], dangling: [], waiting: [] }
    for (const reference of owners) {
      const is = await this.#stateOf(reference, identity.namespace)
      if (is === 'unknown' || is === 'impossible') return is
      verdict[is].push(reference)
    }
    return verdict
  }

  async #stateOf(reference: OwnerReference, namespace: string): Promise<keyof OwnerStates | 'unknown' | 'impossible'> {
    if (this.#isAbsent(reference, namespace)) return 'dangling'
    const isNamespaced = this.#live.isNamespaced(reference)
    if (isNamespaced === undefined) return 'unknown'
    if (isNamespaced && namespace === '') return 'impossible'
    const identity = identityIn(isNamespaced ? namespace : '', reference)
    const owner = await this.#live.get(identity)
    if (owner === undefined || owner.metadata.uid !== reference.uid) {
      this.#graph.absent.add(identity)
      return 'dangling'
    }
    return isBeingDeleted(owner) && hasFinalizer(owner, FOREGROUND) ? 'waiting' : 'solid'
  }

  /** The precondition on the version fails if the owners changed. */
  async #delete(identity: Identity, seen: KubeObject, propagation: Propagation): Promise<void> {
    let { resourceVersion = '' } = seen.metadata
    for (;;) {
      try {
        return await ignoringAbsence(this.#live.delete(identity, resourceVersion, propagation))
      } catch (error) {
        if (!isConflict(error)) throw error
        const latest = await this.#live.get(identity)
        if (latest === undefined || latest.metadata.uid !== identity.uid) return
        const isSame = latest.metadata.resourceVersion === resourceVersion
        if (isSame || !semanticEqual(latest.metadata.ownerReferences, seen.metadata.ownerReferences)) throw error
        resourceVersion = latest.metadata.resourceVersion ?? ''
      }
    }
  }

  async #removeFinalizer(identity: Identity, finalizer: string): Promise<void> {
    for (let tries = 1; ; tries++) {
      const latest = await this.#live.get(identity)
      if (latest === undefined || latest.metadata.uid !== identity.uid || !hasFinalizer(latest, finalizer)) return
      const { resourceVersion = '', finalizers = [] } = latest.metadata
      const rest = finalizers.filter((one) => one !== finalizer)
      try {
        return await ignoringAbsence(this.#live.setFinalizers(identity, resourceVersion, rest))
      } catch (error) {
        if (!isConflict(error) || tries >= FINALIZER_TRIES) throw error
      }
    }
  }
}

/** Unknown: the kind is not served, perhaps not yet. Impossible: a cluster-scoped object names a namespaced owner. */
type ProcessResult = 'settled' | 'unknown' | 'impossible'

interface OwnerStates {
  readonly solid: OwnerReference[]
  readonly dangling: OwnerReference[]
  /** Exists and waits for its dependents in foreground deletion. */
  readonly waiting: OwnerReference[]
}

function propagationOf({ finalizers = [] }: ObjectMeta): Propagation {
  if (finalizers.includes(ORPHAN)) return 'Orphan'
  return finalizers.includes(FOREGROUND) ? 'Foreground' : 'Background'
}

async function ignoringAbsence(work: Promise<void>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}
