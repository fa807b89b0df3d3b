/** Resolves the pod of a command from a pod or a workload: `deploy/web`, `job/x`, `svc/y`. */
import type { Pod } from '#apis/core/v1.ts'
import type { ServedKind } from '#client/discovery.ts'
import type { Clock } from '#lib/clock.ts'
import { asSelector, type LabelSelector } from '#meta/label-selector.ts'
import { selectorFromLabels, selectorText } from '#meta/labels.ts'

import { select } from '../builder/builder.ts'
import type { Files } from '../builder/select-options.ts'
import { type Invocation, usageError } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { resourcePath } from '../related-objects.ts'
import type { AnyObject, Rest } from '../session/rest.ts'
import { queryText } from '../session/rest.ts'
import type { PodOrder } from './pod-order.ts'

/** The object from the server, with its kind. */
export interface TargetObject {
  readonly kind: ServedKind
  readonly object: AnyObject
}

export interface TargetArguments {
  /** A plain `NAME` is a pod. */
  readonly names: readonly string[]
  readonly type?: string
  readonly files?: Files
}

/** The single named object. Throws for several. */
export async function readNamed(
  invocation: Pick<Invocation, 'session' | 'cwd' | 'stdin'>,
  { names, type = 'pods', files }: TargetArguments,
): Promise<TargetObject[]> {
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

export interface TargetOptions {
  readonly rest: Rest
  readonly clock: Clock
  readonly timeoutMs: number
  readonly order: PodOrder
  /** The prefix of the error for an object without pods: `cannot attach to`. */
  readonly failure: string
}

/** The pods of the object in order of preference. Waits for the first pod. */
export async function podsOf({ kind, object }: TargetObject, finding: TargetOptions): Promise<Pod[]> {
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

interface PodQuery {
  readonly namespace: string
  readonly selector: string
  readonly resourceVersion: string
}

async function firstToCome({ namespace, selector, resourceVersion }: PodQuery, finding: TargetOptions): Promise<Pod> {
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

/** Pods are so common that their kind is constant, without discovery. */
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

/** Throws KubectlError for a kind that creates no pods. */
export function selectorOf({ kind, object }: TargetObject, failure: string): string {
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

/** The pod for exec and port-forward. */
export async function attachablePod(
  named: TargetObject,
  finding: Omit<TargetOptions, 'order' | 'failure'>,
): Promise<Pod> {
  const { activeLast } = await import('./pod-order.ts')
  const order: PodOrder = (one, other) => activeLast(other, one)
  const [pod] = await podsOf(named, { ...finding, order, failure: 'cannot attach to' })
  return pod as Pod
}

/** Upstream's error for an invalid `--pod-running-timeout`. */
export function timeoutProblem(timeoutMs: number): string | undefined {
  return timeoutMs <= 0 ? '--pod-running-timeout must be higher than zero' : undefined
}

/** Throws the error with a reference to help. */
export function checkTimeout(invocation: Pick<Invocation, 'path'>, timeoutMs: number): void {
  const problem = timeoutProblem(timeoutMs)
  if (problem !== undefined) throw usageError(invocation, problem)
}

/** The single object of a command. */
export function theOnly(named: readonly TargetObject[], message: string): TargetObject {
  const [first] = named
  if (first === undefined || named.length > 1) throw new KubectlError(message)
  return first
}
