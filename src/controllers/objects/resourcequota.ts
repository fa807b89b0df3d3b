/**
 * ResourceQuota controller: recounts the usage of a quota after a change of its limits, after deletions, and
 * periodically. Admission (`admission/resource-quota`) charges additions with the same evaluators.
 */
import { PersistentVolumeClaims, Pods, type ResourceQuota, ResourceQuotas, Services } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { DeviceClasses, ResourceClaims } from '#apis/resource/v1.ts'
import { discover, KindMap } from '#client/discovery.ts'
import type { Informer } from '#client/informer.ts'
import { groupResourceText, parseGroupResource } from '#meta/kind.ts'
import { keyOf, type KubeObject, objectKey, semanticEqual } from '#meta/object.ts'
import { type Quantity, quantityOf } from '#meta/quantity.ts'
import { type Amounts, amountsOf } from '#model/pod-resources.ts'
import { addAmounts, asResourceList, onlyNamed, sameAmounts } from '#model/quota/amounts.ts'
import { createDeviceClaimEvaluator } from '#model/quota/device-claims.ts'
import { createCountEvaluator, type Evaluator, isWithinScopes } from '#model/quota/evaluator.ts'
import { createPodEvaluator } from '#model/quota/pods.ts'
import { serviceEvaluator } from '#model/quota/services.ts'
import { createVolumeClaimEvaluator } from '#model/quota/volume-claims.ts'
import { type Cache, NAMESPACE, namespaceOf } from '#reconcile/cache.ts'
import { itself, rule, EVENTS } from '#reconcile/controller.ts'
import { runPeriodically } from '#reconcile/periodic.ts'

import { perRun } from '../controller.ts'
import { type Controller, type ControllerContext, defineController, type Watch } from '../controller.ts'

/** The discovery period while a quota names an unknown resource. */
const DISCOVERY_MS = 30_000
/** Resources with a legacy name beside `count/<resource>`. */
const ALIASES: readonly string[] = ['configmaps', 'replicationcontrollers', 'secrets']
const COUNT = 'count/'

const countingOf = perRun((context) => new Counting(context))

export const resourceQuotaController: Controller = defineController({
  name: 'resourcequota-controller',
  aliases: ['resourcequota'],
  watches: [
    { ...itself(ResourceQuotas), concerns: hasNewLimits },
    ...[Pods, Services, PersistentVolumeClaims, ResourceClaims].map(replenishment),
  ],
  reads: [DeviceClasses],
  rules: [rule('*', '*', 'list watch'), rule('', 'resourcequotas/status', 'update'), EVENTS],

  async reconcile(key, context) {
    const { cache, client, signal } = context
    const quota = cache.get(ResourceQuotas, key)
    if (quota === undefined) return
    const { hard = {} } = quota.spec ?? {}
    const names = new Set(Object.keys(hard))
    const counted = await countingOf(context).usage(quota)
    const before = amountsOf(quota.status?.used)
    const used = onlyNamed(new Map([...before, ...counted]), names)
    const isKnown = quota.status?.hard !== undefined && quota.status.used !== undefined
    if (isKnown && semanticEqual(quota.status?.hard, hard) && sameAmounts(used, before)) return
    await client.updateStatus(ResourceQuotas, { ...quota, status: { hard, used: asResourceList(used) } }, { signal })
  },

  run(context) {
    const { cache, settings, enqueue } = context
    return runPeriodically(context, settings['resource-quota-sync-period'], 'Failed to count quotas', () => {
      for (const quota of cache.list(ResourceQuotas)) enqueue(objectKey(quota))
    })
  },
})

function hasNewLimits(quota: KubeObject, old: KubeObject): boolean {
  return !semanticEqual((quota as ResourceQuota).spec, (old as ResourceQuota).spec)
}

/** A deletion or a reduced object enqueues all quotas of its namespace. */
function replenishment(kind: Kind): Watch {
  return {
    kind,
    skipsAdded: true,
    keysOf: ({ metadata }, cache) => quotasIn(metadata.namespace ?? '', cache),
    concerns: (object, old) => !semanticEqual(countedOf(object), countedOf(old)),
  }
}

/** The fields that evaluators read. */
function countedOf(object: KubeObject): unknown {
  const { spec, status, metadata } = object as KubeObject & { spec?: object; status?: { phase?: string } }
  return { spec, status, deletionTimestamp: metadata.deletionTimestamp }
}

function quotasIn(namespace: string, cache: Cache): string[] {
  return cache.inNamespace(ResourceQuotas, namespace).map(objectKey)
}

class Counting {
  readonly #context: ControllerContext
  /** Informers of kinds with object count quotas, by resource and group. */
  readonly #counted = new Map<string, Informer<KubeObject>>()
  #kinds = new KindMap([])
  #discoveredMs = -Infinity
  /** Concurrent callers share one discovery. */
  #discovering: Promise<void> = Promise.resolve()

  constructor(context: ControllerContext) {
    this.#context = context
  }

  /** The current usage of every limit with an evaluator. */
  async usage(quota: ResourceQuota): Promise<Amounts> {
    const { cache } = this.#context
    const { namespace = '' } = quota.metadata
    const names = Object.keys(quota.spec?.hard ?? {})
    let used: Amounts = new Map()
    for (const [kind, evaluator] of await this.#evaluators()) {
      used = addAmounts(used, await sum(evaluator, quota, cache.inNamespace(kind, namespace)))
    }
    for (const resource of new Set(names.flatMap(countedResource))) {
      const informer = await this.#informer(resource)
      if (informer === undefined) continue
      const evaluator = createCountEvaluator(parseGroupResource(resource))
      used = addAmounts(used, await sum(evaluator, quota, informer.by(NAMESPACE, namespace)))
    }
    return used
  }

  async #evaluators(): Promise<[Kind, Evaluator][]> {
    const { cache, clock } = this.#context
    const shared = { nowMs: () => clock.now(), isEnabled: () => true }
    const objects = {
      get: <T extends KubeObject>(kind: Kind<T>, namespace: string, name: string): Promise<T | undefined> =>
        Promise.resolve(cache.get(kind, keyOf(namespace, name))),
      list: <T extends KubeObject>(kind: Kind<T>, namespace: string): Promise<readonly T[]> =>
        Promise.resolve(namespace === '' ? [...cache.list(kind)] : cache.inNamespace(kind, namespace)),
    }
    return [
      [Pods, createPodEvaluator(shared)],
      [Services, serviceEvaluator],
      [PersistentVolumeClaims, createVolumeClaimEvaluator(shared)],
      [ResourceClaims, await createDeviceClaimEvaluator({ ...shared, objects })],
      // Uses the cache of this controller: another watch might lag, and no event would follow.
      [ResourceQuotas, createCountEvaluator({ group: '', resource: 'resourcequotas' })],
    ]
  }

  /** Starts informers only for kinds with a limit. */
  async #informer(resource: string): Promise<Informer<KubeObject> | undefined> {
    const known = this.#counted.get(resource)
    if (known !== undefined) return this.#ready(known)
    const kind = await this.#kindOf(resource)
    if (kind === undefined) return undefined
    const { metadataOf, cache, enqueue } = this.#context
    const { informer } = metadataOf(kind, {
      deleted: ({ metadata }) => quotasIn(metadata.namespace ?? '', cache).forEach((key) => enqueue(key)),
    })
    informer.addIndex(NAMESPACE, namespaceOf)
    this.#counted.set(resource, informer)
    return this.#ready(informer)
  }

  async #ready(informer: Informer<KubeObject>): Promise<Informer<KubeObject> | undefined> {
    const { signal } = this.#context
    const { promise, resolve } = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => resolve(), { once: true })
    await Promise.race([informer.synced, promise])
    return informer.isSynced ? informer : undefined
  }

  async #kindOf(resource: string): Promise<Kind | undefined> {
    const { client, clock, signal } = this.#context
    const wanted = parseGroupResource(resource)
    if (this.#kinds.ofResource(wanted) === undefined && clock.elapsed() - this.#discoveredMs >= DISCOVERY_MS) {
      this.#discoveredMs = clock.elapsed()
      this.#discovering = discover(client, signal).then(({ kinds }) => void (this.#kinds = new KindMap(kinds)))
    }
    await this.#discovering
    const known = this.#kinds.ofResource(wanted)
    return known?.namespaced && known.verbs.includes('watch') ? known : undefined
  }
}

/** Kinds with their own evaluators. */
const COUNTED_ELSEWHERE: ReadonlySet<string> = new Set(
  [Pods, Services, PersistentVolumeClaims, ResourceClaims, ResourceQuotas].map(({ group, plural }) =>
    groupResourceText({ group, resource: plural }),
  ),
)

function countedResource(name: string): string[] {
  if (ALIASES.includes(name)) return [name]
  const resource = name.startsWith(COUNT) ? name.slice(COUNT.length) : ''
  return resource === '' || COUNTED_ELSEWHERE.has(resource) ? [] : [resource]
}

async function sum(evaluator: Evaluator, quota: ResourceQuota, objects: readonly KubeObject[]): Promise<Amounts> {
  const names = new Set(evaluator.matching(Object.keys(quota.spec?.hard ?? {})))
  let used: Amounts = new Map(Array.from(names, (name): [string, Quantity] => [name, quantityOf(0)]))
  if (names.size === 0) return used
  for (const object of objects) {
    if (isWithinScopes(evaluator, quota, object))
      used = addAmounts(used, onlyNamed(await evaluator.usage(object), names))
  }
  return used
}
