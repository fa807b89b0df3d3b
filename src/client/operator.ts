/**
 * An operator: looks at every object of a kind, and again whenever that or something it made has changed, until the world is
 * as the object wants it. Level-driven: it is told what to look at, never what happened. One object is looked at by one
 * worker at a time; what fails is tried again, later and later.
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
  /** Kinds of what it makes, with its object as controller: see `controllerRef`. */
  readonly owns?: readonly Kind[]
  /** Default: all of them. */
  readonly namespace?: string
  /** How many objects at once. Default: 2. */
  readonly workers?: number
  readonly random?: Random
  /** The object as last seen; it is shared and must not be changed. Not called for objects that are gone. */
  readonly reconcile: (object: T, signal: AbortSignal) => Promise<Requeue | void>
  /** Hears of everything that goes wrong, and is tried again. */
  readonly onError: (error: unknown) => void
}

/** Runs until the signal is aborted, and resolves when what was under way has ended. */
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
  // Nothing is done for want of knowing.
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
