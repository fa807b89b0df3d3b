/**
 * Property, under stale caches and failing writes: no volume has two claims, no claim has two volumes, and finally
 * every matching pair is bound.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
} from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { deepCopy, type KubeObject, objectKey } from '#meta/object.ts'
import { modifiedError, notFoundError } from '#meta/status-errors.ts'
import { BIND_COMPLETED, hasAnnotation } from '#model/volumes/binding.ts'
import type { CacheIndex } from '#reconcile/cache.ts'

import type { ControllerContext } from '../../controller.ts'
import { type Binder, binderOf } from './binder.ts'
import { syncClaim } from './claims.ts'
import { syncVolume } from './volumes.ts'

type Fault = 'none' | 'lost' | 'unanswered'

/** A minimal server with versions, conflicts and claim validation. */
class Store {
  readonly objects = new Map<string, KubeObject>()
  readonly changes: string[] = []
  fault: Fault = 'none'
  #version = 0

  put(kind: Kind, object: KubeObject): KubeObject {
    const version = ++this.#version
    const metadata = { ...object.metadata, resourceVersion: String(version) }
    const stored = { ...deepCopy(object), metadata }
    this.objects.set(`${kind.plural}/${objectKey(object)}`, stored)
    this.changes.push(`${kind.plural}/${objectKey(object)}`)
    return stored
  }

  remove(kind: Kind, key: string): void {
    this.objects.delete(`${kind.plural}/${key}`)
    this.changes.push(`${kind.plural}/${key}`)
  }

  get(kind: Kind, key: string): KubeObject {
    const found = this.objects.get(`${kind.plural}/${key}`)
    if (found === undefined) throw notFoundError({ group: '', resource: kind.plural }, key)
    return found
  }

  update(kind: Kind, object: KubeObject, subresource: string | undefined): KubeObject {
    const { fault } = this
    this.fault = 'none'
    if (fault === 'lost') throw new Error('connection refused')
    const old = this.get(kind, objectKey(object)) as PersistentVolumeClaim
    if (old.metadata.resourceVersion !== object.metadata.resourceVersion) {
      throw modifiedError({ group: '', resource: kind.plural }, objectKey(object))
    }
    const next = object as PersistentVolumeClaim
    const { volumeName } = old.spec
    const isSpec = subresource === undefined
    if (isSpec && kind === PersistentVolumeClaims && volumeName !== undefined) {
      assert.equal(next.spec.volumeName, volumeName, 'a claim never changes its volume')
    }
    const merged = isSpec ? { ...next, status: old.status } : { ...old, status: next.status }
    const stored = this.put(kind, merged)
    this.check()
    if (fault === 'unanswered') throw new Error('connection reset')
    return stored
  }

  all<T extends KubeObject>(kind: Kind<T>): T[] {
    const mine = [...this.objects].filter(([key]) => key.startsWith(`${kind.plural}/`))
    return mine.map(([, object]) => object as T)
  }

  check(): void {
    const taken = new Set<string>()
    for (const claim of this.all(PersistentVolumeClaims)) {
      const { volumeName = '' } = claim.spec
      if (!hasAnnotation(claim, BIND_COMPLETED)) continue
      assert.ok(!taken.has(volumeName), `${volumeName} has two claims`)
      taken.add(volumeName)
      const volume = this.objects.get(`persistentvolumes/${volumeName}`) as PersistentVolume | undefined
      assert.equal(volume?.spec.claimRef?.uid, claim.metadata.uid, `${volumeName} is another claim's`)
    }
  }
}

/** A manager with a stale cache. */
class Manager {
  readonly #store: Store
  readonly #cached = new Map<string, KubeObject>()
  #cursor = 0
  readonly binder: Binder

  constructor(store: Store) {
    this.#store = store
    const list = <T extends KubeObject>(kind: Kind<T>): T[] =>
      [...this.#cached].filter(([key]) => key.startsWith(`${kind.plural}/`)).map(([, object]) => object as T)
    const cache = {
      get: (kind: Kind, key: string) => this.#cached.get(`${kind.plural}/${key}`),
      list,
      by: <T extends KubeObject>(kind: Kind<T>, { of }: CacheIndex<T>, value: string) =>
        list(kind).filter((object) => of(object).includes(value)),
    }
    const client = {
      get: (kind: Kind, { namespace, name }: { namespace?: string; name: string }) =>
        Promise.resolve().then(() => store.get(kind, namespace === undefined ? name : `${namespace}/${name}`)),
      update: (kind: Kind, object: KubeObject, { subresource }: { subresource?: string }) =>
        Promise.resolve().then(() => {
          const written = store.update(kind, object, subresource)
          // The next reconcile sees the write.
          this.#cached.set(`${kind.plural}/${objectKey(written)}`, written)
          return written
        }),
    }
    const context = {
      cache,
      client,
      clock: createVirtualClock(),
      event: () => undefined,
      signal: new AbortController().signal,
    }
    this.binder = binderOf(context as unknown as ControllerContext)
  }

  hear(count: number): void {
    for (; count > 0 && this.#cursor < this.#store.changes.length; count--) {
      const key = this.#store.changes[this.#cursor++] ?? ''
      const object = this.#store.objects.get(key)
      if (object === undefined) this.#cached.delete(key)
      else this.#cached.set(key, object)
    }
  }

  async look(kind: Kind, key: string): Promise<void> {
    const woken: string[] = []
    const isClaim = kind === PersistentVolumeClaims
    const work = isClaim ? syncClaim(this.binder, key) : syncVolume(this.binder, key, (claim) => woken.push(claim))
    // The manager would retry.
    await work.catch((error: unknown) => {
      if (error instanceof assert.AssertionError) throw error
    })
    for (const claim of woken) await this.look(PersistentVolumeClaims, claim)
  }
}

const sizes = fc.integer({ min: 1, max: 4 })
const claims = fc.array(fc.record({ size: sizes, asks: fc.option(fc.nat(3)) }), { minLength: 1, maxLength: 4 })
const volumes = fc.array(fc.record({ size: sizes, isKeptFor: fc.option(fc.nat(3)) }), { minLength: 1, maxLength: 4 })
const step = fc.record({
  manager: fc.nat(1),
  what: fc.constantFrom('claim', 'volume', 'hear', 'delete'),
  which: fc.nat(3),
  fault: fc.constantFrom<Fault>('none', 'none', 'lost', 'unanswered'),
})
type RandomStep = typeof step extends fc.Arbitrary<infer S> ? S : never

async function take(
  { manager, what, which, fault }: RandomStep,
  store: Store,
  managers: readonly Manager[],
): Promise<void> {
  const one = managers[manager] as Manager
  store.fault = fault
  if (what === 'hear') one.hear(which + 1)
  else if (what === 'claim') await one.look(PersistentVolumeClaims, `ns/c${which}`)
  else if (what === 'volume') await one.look(PersistentVolumes, `v${which}`)
  else if (fault === 'lost') store.remove(PersistentVolumeClaims, `ns/c${which}`)
}

async function converge(store: Store, manager: Manager): Promise<void> {
  store.fault = 'none'
  for (let round = 0; round < 8; round++) {
    manager.hear(Infinity)
    for (let which = 0; which < 4; which++) {
      await manager.look(PersistentVolumes, `v${which}`)
      manager.hear(Infinity)
      await manager.look(PersistentVolumeClaims, `ns/c${which}`)
      manager.hear(Infinity)
    }
  }
}

function fill(
  store: Store,
  wanted: typeof claims extends fc.Arbitrary<infer C> ? C : never,
  there: typeof volumes extends fc.Arbitrary<infer V> ? V : never,
): void {
  const access = { accessModes: ['ReadWriteOnce'], storageClassName: '' }
  for (const [which, { size, asks }] of wanted.entries()) {
    const named = asks === null ? {} : { volumeName: `v${asks}` }
    const spec = { ...access, resources: { requests: { storage: `${size}Gi` } }, ...named }
    const metadata = { namespace: 'ns', name: `c${which}`, uid: `u${which}` }
    store.put(PersistentVolumeClaims, { metadata, spec, status: { phase: 'Pending' } } as KubeObject)
  }
  for (const [which, { size, isKeptFor }] of there.entries()) {
    const kept = isKeptFor === null ? {} : { claimRef: { namespace: 'ns', name: `c${isKeptFor}` } }
    const spec = { ...access, capacity: { storage: `${size}Gi` }, persistentVolumeReclaimPolicy: 'Retain', ...kept }
    store.put(PersistentVolumes, {
      metadata: { name: `v${which}`, uid: `w${which}` },
      spec,
      status: { phase: 'Pending' },
    } as KubeObject)
  }
}

describe('PersistentVolume binder', () => {
  it('never binds a volume or claim twice, and finally stops writing', async () => {
    const steps = fc.array(step, { maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(claims, volumes, steps, async (wanted, there, happening) => {
        const store = new Store()
        fill(store, wanted, there)
        const managers = [new Manager(store), new Manager(store)]
        // Two concurrent steps, interleaved by write.
        for (let at = 0; at < happening.length; at += 2) {
          await Promise.all(happening.slice(at, at + 2).map((one) => take(one, store, managers)))
        }
        await converge(store, managers[0] as Manager)
        store.check()
        for (const { metadata, spec, status } of store.all(PersistentVolumeClaims)) {
          const { volumeName = '' } = spec
          const volume = store.objects.get(`persistentvolumes/${volumeName}`) as PersistentVolume | undefined
          if (status.phase !== 'Bound') continue
          assert.equal(volume?.spec.claimRef?.uid, metadata.uid)
          assert.equal(volume?.status.phase, 'Bound')
        }
        for (const { metadata, spec, status } of store.all(PersistentVolumes)) {
          const { claimRef } = spec
          const claim = store.objects.get(`persistentvolumeclaims/ns/${claimRef?.name}`) as
            | PersistentVolumeClaim
            | undefined
          const isTaken = (claimRef?.uid ?? '') !== ''
          if (!isTaken) assert.equal(status.phase, 'Available')
          else if (claim === undefined) assert.equal(status.phase, 'Released')
          else assert.equal(claim.spec.volumeName, metadata.name)
        }
      }),
      { numRuns: 300 },
    )
  })
})
