/** Property: an object with a live owner is never deleted, in any order of events, requests, writes and failures. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { ConfigMaps, PersistentVolumes } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { createSeededRandom, type Random } from '#lib/random.ts'
import { apiVersionOf } from '#meta/kind.ts'
import type { KubeObject, OwnerReference } from '#meta/object.ts'
import { StatusError } from '#meta/status.ts'

import { Collector, type CollectorServer, type Propagation } from './collector.ts'
import { FOREGROUND, Graph, ORPHAN } from './graph.ts'
import { type Identity, identityOf } from './identity.ts'

const KINDS: readonly Kind[] = [ConfigMaps, PersistentVolumes]

interface StoredObject {
  readonly kind: Kind
  /** Replaced, never changed. */
  object: KubeObject
}

interface WatchUpdate {
  readonly kind: Kind
  readonly object: KubeObject
  readonly old: KubeObject | undefined
  readonly isGone: boolean
}

const failure = (code: number, reason: 'Conflict' | 'InternalError'): StatusError =>
  new StatusError({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code, reason, message: reason })

/** A server with late events, unordered answers and failures. */
class World {
  readonly #random: Random
  readonly stored = new Map<string, StoredObject>()
  /** References to every object that ever existed. */
  readonly #born: OwnerReference[] = []
  readonly #updates = new Map<Kind, WatchUpdate[]>(KINDS.map((kind) => [kind, []]))
  readonly #calls: (() => void)[] = []
  readonly #queue = new Set<string>()
  readonly #graph: Graph
  readonly #collector: Collector
  #version = 0
  #busy = 0
  mayFail = true
  readonly wronged: string[] = []

  constructor(seed: number) {
    this.#random = createSeededRandom(seed)
    const look = ({ uid }: { uid: string }): unknown => this.#queue.add(uid)
    this.#graph = new Graph({
      enqueue: look,
      orphan: ({ uid }) => this.#queue.add(`o:${uid}`),
      misplaced: () => undefined,
    })
    this.#collector = new Collector(this.#graph, this.#live(), look)
  }

  below(limit: number): number {
    return Math.floor(this.#random.float() * limit)
  }

  /** One random step. */
  async step(hasUsers: boolean): Promise<void> {
    const steps = [() => this.#deliver(), () => this.#answer(), () => this.#work()]
    if (hasUsers) steps.push(() => this.#use())
    steps[this.below(steps.length)]?.()
    for (let turns = 0; turns < 12; turns++) await Promise.resolve()
  }

  get isQuiet(): boolean {
    const isDelivered = [...this.#updates.values()].every((update) => update.length === 0)
    return isDelivered && this.#calls.length === 0 && this.#queue.size === 0 && this.#busy === 0
  }

  isSolid({ uid, name, kind }: OwnerReference): boolean {
    const owner = this.stored.get(uid)
    if (owner === undefined || owner.object.metadata.name !== name || owner.kind.kind !== kind) return false
    const { deletionTimestamp, finalizers = [] } = owner.object.metadata
    return deletionTimestamp === undefined || !finalizers.includes(FOREGROUND)
  }

  #deliver(): void {
    const update = this.#updates.get(KINDS[this.below(KINDS.length)] as Kind)?.shift()
    if (update === undefined) return
    if (update.isGone) this.#graph.remove(update.kind, update.object)
    else this.#graph.observe(update.kind, update.object, update.old)
  }

  #answer(): void {
    this.#calls.splice(this.below(this.#calls.length), 1)[0]?.()
  }

  #work(): void {
    const key = [...this.#queue][this.below(this.#queue.size)]
    if (key === undefined) return
    this.#queue.delete(key)
    this.#busy++
    const done = key.startsWith('o:') ? this.#collector.orphan(key.slice(2)) : this.#collector.process(key)
    void done
      .then((requeue) => requeue === undefined || this.#queue.add(key))
      .catch(() => this.#queue.add(key))
      .finally(() => this.#busy--)
  }

  /** Creates, deletes or changes owners. */
  #use(): void {
    const all = [...this.stored.values()]
    const one = all[this.below(all.length)]
    const what = this.below(4)
    if (one === undefined || what < 2) this.#create()
    else if (what === 2) this.#remove(one, (['Background', 'Foreground', 'Orphan'] as const)[this.below(3)] ?? 'Orphan')
    else if (one.kind === ConfigMaps)
      this.#write(one, { ownerReferences: this.#owners(Number(one.object.metadata.name?.slice(1))) })
  }

  #create(): void {
    const number = this.#born.length
    const kind = this.below(4) === 0 ? PersistentVolumes : ConfigMaps
    const metadata = {
      name: `n${number}`,
      uid: `u${number}`,
      ...(kind === ConfigMaps && { namespace: 'a' }),
      resourceVersion: String(++this.#version),
      ownerReferences: kind === ConfigMaps ? this.#owners(number) : [],
    }
    const stored = { kind, object: { metadata } }
    this.#born.push({ apiVersion: apiVersionOf(kind), kind: kind.kind, name: metadata.name, uid: metadata.uid })
    this.stored.set(metadata.uid, stored)
    this.#report(stored, undefined, false)
  }

  /** Only older objects, so that there are no cycles; some misnamed, some gone. */
  #owners(before: number): OwnerReference[] {
    if (before === 0) return []
    return Array.from({ length: this.below(3) }, () => {
      const reference = this.#born[this.below(before)] as OwnerReference
      const name = this.below(10) === 0 ? 'somebody' : reference.name
      return { ...reference, name, blockOwnerDeletion: this.below(2) === 0 }
    }).filter(({ uid }, at, all) => all.findIndex((other) => other.uid === uid) === at)
  }

  #write(stored: StoredObject, change: Partial<KubeObject['metadata']>): void {
    const old = stored.object
    const metadata = { ...old.metadata, ...change, resourceVersion: String(++this.#version) }
    stored.object = { metadata }
    const isGone = metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length === 0
    if (isGone) this.stored.delete(metadata.uid ?? '')
    this.#report(stored, old, isGone)
  }

  #remove(stored: StoredObject, propagation: Propagation): void {
    const policy = { Background: [], Foreground: [FOREGROUND], Orphan: [ORPHAN] }[propagation]
    const { deletionTimestamp, finalizers = [] } = stored.object.metadata
    if (deletionTimestamp === undefined) this.#write(stored, { deletionTimestamp: 'now', finalizers: policy })
    else this.#write(stored, { finalizers })
  }

  #report({ kind, object }: StoredObject, old: KubeObject | undefined, isGone: boolean): void {
    this.#updates.get(kind)?.push({ kind, object, old, isGone })
  }

  #live(): CollectorServer {
    const later = <T>(perform: () => T): Promise<T> =>
      new Promise((resolve, reject) => {
        this.#calls.push(() => {
          if (this.mayFail && this.below(4) === 0) reject(failure(500, 'InternalError'))
          else resolve(Promise.resolve().then(perform))
        })
      })
    const find = (identity: Identity): StoredObject | undefined => {
      const found = this.stored.get(identity.uid)
      const is = found === undefined ? undefined : identityOf(found.kind, found.object)
      const isThere = is?.namespace === '' || is?.namespace === identity.namespace
      return isThere && is?.name === identity.name ? found : undefined
    }
    const write = (identity: Identity, change: (stored: StoredObject) => Partial<KubeObject['metadata']>): void => {
      const found = find(identity)
      if (found !== undefined) this.#write(found, change(found))
    }
    const checked = ({ object }: StoredObject, resourceVersion: string): void => {
      if (object.metadata.resourceVersion !== resourceVersion) throw failure(409, 'Conflict')
    }
    return {
      isNamespaced: ({ kind }) => KINDS.find((one) => one.kind === kind)?.namespaced,
      get: (identity) => later(() => find(identity)?.object),
      delete: (identity, resourceVersion, propagation) =>
        later(() => {
          const found = find(identity)
          if (found === undefined) return
          checked(found, resourceVersion)
          const owners = found.object.metadata.ownerReferences ?? []
          if (owners.length === 0 || owners.some((owner) => this.isSolid(owner))) this.wronged.push(identity.uid)
          this.#remove(found, propagation)
        }),
      disown: (identity, uids) =>
        later(() =>
          write(identity, ({ object: { metadata } }) => ({
            ownerReferences: (metadata.ownerReferences ?? []).filter(({ uid }) => !uids.includes(uid)),
          })),
        ),
      unblock: (identity) =>
        later(() =>
          write(identity, ({ object: { metadata } }) => ({
            ownerReferences: (metadata.ownerReferences ?? []).map((one) => ({ ...one, blockOwnerDeletion: false })),
          })),
        ),
      setFinalizers: (identity, resourceVersion, finalizers) =>
        later(() => {
          const found = find(identity)
          if (found === undefined) return
          checked(found, resourceVersion)
          this.#write(found, { finalizers: [...finalizers] })
        }),
    }
  }
}

const STEPS = 300
const MAX_STEPS = 20_000

describe('garbage collector', () => {
  it('never deletes an object with an existing owner, and finally deletes all others', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), async (seed) => {
        const world = new World(seed)
        for (let steps = 0; steps < STEPS; steps++) await world.step(true)
        world.mayFail = false
        let steps = 0
        for (; steps < MAX_STEPS && !world.isQuiet; steps++) await world.step(false)
        assert.ok(steps < MAX_STEPS, 'it comes to rest')
        assert.deepEqual(world.wronged, [])
        for (const { object } of world.stored.values()) {
          const { deletionTimestamp, ownerReferences = [], uid } = object.metadata
          assert.equal(deletionTimestamp, undefined, `${uid} is through with its dependents`)
          const isKept = ownerReferences.length === 0 || ownerReferences.some((owner) => world.isSolid(owner))
          assert.ok(isKept, `${uid} is not garbage`)
        }
      }),
    )
  })

  it('deletes dependents of a deleted owner without a read, and reads only those that have changed', async () => {
    const requests: string[] = []
    const queue = new Set<string>()
    const look = ({ uid }: { uid: string }): unknown => queue.add(uid)
    const graph = new Graph({ enqueue: look, orphan: look, misplaced: () => undefined })
    const owner = { metadata: { namespace: 'a', name: 'owner', uid: 'u' } }
    const reference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: 'u' }
    const dependent = (name: string, more: object): KubeObject => ({
      metadata: { namespace: 'a', name, uid: name, resourceVersion: '7', ownerReferences: [reference], ...more },
    })
    const refuse = (): never => assert.fail('nothing else is done')
    const live: CollectorServer = {
      isNamespaced: () => true,
      async get({ name }) {
        requests.push(`get ${name}`)
        return dependent(name, { resourceVersion: '8', ownerReferences: [] })
      },
      async delete({ name }, version, propagation) {
        requests.push(`delete ${name} ${version} ${propagation}`)
        if (name === 'changed') throw failure(409, 'Conflict')
      },
      disown: refuse,
      unblock: refuse,
      setFinalizers: refuse,
    }
    graph.observe(ConfigMaps, owner, undefined)
    for (const [name, more] of [
      ['one', {}],
      ['two', { finalizers: [ORPHAN] }],
      ['changed', {}],
    ] as const)
      graph.observe(ConfigMaps, dependent(name, more), undefined)
    graph.remove(ConfigMaps, owner)
    const collector = new Collector(graph, live, look)
    for (const uid of queue) await collector.process(uid)
    assert.deepEqual(requests, [
      'delete one 7 Background',
      'delete two 7 Orphan',
      'delete changed 7 Background',
      'get changed',
    ])
  })
})
