/** The pod that is meant by a pod, or by what makes pods: `deploy/web`, `job/x`, `svc/y`. */
import type { Pod } from '#apis/core/v1.ts'
import type { ServedKind } from '#client/discovery.ts'
import type { Clock } from '#lib/clock.ts'
import { asSelector, type LabelSelector } from '#meta/label-selector.ts'
import { selectorFromLabels, selectorText } from '#meta/labels.ts'

import { select } from '../builder.ts'
import { type Invocation, usageError } from '../command.ts'
import { KubectlError } from '../errors.ts'
import type { AnyObject, Rest } from '../rest.ts'
import { queryText } from '../rest.ts'
import type { Files } from '../selecting.ts'
import { resourcePath } from '../surroundings.ts'
import type { PodOrder } from './pod-order.ts'

/** What the server has, and which kind it is of. */
export interface Named {
  readonly kind: ServedKind
  readonly object: AnyObject
}

export interface Naming {
  /** `NAME` is a pod unless it says otherwise. */
  readonly names: readonly string[]
  readonly type?: string
  readonly files?: Files
}

/** The one object that is named. Throws when there are several. */
export async function readNamed(
  invocation: Pick<Invocation, 'session' | 'cwd' | 'stdin'>,
  { names, type = 'pods', files }: Naming,
): Promise<Named[]> {
  const { session } = invocation
  const { namespace, isExplicit } = await session.namespace()
  const selection = await select({
    session,
    io: invocation,
    namespace,
    requireNamespace: isExplicit,
    ...(files !== undefined && { files }),
    ...(names.length > 0 && { resourceNames: { type, names } }),
  })
  const { infos, error } = await selection.infos()
  if (error !== undefined) throw error
  return infos.flatMap(({ kind, object }) => (object === undefined ? [] : [{ kind, object }]))
}

export interface Finding {
  readonly rest: Rest
  readonly clock: Clock
  readonly timeoutMs: number
  readonly order: PodOrder
  /** `cannot attach to`: stands before why an object has no pods. */
  readonly failure: string
}

/** Its pods, the one that is meant first. Waits for one to come. */
export async function podsOf({ kind, object }: Named, finding: Finding): Promise<Pod[]> {
  if (kind.group === '' && kind.kind === 'Pod') return [object as unknown as Pod]
  const selector = selectorOf({ kind, object }, finding.failure)
  const { namespace = '' } = object.metadata
  const path = resourcePath('v1/pods', namespace)
  const list = await finding.rest.json<PodList>(path + queryText({ labelSelector: selector }))
  const { items = [] } = list
  if (items.length > 0) return items.sort(finding.order)
  return [await firstToCome({ namespace, selector, resourceVersion: list.metadata.resourceVersion ?? '' }, finding)]
}

interface PodList {
  readonly metadata: { readonly resourceVersion?: string }
  readonly items?: Pod[]
}

interface Awaited {
  readonly namespace: string
  readonly selector: string
  readonly resourceVersion: string
}

async function firstToCome({ namespace, selector, resourceVersion }: Awaited, finding: Finding): Promise<Pod> {
  const limit = new AbortController()
  const timer = finding.clock.after(finding.timeoutMs, () => limit.abort())
  const query = { labelSelector: selector, resourceVersion }
  try {
    const events = finding.rest.watch({ kind: PODS, namespace }, { query, signal: limit.signal })
    for await (const { type, object } of events) {
      if (type === 'ADDED' || type === 'MODIFIED') return object as unknown as Pod
    }
  } catch (error) {
    if (!limit.signal.aborted) throw error
  } finally {
    timer.cancel()
  }
  throw new KubectlError('timed out waiting for the condition')
}

/** Pods are asked for so often that nobody looks up where they are. */
export const PODS: ServedKind = {
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  singular: 'pod',
  listKind: 'PodList',
  namespaced: true,
  shortNames: ['po'],
  categories: ['all'],
  verbs: [],
  subresources: [],
  isPreferred: true,
}

const BY_LABEL_SELECTOR = new Set([
  'apps/ReplicaSet',
  'apps/StatefulSet',
  'apps/DaemonSet',
  'apps/Deployment',
  'batch/Job',
])
const BY_LABELS = new Set(['/ReplicationController', '/Service'])

/** Throws KubectlError for what makes no pods. */
export function selectorOf({ kind, object }: Named, failure: string): string {
  const id = `${kind.group}/${kind.kind}`
  const { selector } = (object['spec'] ?? {}) as { selector?: LabelSelector | Record<string, string> }
  if (BY_LABEL_SELECTOR.has(id)) return selectorText(asSelector(selector))
  const goType = `*${kind.version}.${kind.kind}`
  if (!BY_LABELS.has(id)) throw new KubectlError(`${failure} ${goType}: selector for ${goType} not implemented`)
  if (kind.kind === 'Service' && Object.keys(selector ?? {}).length === 0) {
    const { name = '' } = object.metadata
    throw new KubectlError(`${failure} ${goType}: invalid service '${name}': Service is defined without a selector`)
  }
  return selectorText(selectorFromLabels(selector as Record<string, string>))
}

/** The pod to run a command in, or to forward ports to. */
export async function attachablePod(named: Named, finding: Omit<Finding, 'order' | 'failure'>): Promise<Pod> {
  const { activeLast } = await import('./pod-order.ts')
  const order: PodOrder = (one, other) => activeLast(other, one)
  const [pod] = await podsOf(named, { ...finding, order, failure: 'cannot attach to' })
  return pod as Pod
}

/** What upstream says of a `--pod-running-timeout` that is none. */
export function timeoutProblem(timeoutMs: number): string | undefined {
  return timeoutMs <= 0 ? '--pod-running-timeout must be higher than zero' : undefined
}

/** Throws it, with where to read on. */
export function checkTimeout(invocation: Pick<Invocation, 'path'>, timeoutMs: number): void {
  const problem = timeoutProblem(timeoutMs)
  if (problem !== undefined) throw usageError(invocation, problem)
}

/** The one object of a command that works on one. */
export function theOnly(named: readonly Named[], message: string): Named {
  const [first] = named
  if (first === undefined || named.length > 1) throw new KubectlError(message)
  return first
}
