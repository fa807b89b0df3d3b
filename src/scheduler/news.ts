/** News that may let a pod fit that did not: what changed, in the words that plugins wait for. */
import type { Node, Pod } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { kindKey } from '#meta/kind.ts'
import { type KubeObject, semanticEqual } from '#meta/object.ts'
import { podRequests } from '#model/pod-resources.ts'

import { amountOf, amountsFrom } from './amounts.ts'
import type { Wake, WakeAction, WakeResource } from './framework.ts'

export interface News {
  readonly about: string
  readonly actions: readonly WakeAction[]
  readonly now: KubeObject | undefined
  readonly old: KubeObject | undefined
}

export function nameOf(resource: WakeResource): string {
  return typeof resource === 'string' ? resource : kindKey(resource)
}

export function newsOf(kind: Kind, now: KubeObject | undefined, old: KubeObject | undefined): News | undefined {
  const about = kindKey(kind)
  if (old === undefined) return { about, actions: ['add'], now, old }
  if (now === undefined) return { about, actions: ['delete'], now, old }
  return { about, actions: ['update'], now, old }
}

/** Undefined: nothing that any plugin looks at. */
export function newsOfNode(kind: Kind, now: Node | undefined, old: Node | undefined): News | undefined {
  if (now === undefined || old === undefined) return newsOf(kind, now, old)
  const actions = NODE_PARTS.flatMap(([action, part]) => (semanticEqual(part(now), part(old)) ? [] : [action]))
  return actions.length === 0 ? undefined : { about: kindKey(kind), actions, now, old }
}

const NODE_PARTS: readonly (readonly [action: WakeAction, part: (node: Node) => unknown])[] = [
  ['allocatable', ({ status }) => status.allocatable],
  ['labels', ({ metadata }) => metadata.labels],
  ['taints', ({ spec }) => [spec.unschedulable, spec.taints]],
  ['conditions', ({ status }) => (status.conditions ?? []).map((one) => [one.type, one.status])],
  ['annotations', ({ metadata }) => metadata.annotations],
  ['features', ({ status }) => status.declaredFeatures],
]

export function newsOfPod(
  about: 'AssignedPod' | 'WaitingPod' | 'TargetPod',
  now: Pod | undefined,
  old: Pod | undefined,
): News | undefined {
  if (old === undefined) return { about, actions: ['add'], now, old }
  if (now === undefined) return { about, actions: ['delete'], now, old }
  const actions: WakeAction[] = POD_PARTS.flatMap(([action, part]) =>
    semanticEqual(part(now), part(old)) ? [] : [action],
  )
  if (asksForLess(now, old)) actions.push('scaled-down')
  // Of the pod itself anything may matter.
  if (actions.length === 0 && about === 'TargetPod') actions.push('update')
  return actions.length === 0 ? undefined : { about, actions, now, old }
}

const POD_PARTS: readonly (readonly [action: WakeAction, part: (pod: Pod) => unknown])[] = [
  ['labels', ({ metadata }) => metadata.labels],
  ['tolerations', ({ spec }) => spec.tolerations],
  ['gates', ({ spec }) => spec.schedulingGates],
  ['claims', ({ status }) => status.resourceClaimStatuses],
]

/** What upstream calls it, where it is counted. */
export function labelOf({ about, actions: [action = 'update'] }: News): string {
  const isOfPod = about === 'TargetPod' || about === 'WaitingPod' || about === 'AssignedPod'
  const [, group = '', kind = isOfPod && about !== 'AssignedPod' ? 'UnschedulablePod' : about] = KIND.exec(about) ?? []
  const resource = group === '' ? kind : `${group}/${kind}`
  return resource + (ACTION_LABELS[action] ?? `Update${isOfPod ? POD_LABELS[action] : NODE_LABELS[action]}`)
}

const KIND = /^(.*)\/\w+, Kind=(.*)$/

type Labels = Readonly<Partial<Record<WakeAction, string>>>

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

function asksForLess(now: Pod, old: Pod): boolean {
  const [after, before] = [now, old].map((pod) => amountsFrom(podRequests(pod, { useStatus: true })))
  if (after === undefined || before === undefined) return false
  const names = ['cpu', 'memory', 'ephemeral-storage', ...(before.others?.keys() ?? [])]
  return names.some((name) => amountOf(after, name) < amountOf(before, name))
}

/** Whether somebody who waits for this has got news. `update` stands for any change. */
export function isHeard({ on, actions }: Wake, news: News): boolean {
  return nameOf(on) === news.about && news.actions.some((action) => isWaitedFor(actions, action))
}

function isWaitedFor(actions: readonly WakeAction[], action: WakeAction): boolean {
  if (actions.includes(action)) return true
  return action !== 'add' && action !== 'delete' && actions.includes('update')
}
