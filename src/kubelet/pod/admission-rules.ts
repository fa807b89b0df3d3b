/**
 * Decides whether a node rejects a pod for reasons other than missing resources, with upstream's reasons and texts.
 * Pure.
 */
import type { ContainerPort, Node, Pod } from '#apis/core/v1.ts'
import { fitsAffinity, isRepelled, tolerates } from '#model/nodes/fit.ts'
import { qosClassOf } from '#model/pod-resources.ts'

import { sysctlFault } from './sysctls.ts'

export interface Rejection {
  readonly reason: string
  readonly text: string
}

/** Facts about the node that its Node object does not contain. */
export interface NodeTraits {
  /** Node conditions such as `MemoryPressure`. */
  readonly pressures?: readonly string[]
  readonly allowedSysctls?: readonly string[]
  /** Default: true. */
  readonly hasAppArmor?: boolean
  readonly isShuttingDown?: boolean
  /** Default: tolerations without the numeric operators (Lt, Gt). */
  readonly isTolerated?: typeof tolerates | undefined
}

type AdmissionRule = (pod: Pod, node: Node, traits: NodeTraits) => Rejection | undefined

const refuse = (isRefused: boolean, reason: string, text: string): Rejection | undefined =>
  isRefused ? { reason, text } : undefined

const predicate = (isRefused: boolean, name: string, why: string): Rejection | undefined =>
  refuse(isRefused, name, `Predicate ${name} failed: ${why}`)

const CRITICAL_PRIORITY = 2_000_000_000
const SOURCE = 'kubernetes.io/config.source'
const MIRROR = 'kubernetes.io/config.mirror'

/** True for a pod that the kubelet read from a file or a URL. */
export function isStatic({ metadata: { annotations = {} } }: Pick<Pod, 'metadata'>): boolean {
  return annotations[SOURCE] !== undefined && annotations[SOURCE] !== 'api'
}

/** True for a pod that is never evicted and may preempt others. */
export function isCritical(pod: Pick<Pod, 'metadata' | 'spec'>): boolean {
  const isMirror = pod.metadata.annotations?.[MIRROR] !== undefined
  return isStatic(pod) || isMirror || (pod.spec.priority ?? 0) >= CRITICAL_PRIORITY
}

const MEMORY_PRESSURE = { key: 'node.kubernetes.io/memory-pressure', effect: 'NoSchedule' }

const underPressure: AdmissionRule = (pod, _, { pressures = [] }) => {
  if (pressures.length === 0 || isCritical(pod)) return undefined
  const isMemoryOnly = pressures.length === 1 && pressures[0] === 'MemoryPressure'
  const { tolerations = [] } = pod.spec
  const isSpared =
    qosClassOf(pod) !== 'BestEffort' || tolerations.some((toleration) => tolerates(toleration, MEMORY_PRESSURE))
  return refuse(!isMemoryOnly || !isSpared, 'Evicted', `The node had condition: [${pressures.join(' ')}]. `)
}

const forbiddenSysctl: AdmissionRule = ({ spec }, _, { allowedSysctls }) => {
  for (const { name } of spec.securityContext?.sysctls ?? []) {
    const fault = sysctlFault(name, spec, allowedSysctls)
    if (fault !== undefined) return { reason: 'SysctlForbidden', text: `forbidden sysctl: ${fault}` }
  }
  return undefined
}

const otherOs: AdmissionRule = ({ metadata, spec }) => {
  const { 'kubernetes.io/os': label = 'linux' } = metadata.labels ?? {}
  const text = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
  if (label !== 'linux') return { reason: 'PodOSSelectorNodeLabelDoesNotMatch', text }
  const isOther = spec.os !== undefined && spec.os.name !== 'linux'
  return refuse(isOther, 'PodOSNotSupported', "Failed to admit pod as the OS field doesn't match node OS")
}

const strictGroups: AdmissionRule = ({ spec }, { status }) => {
  const isStrict = spec.securityContext?.supplementalGroupsPolicy === 'Strict'
  const isRefused = isStrict && status.features?.supplementalGroupsPolicy !== true
  const text = 'SupplementalGroupsPolicy=Strict is not supported in this node'
  return refuse(isRefused, 'SupplementalGroupsPolicyNotSupported', text)
}

const affinity: AdmissionRule = ({ spec }, node) =>
  predicate(!fitsAffinity(spec, node), 'NodeAffinity', "node(s) didn't match Pod's node affinity/selector")

const nodeName: AdmissionRule = ({ spec }, { metadata }) => {
  const isOther = spec.nodeName !== undefined && spec.nodeName !== metadata.name
  return predicate(isOther, 'NodeName', "node(s) didn't match the requested node name")
}

const taints: AdmissionRule = (pod, { spec }, { isTolerated }) => {
  const isAway = !isStatic(pod) && isRepelled(spec.taints, pod.spec.tolerations, ['NoExecute'], isTolerated)
  return predicate(isAway, 'TaintToleration', "node(s) had taints that the pod didn't tolerate")
}

const appArmor: AdmissionRule = ({ spec }, _, { hasAppArmor = true }) => {
  const { containers, initContainers = [], ephemeralContainers = [] } = spec
  const profiles = [spec, ...initContainers, ...containers, ...ephemeralContainers].map(
    ({ securityContext }) => securityContext?.appArmorProfile,
  )
  const isWanted = profiles.some((profile) => profile !== undefined && profile.type !== 'Unconfined')
  return refuse(isWanted && !hasAppArmor, 'AppArmor', 'Cannot enforce AppArmor: AppArmor is not enabled on the host')
}

const shutdown: AdmissionRule = (_, __, { isShuttingDown = false }) =>
  refuse(isShuttingDown, 'NodeShutdown', 'Pod was rejected as the node is shutting down.')

/** The rules checked before and after the check of resources. */
export const RULES_BEFORE: readonly AdmissionRule[] = [underPressure, forbiddenSysctl, otherOs, strictGroups]
export const RULES_AFTER: readonly AdmissionRule[] = [affinity, nodeName, taints, appArmor, shutdown]

export type HostPort = Pick<ContainerPort, 'hostPort' | 'hostIP' | 'protocol'>

export function hostPortsOf({ containers, initContainers = [] }: Pod['spec']): HostPort[] {
  const sidecars = initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always')
  return [...sidecars, ...containers].flatMap(({ ports = [] }) => ports).filter(({ hostPort = 0 }) => hostPort > 0)
}

const ANY = '0.0.0.0'

/** Undefined when all requested ports are free. */
export function takenPort(wanted: readonly HostPort[], taken: Iterable<HostPort>): Rejection | undefined {
  const all = [...taken]
  const isTaken = wanted.some((port) => all.some((other) => collide(port, other)))
  return predicate(isTaken, 'NodePorts', "node(s) didn't have free ports for the requested pod ports")
}

function collide(a: HostPort, b: HostPort): boolean {
  const [ipA, ipB] = [a.hostIP || ANY, b.hostIP || ANY]
  const isSame = a.hostPort === b.hostPort && (a.protocol ?? 'TCP') === (b.protocol ?? 'TCP')
  return isSame && (ipA === ipB || ipA === ANY || ipB === ANY)
}
