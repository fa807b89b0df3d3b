/** Pods, and templates of pods, which workloads have. */
import type { Pod, PodSpec, PodTemplateSpec } from '#apis/core/v1.ts'
import { qosClassOf } from '#model/pod-resources.ts'

import { putContainers, putResources } from './containers.ts'
import type { Surroundings } from './describer.ts'
import { Page } from './page.ts'
import {
  controllerText,
  eventsAbout,
  putAnnotations,
  putEvents,
  putLabels,
  putSpread,
  putTolerations,
} from './sections.ts'
import { dateIfAny, sinceText } from './times.ts'
import { putVolumes } from './volumes.ts'

const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror'

export async function describePod(pod: Pod, around: Surroundings): Promise<string> {
  const page = new Page()
  putPodHead(page, pod, around.nowMs)
  putPodContainers(page, pod)
  putPodConditions(page, pod)
  const { spec } = pod
  putVolumes(page, spec.volumes)
  page.row(0, 'QoS Class', qosClassOf(pod))
  putLabels(page, 'Node-Selectors', spec.nodeSelector)
  putTolerations(page, spec.tolerations)
  putSpread(page, spec.topologySpreadConstraints)
  putSchedulingGroup(page, spec)
  if (around.showsEvents) {
    const { name = '', namespace, uid, annotations } = pod.metadata
    const subject = { name, namespace, uid: annotations?.[MIRROR_ANNOTATION] ?? uid }
    putEvents(page, await eventsAbout(around, subject), around.nowMs)
  }
  return page.text()
}

function putPodHead(page: Page, pod: Pod, nowMs: number): void {
  const { metadata, spec, status } = pod
  const { nodeName = '' } = spec
  page.fields(0, [
    ['Name', metadata.name],
    ['Namespace', metadata.namespace],
  ])
  page.rows(0, [
    ['Priority', spec.priority],
    ['Priority Class Name', spec.priorityClassName || undefined],
    ['Runtime Class Name', spec.runtimeClassName || undefined],
    ['Service Account', spec.serviceAccountName || undefined],
    ['Node', nodeName === '' ? '<none>' : `${nodeName}/${status.hostIP ?? ''}`],
    ['Start Time', dateIfAny(status.startTime)],
  ])
  putLabels(page, 'Labels', metadata.labels)
  putAnnotations(page, 'Annotations', metadata.annotations)
  putPhase(page, pod, nowMs)
  const seccomp = spec.securityContext?.seccompProfile
  page.row(0, 'SeccompProfile', seccomp?.type)
  if (seccomp?.type === 'Localhost') page.row(0, 'LocalhostProfile', seccomp.localhostProfile ?? '')
  putAddresses(page, pod)
  page.row(0, 'Controlled By', controllerText(pod))
  page.row(0, 'NominatedNodeName', status.nominatedNodeName || undefined)
}

function putPhase(page: Page, { metadata, status }: Pod, nowMs: number): void {
  const isOver = status.phase === 'Failed' || status.phase === 'Succeeded'
  if (metadata.deletionTimestamp !== undefined && !isOver) {
    page.row(0, 'Status', `Terminating (lasts ${sinceText(metadata.deletionTimestamp, nowMs)})`)
    page.row(0, 'Termination Grace Period', `${metadata.deletionGracePeriodSeconds ?? 0}s`)
  } else {
    page.row(0, 'Status', status.phase ?? '')
  }
  page.row(0, 'Reason', status.reason || undefined)
  page.row(0, 'Message', status.message || undefined)
}

function putAddresses(page: Page, { status }: Pod): void {
  const { podIP = '', podIPs = [] } = status
  page.row(0, 'IP', podIP)
  if (podIPs.length === 0) page.row(0, 'IPs', '<none>')
  else page.put(0, 'IPs:\n')
  for (const { ip } of podIPs) page.row(1, 'IP', ip)
}

function putPodContainers(page: Page, pod: Pod): void {
  const { spec, status } = pod
  if (spec.resources !== undefined) {
    page.put(0, 'Resources:\n')
    putResources(page, 1, spec.resources)
  }
  const { initContainers = [], containers, ephemeralContainers = [] } = spec
  if (initContainers.length > 0) {
    const statuses = status.initContainerStatuses
    putContainers(page, { label: 'Init Containers', containers: initContainers, statuses, pod })
  }
  putContainers(page, { label: 'Containers', containers, statuses: status.containerStatuses, pod })
  if (ephemeralContainers.length > 0) {
    const statuses = status.ephemeralContainerStatuses
    putContainers(page, { label: 'Ephemeral Containers', containers: ephemeralContainers, statuses, pod })
  }
}

function putPodConditions(page: Page, { spec, status }: Pod): void {
  const { conditions = [] } = status
  const gates = (spec.readinessGates ?? []).map(({ conditionType }) => {
    const found = conditions.find(({ type }) => type === conditionType)
    return { type: conditionType, status: found?.status ?? '<none>' }
  })
  for (const [label, list] of [
    ['Readiness Gates', gates],
    ['Conditions', conditions],
  ] as const) {
    if (list.length === 0) continue
    page.put(0, `${label}:\n`)
    page.line(1, 'Type', 'Status')
    for (const one of list) page.line(1, `${one.type} `, `${one.status} `)
  }
}

function putSchedulingGroup(page: Page, { schedulingGroup }: PodSpec, margin = ''): void {
  if (schedulingGroup === undefined) return
  page.put(0, `${margin}SchedulingGroup:\n`)
  page.row(1, 'PodGroupName', schedulingGroup.podGroupName ?? '')
}

/** Everything below `Pod Template:`. */
export function putPodTemplate(page: Page, template: PodTemplateSpec | undefined): void {
  page.put(0, 'Pod Template:\n')
  if (template === undefined) return page.put(1, '<unset>')
  const { metadata } = template
  putLabels(page, '  Labels', metadata?.labels)
  if (Object.keys(metadata?.annotations ?? {}).length > 0) putAnnotations(page, '  Annotations', metadata?.annotations)
  putTemplateSpec(page, template.spec ?? { containers: [] })
}

function putTemplateSpec(page: Page, spec: PodSpec): void {
  const margin = '  '
  const { initContainers = [], containers } = spec
  page.row(1, 'Service Account', spec.serviceAccountName || undefined)
  if (initContainers.length > 0) putContainers(page, { label: 'Init Containers', containers: initContainers, margin })
  putContainers(page, { label: 'Containers', containers, margin })
  putVolumes(page, spec.volumes, margin)
  putSpread(page, spec.topologySpreadConstraints, margin)
  page.row(1, 'Priority Class Name', spec.priorityClassName || undefined)
  putLabels(page, '  Node-Selectors', spec.nodeSelector)
  putTolerations(page, spec.tolerations, margin)
  putSchedulingGroup(page, spec, margin)
}
