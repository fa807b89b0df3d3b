/**
 * Maps changes of objects to cluster events that may make a pod schedulable, in upstream's terms of resource and
 * action.
 */
import { type Node, type Pod, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { type Cause, causeOf } from '#lib/causes.ts'
import { kindKey } from '#meta/kind.ts'
import { type KubeObject, semanticEqual } from '#meta/object.ts'
import { podRequests } from '#model/pod-resources.ts'

import { amountOf, amountsFrom } from '../cluster/amounts.ts'
import type { ActionType, ClusterEventWithHint, EventResource } from '../framework/framework.ts'

export interface ClusterEvent {
  readonly resource: string
  /** Of the object. */
  readonly kind: Kind
  readonly actions: readonly ActionType[]
  readonly now: KubeObject | undefined
  readonly old: KubeObject | undefined
}

export function nameOf(resource: EventResource): string {
  return typeof resource === 'string' ? resource : kindKey(resource)
}

export function objectEvent(
  kind: Kind,
  now: KubeObject | undefined,
  old: KubeObject | undefined,
): ClusterEvent | undefined {
  const resource = kindKey(kind)
  if (old === undefined) return { resource, kind, actions: ['add'], now, old }
  if (now === undefined) return { resource, kind, actions: ['delete'], now, old }
  return { resource, kind, actions: ['update'], now, old }
}

/** Undefined: no change that a plugin may register for. */
export function nodeEvent(kind: Kind, now: Node | undefined, old: Node | undefined): ClusterEvent | undefined {
  if (now === undefined || old === undefined) return objectEvent(kind, now, old)
  const actions = NODE_PARTS.flatMap(([action, part]) => (semanticEqual(part(now), part(old)) ? [] : [action]))
  return actions.length === 0 ? undefined : { resource: kindKey(kind), kind, actions, now, old }
}

const NODE_PARTS: readonly (readonly [action: ActionType, part: (node: Node) => unknown])[] = [
  ['allocatable', ({ status }) => status.allocatable],
  ['labels', ({ metadata }) => metadata.labels],
  ['taints', ({ spec }) => [spec.unschedulable, spec.taints]],
  ['conditions', ({ status }) => (status.conditions ?? []).map((one) => [one.type, one.status])],
  ['annotations', ({ metadata }) => metadata.annotations],
  ['features', ({ status }) => status.declaredFeatures],
]

export function podEvent(
  resource: 'AssignedPod' | 'WaitingPod' | 'TargetPod',
  now: Pod | undefined,
  old: Pod | undefined,
): ClusterEvent | undefined {
  if (old === undefined) return { resource, kind: Pods, actions: ['add'], now, old }
  if (now === undefined) return { resource, kind: Pods, actions: ['delete'], now, old }
  const actions: ActionType[] = POD_PARTS.flatMap(([action, part]) =>
    semanticEqual(part(now), part(old)) ? [] : [action],
  )
  if (requestsLess(now, old)) actions.push('scaled-down')
  // Any change of the pod itself may matter.
  if (actions.length === 0 && resource === 'TargetPod') actions.push('update')
  return actions.length === 0 ? undefined : { resource, kind: Pods, actions, now, old }
}

const POD_PARTS: readonly (readonly [action: ActionType, part: (pod: Pod) => unknown])[] = [
  ['labels', ({ metadata }) => metadata.labels],
  ['tolerations', ({ spec }) => spec.tolerations],
  ['gates', ({ spec }) => spec.schedulingGates],
  ['claims', ({ status }) => status.resourceClaimStatuses],
]

/** The version of the object that the event is about. */
export function causeOfEvent({ kind, now, old }: ClusterEvent): Cause | undefined {
  const object = now ?? old
  return object === undefined ? undefined : causeOf(kind, object)
}

/** Upstream's label for the event in metrics. */
export function labelOf({ resource, actions: [action = 'update'] }: ClusterEvent): string {
  const isOfPod = resource === 'TargetPod' || resource === 'WaitingPod' || resource === 'AssignedPod'
  const [, group = '', kind = isOfPod && resource !== 'AssignedPod' ? 'UnschedulablePod' : resource] =
    KIND.exec(resource) ?? []
  const label = group === '' ? kind : `${group}/${kind}`
  return label + (ACTION_LABELS[action] ?? `Update${isOfPod ? POD_LABELS[action] : NODE_LABELS[action]}`)
}

const KIND = /^(.*)\/\w+, Kind=(.*)$/

type Labels = Readonly<Partial<Record<ActionType, string>>>

const ACTION_LABELS: Labels = { add: 'Add', delete: 'Delete', update: 'Update' }
const NODE_LABELS: Labels = {
  allocatable: 'NodeAllocatable',
  labels: 'NodeLabel',
  taints: 'NodeTaint',
  conditions: 'NodeCondition',
  annotations: 'NodeAnnotation',
  features: 'NodeDeclaredFeature',
}
const POD_LABELS: Labels = {
  labels: 'PodLabel',
  'scaled-down': 'PodScaleDown',
  tolerations: 'PodToleration',
  gates: 'PodSchedulingGatesEliminated',
  claims: 'PodGeneratedResourceClaim',
}

function requestsLess(now: Pod, old: Pod): boolean {
  const [after, before] = [now, old].map((pod) => amountsFrom(podRequests(pod, { useStatus: true })))
  if (after === undefined || before === undefined) return false
  const names = ['cpu', 'memory', 'ephemeral-storage', ...(before.others?.keys() ?? [])]
  return names.some((name) => amountOf(after, name) < amountOf(before, name))
}

/** Whether the event matches the registration. `update` matches any change. */
export function matchesEvent({ resource, actions }: ClusterEventWithHint, event: ClusterEvent): boolean {
  return nameOf(resource) === event.resource && event.actions.some((action) => isWaitedFor(actions, action))
}

function isWaitedFor(actions: readonly ActionType[], action: ActionType): boolean {
  if (actions.includes(action)) return true
  return action !== 'add' && action !== 'delete' && actions.includes('update')
}
