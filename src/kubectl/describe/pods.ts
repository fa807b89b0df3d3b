/** Describes pods, and the pod templates of workloads. */
import type { Pod, PodSpec, PodTemplateSpec } from '#apis/core/v1.ts'
import { qosClassOf } from '#model/pod-resources.ts'

import { containerRows, resourceRows } from './containers.ts'
import { type DescribedKinds, describes } from './describer.ts'
import { eventRows, eventsAbout } from './events.ts'
import type { RelatedObjects } from './related.ts'
import { cells, ifSet, nested, orEmpty, type NestedRow, type Part, type Row, unlessEmpty } from './rows.ts'
import { annotationRow, controllerText, labelRow, labelRows, phaseText, spreadRow, tolerationRow } from './sections.ts'
import { dateIfAny } from './times.ts'
import { volumeRows } from './volumes.ts'

export const POD_KINDS: DescribedKinds = { Pod: describes('v1/pods', podRows, podEvents) }

function podRows(pod: Pod, { nowMs }: RelatedObjects): Part[] {
  const { metadata, spec, status } = pod
  const { nodeName = '' } = spec
  return [
    ['Name', orEmpty(metadata.name)],
    ['Namespace', orEmpty(metadata.namespace)],
    ['Priority', spec.priority],
    ['Priority Class Name', ifSet(spec.priorityClassName)],
    ['Runtime Class Name', ifSet(spec.runtimeClassName)],
    ['Service Account', ifSet(spec.serviceAccountName)],
    ['Node', nodeName === '' ? '<none>' : `${nodeName}/${status.hostIP ?? ''}`],
    ['Start Time', dateIfAny(status.startTime)],
    ...labelRows(pod),
    ...statusRows(pod, nowMs),
    ...seccompRows(spec),
    ['IP', orEmpty(status.podIP)],
    ['IPs', unlessEmpty(status.podIPs ?? [])?.map(({ ip }) => ['IP', ip]) ?? '<none>'],
    ['Controlled By', controllerText(pod)],
    ['NominatedNodeName', ifSet(status.nominatedNodeName)],
    ['Resources', spec.resources && resourceRows(spec.resources)],
    ['Init Containers', containerRows(spec.initContainers, status.initContainerStatuses, pod)],
    ['Containers', containerRows(spec.containers, status.containerStatuses, pod)],
    ['Ephemeral Containers', containerRows(spec.ephemeralContainers, status.ephemeralContainerStatuses, pod)],
    ['Readiness Gates', conditionLines(gatesOf(pod))],
    ['Conditions', conditionLines(status.conditions ?? [])],
    ['Volumes', unlessEmpty(volumeRows(spec.volumes)) ?? '<none>'],
    ['QoS Class', qosClassOf(pod)],
    labelRow('Node-Selectors', spec.nodeSelector),
    tolerationRow(spec.tolerations),
    spreadRow(spec.topologySpreadConstraints),
    ['SchedulingGroup', spec.schedulingGroup && [['PodGroupName', orEmpty(spec.schedulingGroup.podGroupName)]]],
  ]
}

const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror'

async function podEvents({ metadata }: Pod, around: RelatedObjects): Promise<Part[]> {
  const { name = '', namespace, uid, annotations } = metadata
  const subject = { name, namespace, uid: annotations?.[MIRROR_ANNOTATION] ?? uid }
  return eventRows(await eventsAbout(around, subject), around.nowMs)
}

function statusRows({ metadata, status }: Pod, nowMs: number): Part[] {
  const isOver = status.phase === 'Failed' || status.phase === 'Succeeded'
  const isTerminating = metadata.deletionTimestamp !== undefined && !isOver
  return [
    ['Status', isTerminating ? phaseText(metadata, status.phase, nowMs) : (status.phase ?? '')],
    ['Termination Grace Period', isTerminating ? `${metadata.deletionGracePeriodSeconds ?? 0}s` : undefined],
    ['Reason', ifSet(status.reason)],
    ['Message', ifSet(status.message)],
  ]
}

function seccompRows({ securityContext }: PodSpec): Part[] {
  const { type, localhostProfile } = securityContext?.seccompProfile ?? {}
  return [
    ['SeccompProfile', type],
    ['LocalhostProfile', type === 'Localhost' ? orEmpty(localhostProfile) : undefined],
  ]
}

interface Condition {
  readonly type: string
  readonly status: string
}

function gatesOf({ spec, status }: Pod): Condition[] {
  return (spec.readinessGates ?? []).map(({ conditionType }) => {
    const found = status.conditions?.find(({ type }) => type === conditionType)
    return { type: conditionType, status: found?.status ?? '<none>' }
  })
}

function conditionLines(conditions: readonly Condition[]): Part[] | undefined {
  if (conditions.length === 0) return undefined
  return [cells('Type', 'Status'), ...conditions.map(({ type, status }) => cells(`${type} `, `${status} `))]
}

/** Containers and volumes of a template: names are indented by one space more than their heading. */
function shallowRows(label: string, rows: readonly NestedRow[]): Part[] {
  if (rows.length === 0) return []
  return [`${label}:`, ...rows.flatMap(([name, parts]) => [` ${name}:`, nested(...parts)])]
}

export function podTemplateRow(template: PodTemplateSpec | undefined): Row {
  if (template === undefined) return ['Pod Template', [{ verbatim: '  <unset>' }]]
  const { metadata } = template
  const spec: PodSpec = template.spec ?? { containers: [] }
  const { schedulingGroup: group } = spec
  const hasAnnotations = Object.keys(metadata?.annotations ?? {}).length > 0
  return [
    'Pod Template',
    [
      labelRow('Labels', metadata?.labels),
      hasAnnotations ? annotationRow(metadata?.annotations) : undefined,
      ['Service Account', ifSet(spec.serviceAccountName)],
      ...shallowRows('Init Containers', containerRows(spec.initContainers) ?? []),
      ...(spec.containers.length === 0 ? ['Containers: <none>'] : []),
      ...shallowRows('Containers', containerRows(spec.containers) ?? []),
      ...((spec.volumes ?? []).length === 0 ? [['Volumes', '<none>'] as const] : []),
      ...shallowRows('Volumes', volumeRows(spec.volumes)),
      spreadRow(spec.topologySpreadConstraints),
      ['Priority Class Name', ifSet(spec.priorityClassName)],
      labelRow('Node-Selectors', spec.nodeSelector),
      tolerationRow(spec.tolerations),
      ...(group === undefined ? [] : ['SchedulingGroup:', ['PodGroupName', orEmpty(group.podGroupName)] as const]),
    ],
  ]
}
