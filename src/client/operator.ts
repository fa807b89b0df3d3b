/**
 * Runs a reconciler for every object of a kind, and again whenever the object or an owned object changes. One worker
 * handles an object at a time; failures are retried with backoff.
 */
import type { Kind } from '#apis/kinds.ts'
import { type Random, secureRandom } from '#lib/random.ts'
import { type Requeue, WorkQueue } from '#lib/work-queue.ts'
import { parseApiVersion } from '#meta/kind.ts'
import { controllerOf, keyOf, type KubeObject, objectKey } from '#meta/object.ts'

import type { ApiClient } from './api-client.ts'
import { Informer, type InformerOptions } from './informer.ts'

export interface Operator<T extends KubeObject> {
  readonly client: ApiClient
  readonly kind: Kind<T>
  /** Kinds of objects that have the reconciled object as controller: see `controllerRef`. */
  readonly owns?: readonly Kind[]
  /** Default: all namespaces. */
  readonly namespace?: string
  /** Concurrent reconciles. Default: 2. */
  readonly workers?: number
  readonly random?: Random
  /** Gets the cached object, which is shared and must not be changed. Not called for deleted objects. */
  readonly reconcile: (object: T, signal: AbortSignal) => Promise<Requeue | void>
  /** Gets every error; the operator retries afterwards. */
  readonly onError: (error: unknown) => void
}

/** Runs until the signal is aborted; resolves when running reconciles have ended. */
export async function runOperator<T extends KubeObject>(operator: Operator<T>, signal: AbortSignal): Promise<void> {
  const { client, kind, owns = [], workers = 2, reconcile, onError } = operator
  const queue = new WorkQueue<string>({ clock: client.clock })
  const own = new Informer(informerOptions(operator, kind))
  const add = (object: KubeObject): void => queue.add(objectKey(object))
  own.listen({ added: add, updated: add, deleted: add })
  const made = owns.map((one) => {
    const informer = new Informer(informerOptions(operator, one))
    const wake = (object: KubeObject): void => {
      const owner = controllerOf(object)
      if (owner?.kind !== kind.kind || parseApiVersion(owner.apiVersion).group !== kind.group) return
      queue.add(keyOf(kind.namespaced ? object.metadata.namespace : '', owner.name))
    }
    informer.listen({ added: wake, updated: wake, deleted: wake })
    return informer
  })
  const informers: readonly { run(signal: AbortSignal): Promise<void>; readonly synced: Promise<void> }[] = [
    own,
    ...made,
  ]
  const following = informers.map((informer) => informer.run(signal))
  // Reconcile only with synced caches.
  await Promise.race([Promise.all(informers.map(({ synced }) => synced)), Promise.all(following)])
  await queue.run({
    workers,
    signal,
    async handle(key) {
      const object = own.get(key)
      return object === undefined ? undefined : reconcile(object, signal)
    },
    onError: (error) => !signal.aborted && onError(error),
  })
  await Promise.all(following)
}

function informerOptions<T extends KubeObject, K extends KubeObject>(
  { client, namespace, random = secureRandom, onError }: Operator<T>,
  kind: Kind<K>,
): InformerOptions<K> {
  return { client, kind, random, onError, ...(namespace !== undefined && { selection: { namespace } }) }
}
