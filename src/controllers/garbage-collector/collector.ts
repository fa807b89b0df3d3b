/**
 * What is done about a node of the graph, never without asking the server: garbage is what has owners none of which is
 * there. Every delete names the uid and the version that was looked at, so that who got a new owner meanwhile stays;
 * where all owners are known to have gone, the delete itself is the question.
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

/** The server, as the collector needs it. Everything it does is about the object of that uid, or fails. */
export interface Live {
  /** Whether objects of that kind live in namespaces; undefined when no such kind is served now. */
  isNamespaced(identity: Pick<Identity, 'apiVersion' | 'kind'>): boolean | undefined
  /** Undefined when there is none of that name. */
  get(identity: Identity): Promise<KubeObject | undefined>
  delete(identity: Identity, resourceVersion: string, propagation: Propagation): Promise<void>
  /** Takes owners away, or lets them go first (`unblock`). */
  disown(identity: Identity, uids: readonly string[]): Promise<void>
  unblock(identity: Identity, owners: readonly OwnerReference[]): Promise<void>
  setFinalizers(identity: Identity, resourceVersion: string, finalizers: readonly string[]): Promise<void>
}

/** Nobody tells when what is not known yet is known: asked again, ever more seldom. */
const AGAIN = { baseMs: 5, factor: 2, capMs: 1_000_000 }
const FINALIZER_TRIES = 5

export class Collector {
  readonly #graph: Graph
  readonly #live: Live
  readonly #look: (node: Node) => void
  /** How often it was asked for in vain, by uid. */
  readonly #tries = new Map<string, number>()

  constructor(graph: Graph, live: Live, look: (node: Node) => void) {
    this.#graph = graph
    this.#live = live
    this.#look = look
  }

  /** Decides about a node. Throws what the server refused: then it is to be tried again. */
  async look(uid: string): Promise<Requeue | undefined> {
    const node = this.#graph.get(uid)
    const outcome = node === undefined ? 'settled' : await this.#decide(node)
    const is = this.#graph.get(uid)
    // One that came and went while nobody watched would stay for ever.
    if (is === undefined || outcome === 'impossible' || !(outcome === 'unknown' || is.isVirtual)) {
      this.#tries.delete(uid)
      return undefined
    }
    const tries = this.#tries.get(uid) ?? 0
    this.#tries.set(uid, tries + 1)
    return { requeueAfterMs: exponentialDelayMs(AGAIN, tries) }
  }

  /** Lets all dependents go, then the owner. */
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

  async #decide(node: Node): Promise<Outcome> {
    // On its way: its dependents are looked at when it has gone.
    if (node.isBeingDeleted && !node.isDeletingDependents) return 'settled'
    const { identity } = node
    const isNamespaced = this.#live.isNamespaced(identity)
    if (isNamespaced === undefined) return 'unknown'
    // Named as owner by what has no namespace: there is no such thing, and nobody to blame but whoever wrote it.
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
    return this.#weigh(node, latest)
  }

  /** False when it has to be looked at: what is there may not be what a watch showed last. */
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

  /** In foreground deletion: it goes when nobody blocks it any more. */
  async #goOn(node: Node): Promise<void> {
    const blocking = blockingDependents(node)
    if (blocking.length === 0) return this.#removeFinalizer(node.identity, FOREGROUND)
    for (const dependent of blocking) if (!dependent.isDeletingDependents) this.#look(dependent)
  }

  async #weigh(node: Node, latest: KubeObject): Promise<Outcome> {
    const owners = latest.metadata.ownerReferences ?? []
    if (owners.length === 0) return 'settled'
    const verdict = await this.#judge(node, owners)
    if (verdict === 'unknown' || verdict === 'impossible') return verdict
    const { solid, dangling, waiting } = verdict
    if (solid.length > 0) {
      const gone = [...dangling, ...waiting].map(({ uid }) => uid)
      // Those that wait for it must not wait for ever.
      if (gone.length > 0) await ignoringAbsence(this.#live.disown(node.identity, gone))
      return 'settled'
    }
    if (waiting.length > 0 && node.dependents.size > 0) {
      // A ring: one of them has to let go.
      const isRing = [...node.dependents].some(({ isDeletingDependents }) => isDeletingDependents)
      if (isRing) await this.#live.unblock(node.identity, owners)
      await this.#delete(node.identity, latest, 'Foreground')
    } else await this.#delete(node.identity, latest, propagationOf(latest.metadata))
    return 'settled'
  }

  async #judge({ identity }: Node, owners: readonly OwnerReference[]): Promise<Verdict | 'unknown' | 'impossible'> {
    const verdict: Verdict = { solid: [], dangling: [], waiting: [] }
    for (const reference of owners) {
      const is = await this.#stateOf(reference, identity.namespace)
      if (is === 'unknown' || is === 'impossible') return is
      verdict[is].push(reference)
    }
    return verdict
  }

  async #stateOf(reference: OwnerReference, namespace: string): Promise<keyof Verdict | 'unknown' | 'impossible'> {
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

  /** As long as nobody changes who owns it, it is still the garbage that was looked at. */
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

/** Unknown: a kind is not served, perhaps not yet. Impossible: what has no namespace names an owner that has one. */
type Outcome = 'settled' | 'unknown' | 'impossible'

interface Verdict {
  readonly solid: OwnerReference[]
  readonly dangling: OwnerReference[]
  /** There, and waiting in foreground deletion for what it owns. */
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
