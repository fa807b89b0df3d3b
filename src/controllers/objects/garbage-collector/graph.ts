/**
 * Owner graph over all kinds, built from watch events. An owner that is referenced but not in a watch event is a
 * *virtual* node and must be looked up. The graph may be stale, so the collector asks the server before it deletes.
 */
import type { Kind } from '#apis/kinds.ts'
import { compareText } from '#lib/go/text.ts'
import { hasFinalizer, isBeingDeleted, type KubeObject, type ObjectMeta, type OwnerReference } from '#meta/object.ts'

import { AbsentOwners } from './absent-owners.ts'
import { type Identity, identityIn, identityOf, identityText, sameIdentity, sameReference } from './identity.ts'

export const FOREGROUND = 'foregroundDeletion'
export const ORPHAN = 'orphan'

export interface Node {
  readonly uid: string
  identity: Identity
  /** Known only from references: the server must confirm that it exists. */
  isVirtual: boolean
  /** The metadata from the last watch event; undefined for a virtual node. */
  seen: ObjectMeta | undefined
  isBeingDeleted: boolean
  /** In foreground deletion. Never reset. */
  isDeletingDependents: boolean
  owners: readonly OwnerReference[]
  /** A shared empty set by default: most objects own nothing. */
  dependents: ReadonlySet<Node>
}

export interface GraphFollower {
  /** The node may be garbage, or its dependents may be gone. */
  enqueue(node: Node): void
  /** The node waits for its dependents to be orphaned. */
  orphan(node: Node): void
  /** The node references an owner in another namespace. */
  misplaced(node: Node, owner: OwnerReference): void
}

export class Graph {
  readonly absent: AbsentOwners = new AbsentOwners()
  readonly #nodes = new Map<string, Node>()
  readonly #follower: GraphFollower

  constructor(follower: GraphFollower) {
    this.#follower = follower
  }

  get size(): number {
    return this.#nodes.size
  }

  get(uid: string): Node | undefined {
    return this.#nodes.get(uid)
  }

  /** Handles an added or updated object. */
  observe(kind: Kind, object: KubeObject, old: KubeObject | undefined): void {
    const identity = identityOf(kind, object)
    const known = this.#nodes.get(identity.uid)
    const owners = object.metadata.ownerReferences ?? []
    const node = known ?? this.#insert(identity)
    if (node.isVirtual) this.#confirm(node, identity)
    node.seen = object.metadata
    this.#reown(node, owners)
    if (isBeingDeleted(object)) node.isBeingDeleted = true
    if (beginsWith(ORPHAN, object, old)) this.#follower.orphan(node)
    else if (beginsWith(FOREGROUND, object, old)) {
      node.isDeletingDependents = true
      for (const dependent of node.dependents) this.#follower.enqueue(dependent)
      this.#follower.enqueue(node)
    }
  }

  /** Handles a deleted object. */
  remove(kind: Kind, object: KubeObject): void {
    const node = this.#nodes.get(object.metadata.uid ?? '')
    if (node !== undefined) this.#drop(node, identityOf(kind, object))
  }

  /**
   * The server has no such object. Removes wrong references of dependents. Removes a virtual node, unless dependents
   * reference it under another name or namespace.
   */
  refute(identity: Identity): void {
    const node = this.#nodes.get(identity.uid)
    if (node === undefined) return
    const isSame = sameIdentity(node.identity, identity)
    const [believers, others] = partition(node, identity)
    if (node.isVirtual ? others.length === 0 : isSame) return this.#drop(node, identity)
    if (believers.length > 0) this.absent.add(identity)
    for (const dependent of believers) this.#follower.enqueue(dependent)
    if (node.isVirtual && isSame) node.identity = nextIdentity(others, identity)
  }

  /** The kind is no longer watched. */
  doubt(uid: string): void {
    const node = this.#nodes.get(uid)
    if (node === undefined) return
    node.isVirtual = true
    node.seen = undefined
    this.#follower.enqueue(node)
  }

  #insert(identity: Identity, dependents: readonly Node[] = []): Node {
    const node: Node = {
      uid: identity.uid,
      identity,
      isVirtual: false,
      seen: undefined,
      isBeingDeleted: false,
      isDeletingDependents: false,
      owners: [],
      dependents: dependents.length === 0 ? NONE : new Set(dependents),
    }
    this.#nodes.set(node.uid, node)
    return node
  }

  /** The object exists, perhaps under another identity than dependents referenced. */
  #confirm(node: Node, identity: Identity): void {
    if (!sameIdentity(node.identity, identity)) {
      for (const dependent of partition(node, identity)[1]) {
        this.#reportMisplaced(dependent, identity)
        this.#follower.enqueue(dependent)
      }
      node.identity = identity
    }
    node.isVirtual = false
  }

  #reportMisplaced(dependent: Node, { namespace, uid }: Identity): void {
    const reference = dependent.owners.find((owner) => owner.uid === uid)
    if (reference === undefined || namespace === '' || namespace === dependent.identity.namespace) return
    this.#follower.misplaced(dependent, reference)
  }

  #reown(node: Node, owners: readonly OwnerReference[]): void {
    const before = node.owners
    node.owners = owners
    const kept = new Set(owners.map(({ uid }) => uid))
    for (const was of before) {
      const is = owners.find(({ uid }) => uid === was.uid)
      const isUnblocked = was.blockOwnerDeletion === true && is?.blockOwnerDeletion !== true
      const owner = this.#nodes.get(was.uid)
      if (owner === undefined) continue
      if (isUnblocked && owner.isDeletingDependents) this.#follower.enqueue(owner)
      if (!kept.has(was.uid)) disown(owner, node)
    }
    const isKnown = (owner: OwnerReference): boolean => before.some((was) => sameReference(was, owner))
    this.#join(
      node,
      owners.filter((owner) => !isKnown(owner)),
    )
  }

  #join(node: Node, owners: readonly OwnerReference[]): void {
    let isDoubtful = false
    for (const reference of owners) {
      const found = this.#nodes.get(reference.uid)
      if (found === undefined) {
        const owner = this.#insert(identityIn(node.identity.namespace, reference), [node])
        owner.isVirtual = true
        this.#follower.enqueue(owner)
        continue
      }
      own(found, node)
      // An unseen object without a namespace may turn out to be namespaced.
      const isElsewhere = found.isVirtual && found.identity.namespace !== node.identity.namespace
      if (mayReference(found.identity, node, reference) && !isElsewhere) continue
      isDoubtful = true
      if (!found.isVirtual) this.#reportMisplaced(node, found.identity)
    }
    if (isDoubtful) this.#follower.enqueue(node)
  }

  #drop(node: Node, identity: Identity): void {
    this.#nodes.delete(node.uid)
    for (const { uid } of node.owners) disown(this.#nodes.get(uid), node)
    if (node.dependents.size > 0) this.absent.add(identity)
    for (const dependent of node.dependents) this.#follower.enqueue(dependent)
    for (const { uid } of node.owners) {
      const owner = this.#nodes.get(uid)
      if (owner?.isDeletingDependents === true) this.#follower.enqueue(owner)
    }
  }
}

const NONE: ReadonlySet<Node> = new Set()

function own(owner: Node, dependent: Node): void {
  if (owner.dependents === NONE) owner.dependents = new Set()
  ;(owner.dependents as Set<Node>).add(dependent)
}

function disown(owner: Node | undefined, dependent: Node): void {
  if (owner === undefined || owner.dependents === NONE) return
  ;(owner.dependents as Set<Node>).delete(dependent)
  if (owner.dependents.size === 0) owner.dependents = NONE
}

/** The dependents that block its foreground deletion. */
export function blockingDependents(node: Node): Node[] {
  return [...node.dependents].filter(({ owners }) =>
    owners.some(({ uid, blockOwnerDeletion }) => uid === node.uid && blockOwnerDeletion === true),
  )
}

/** Whether the reference can mean this object: a cluster-scoped object can own any object. */
function mayReference(identity: Identity, dependent: Node, reference: OwnerReference): boolean {
  const isReachable = identity.namespace === '' || identity.namespace === dependent.identity.namespace
  return isReachable && sameReference(identity, reference)
}

/** Splits dependents by whether their reference can mean this object. */
function partition({ dependents }: Node, identity: Identity): [matching: Node[], others: Node[]] {
  const matching: Node[] = []
  const others: Node[] = []
  for (const dependent of dependents) {
    const reference = dependent.owners.find(({ uid }) => uid === identity.uid)
    if (reference === undefined) continue
    if (mayReference(identity, dependent, reference)) matching.push(dependent)
    else others.push(dependent)
  }
  return [matching, others]
}

/** Round-robin, so that every variant is looked up. */
function nextIdentity(dependents: readonly Node[], { uid, ...refuted }: Identity): Identity {
  const beliefs = dependents
    .map(({ identity, owners }) => {
      const reference = owners.find((owner) => owner.uid === uid) as OwnerReference
      return identityIn(identity.namespace, reference)
    })
    .toSorted((a, b) => compareText(identityText(a), identityText(b)))
  const after = identityText({ ...refuted, uid })
  return beliefs.find((belief) => identityText(belief) > after) ?? (beliefs[0] as Identity)
}

function beginsWith(finalizer: string, object: KubeObject, old: KubeObject | undefined): boolean {
  const waits = (one: KubeObject): boolean => isBeingDeleted(one) && hasFinalizer(one, finalizer)
  return waits(object) && (old === undefined || !waits(old))
}
