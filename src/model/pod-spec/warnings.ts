/** What is allowed in a pod and most likely a mistake (pkg/api/pod/warnings.go, v1.36). */
import type { Container, NodeSelectorTerm, PodSpec, Volume } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go-text.ts'
import { semanticEqual } from '#meta/object.ts'
import { parseQuantity, quantityMilliValue } from '#meta/quantity.ts'
import { child, index, key } from '#meta/validation/field-error.ts'
import { labelValue } from '#meta/validation/names.ts'

import { addressWarnings } from './address-warnings.ts'
import { annotationOf, APP_ARMOR, appArmorOf, SECCOMP_CONTAINER, SECCOMP_POD } from './annotations.ts'
import { overlapWarnings } from './overlaps.ts'
import { portWarnings } from './port-warnings.ts'
import type { PodLike } from './rules.ts'
import { containersOf } from './walk.ts'

/** For pods with an empty `path`, for templates with theirs (`spec.template`). */
export function podWarnings(path: string, { metadata, spec }: PodLike): string[] {
  const at = (...names: readonly string[]): string => child(path, 'spec', ...names)
  return [
    ...nodeLabelWarnings(at, spec),
    ...annotationWarnings(child(path, 'metadata', 'annotations'), metadata.annotations),
    ...(spec.volumes ?? []).flatMap((volume, nth) => volumeWarnings(index(at('volumes'), nth), volume)),
    ...overlapWarnings(spec.volumes),
    ...repeatedWarnings(spec, at),
    ...fractionWarnings(at('overhead'), spec.overhead),
    ...seccompPodWarnings(path, { metadata, spec }),
    ...containersOf(spec, at()).flatMap(({ container, path: where }) => [
      ...profileWarnings(path, { metadata, spec }, container),
      ...containerWarnings(where, container),
    ]),
    ...portWarnings(containersOf(spec, at())),
    ...((spec.terminationGracePeriodSeconds ?? 0) < 0
      ? [`${at('terminationGracePeriodSeconds')}: must be >= 0; negative values are invalid and will be treated as 1`]
      : []),
    ...affinityWarnings(at('affinity'), spec),
    ...(spec.dnsConfig?.nameservers ?? []).flatMap((ip, nth) =>
      addressWarnings(index(at('dnsConfig', 'nameservers'), nth), ip),
    ),
    ...(spec.hostAliases ?? []).flatMap(({ ip }, nth) =>
      addressWarnings(child(index(at('hostAliases'), nth), 'ip'), ip),
    ),
  ]
}

const oldNodeLabels = new Map([
  ['beta.kubernetes.io/arch', 'deprecated since v1.14; use "kubernetes.io/arch" instead'],
  ['beta.kubernetes.io/os', 'deprecated since v1.14; use "kubernetes.io/os" instead'],
  ['failure-domain.beta.kubernetes.io/region', 'deprecated since v1.17; use "topology.kubernetes.io/region" instead'],
  ['failure-domain.beta.kubernetes.io/zone', 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'],
  ['beta.kubernetes.io/instance-type', 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'],
  ['app.kubernetes.io/created-by', 'deprecated since v1.9'],
  ['scheduler.alpha.kubernetes.io/preferAvoidPods', 'deprecated since v1.22; use Taints and Tolerations instead'],
  ['node-role.kubernetes.io/master', 'use "node-role.kubernetes.io/control-plane" instead'],
])

/** What to say about a label of nodes that has had its day; undefined for all others. */
export function oldNodeLabelText(label: string): string | undefined {
  return oldNodeLabels.get(label)
}

type PathOf = (...names: readonly string[]) => string

function nodeLabelWarnings(at: PathOf, spec: PodSpec): string[] {
  const { nodeSelector = {}, affinity, topologySpreadConstraints = [] } = spec
  const selected = Object.keys(nodeSelector).flatMap((label) => {
    const text = oldNodeLabels.get(label)
    return text === undefined ? [] : [`${key(at('nodeSelector'), label)}: ${text}`]
  })
  const required = at('affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms')
  const preferred = at('affinity', 'nodeAffinity', 'preferredDuringSchedulingIgnoredDuringExecution')
  const nodes = affinity?.nodeAffinity
  return [
    ...selected,
    ...(nodes?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []).flatMap((term, nth) =>
      termWarnings(index(required, nth), term, false),
    ),
    ...(nodes?.preferredDuringSchedulingIgnoredDuringExecution ?? []).flatMap(({ preference }, nth) =>
      termWarnings(child(index(preferred, nth), 'preference'), preference, true),
    ),
    ...topologySpreadConstraints.flatMap(({ topologyKey, labelSelector }, nth) => {
      const path = index(at('topologySpreadConstraints'), nth)
      const text = oldNodeLabels.get(topologyKey)
      return [
        ...(text === undefined ? [] : [`${child(path, 'topologyKey')}: ${topologyKey} is ${text}`]),
        ...(labelSelector === undefined ? [noSelector(path)] : []),
      ]
    }),
  ]
}

function noSelector(path: string): string {
  return `${child(path, 'labelSelector')}: a null labelSelector results in matching no pod`
}

function termWarnings(path: string, { matchExpressions = [] }: NodeSelectorTerm, checkValues: boolean): string[] {
  return matchExpressions.flatMap(({ key: label, values = [] }, at) => {
    const where = index(child(path, 'matchExpressions'), at)
    const text = oldNodeLabels.get(label)
    const old = text === undefined ? [] : [`${child(where, 'key')}: ${label} is ${text}`]
    if (!checkValues) return old
    const bad = values.flatMap((value, nth) =>
      labelValue(value).map((complaint) => `${index(child(where, 'values'), nth)}: ${value} is invalid, ${complaint}`),
    )
    return [...old, ...bad]
  })
}

const oldAnnotations = [
  ['scheduler.alpha.kubernetes.io/critical-pod', 'non-functional in v1.16+; use the "priorityClassName" field instead'],
  ['security.alpha.kubernetes.io/sysctls', 'non-functional in v1.11+; use the "sysctls" field instead'],
  ['security.alpha.kubernetes.io/unsafe-sysctls', 'non-functional in v1.11+; use the "sysctls" field instead'],
] as const

function annotationWarnings(path: string, annotations: Readonly<Record<string, string>> | undefined): string[] {
  return oldAnnotations
    .filter(([name]) => annotationOf(annotations, name) !== undefined)
    .map(([name, text]) => `${key(path, name)}: ${text}`)
}

/** The source, how upstream spells it here, and what became of it. */
const oldVolumes = [
  ['photonPersistentDisk', 'photonPersistentDisk', 'deprecated in v1.11, non-functional in v1.16+'],
  ['gitRepo', 'gitRepo', 'deprecated in v1.11, and disabled by default in v1.33+'],
  ['scaleIO', 'scaleIO', 'deprecated in v1.16, non-functional in v1.22+'],
  ['flocker', 'flocker', 'deprecated in v1.22, non-functional in v1.25+'],
  ['storageos', 'storageOS', 'deprecated in v1.22, non-functional in v1.25+'],
  ['quobyte', 'quobyte', 'deprecated in v1.22, non-functional in v1.25+'],
  ['glusterfs', 'glusterfs', 'deprecated in v1.25, non-functional in v1.26+'],
  ['cephfs', 'cephfs', 'deprecated in v1.28, non-functional in v1.31+'],
  ['rbd', 'rbd', 'deprecated in v1.28, non-functional in v1.31+'],
] as const

function volumeWarnings(path: string, volume: Volume): string[] {
  const old = oldVolumes
    .filter(([source]) => volume[source] !== undefined)
    .map(([, name, text]) => `${child(path, name)}: ${text}`)
  const claim = volume.ephemeral?.volumeClaimTemplate?.spec.resources
  const resources = child(path, 'ephemeral', 'volumeClaimTemplate', 'spec', 'resources')
  return [
    ...old,
    ...fractionWarnings(child(resources, 'requests'), claim?.requests, ['storage']),
    ...fractionWarnings(child(resources, 'limits'), claim?.limits, ['storage']),
  ]
}

function repeatedWarnings({ hostAliases = [], imagePullSecrets = [] }: PodSpec, at: PathOf): string[] {
  const names = imagePullSecrets.map(({ name = '' }) => name)
  const secrets = at('imagePullSecrets')
  return [
    ...repeated(
      at('hostAliases'),
      'ip',
      hostAliases.map(({ ip }) => ip),
    ),
    ...repeated(secrets, 'name', names),
    ...names.flatMap((name, nth) =>
      name === '' ? [`${child(index(secrets, nth), 'name')}: invalid empty name ""`] : [],
    ),
  ]
}

function repeated(path: string, what: string, values: readonly string[]): string[] {
  const seen = new Set<string>()
  return values.flatMap((value, nth) => {
    if (seen.has(value)) return [`${child(index(path, nth), what)}: duplicate ${what} ${goQuote(value)}`]
    seen.add(value)
    return []
  })
}

/** A part of a byte is nothing. */
function fractionWarnings(
  path: string,
  list: Readonly<Record<string, string>> | undefined,
  names: readonly string[] = ['memory', 'ephemeral-storage'],
): string[] {
  return names.flatMap((name) => {
    const amount = annotationOf(list, name)
    if (amount === undefined || quantityMilliValue(parseQuantity(amount)) % 1000 === 0) return []
    return [`${key(path, name)}: fractional byte value ${goQuote(amount)} is invalid, must be an integer`]
  })
}

const SECCOMP_FIELD = 'non-functional in v1.27+; use the "seccompProfile" field instead'

function seccompPodWarnings(path: string, { metadata, spec }: PodLike): string[] {
  if (spec.securityContext?.seccompProfile !== undefined) return []
  if (annotationOf(metadata.annotations, SECCOMP_POD) === undefined) return []
  return [`${key(child(path, 'metadata', 'annotations'), SECCOMP_POD)}: ${SECCOMP_FIELD}`]
}

function profileWarnings(path: string, { metadata, spec }: PodLike, container: Container): string[] {
  const annotations = child(path, 'metadata', 'annotations')
  const warnings: string[] = []
  const seccomp = SECCOMP_CONTAINER + container.name
  const { seccompProfile, appArmorProfile } = container.securityContext ?? {}
  if (seccompProfile === undefined && annotationOf(metadata.annotations, seccomp) !== undefined) {
    warnings.push(`${key(annotations, seccomp)}: ${SECCOMP_FIELD}`)
  }
  const name = APP_ARMOR + container.name
  const text = annotationOf(metadata.annotations, name)
  // A pod's annotations have become fields by now; whoever did that warns.
  if (path === '' || appArmorProfile !== undefined || text === undefined) return warnings
  const podWide = spec.securityContext?.appArmorProfile
  if (podWide === undefined || !semanticEqual(podWide, appArmorOf(text))) {
    warnings.push(appArmorWarning(annotations, name))
  }
  return warnings
}

export function appArmorWarning(annotations: string, name: string): string {
  return `${key(annotations, name)}: deprecated since v1.30; use the "appArmorProfile" field instead`
}

function containerWarnings(path: string, { resources, env = [] }: Container): string[] {
  const limits = child(path, 'resources', 'limits')
  const requests = child(path, 'resources', 'requests')
  const seen = new Set<string>()
  const hidden = env.flatMap(({ name, value = '', valueFrom }, at) => {
    if (!seen.has(name)) {
      seen.add(name)
      return []
    }
    // Building on the value before is what repeating a name is good for.
    const reference = `$(${name})`
    if (valueFrom === undefined && value !== reference && value.includes(reference)) return []
    const text = `hides previous definition of ${goQuote(name)}, which may be dropped when using apply`
    return [`${index(child(path, 'env'), at)}: ${text}`]
  })
  return [
    ...fractionWarnings(limits, resources?.limits, ['memory']),
    ...fractionWarnings(requests, resources?.requests, ['memory']),
    ...fractionWarnings(limits, resources?.limits, ['ephemeral-storage']),
    ...fractionWarnings(requests, resources?.requests, ['ephemeral-storage']),
    ...hidden,
  ]
}

function affinityWarnings(path: string, { affinity }: PodSpec): string[] {
  return (['podAffinity', 'podAntiAffinity'] as const).flatMap((name) => {
    const required = child(path, name, 'requiredDuringSchedulingIgnoredDuringExecution')
    const preferred = child(path, name, 'preferredDuringSchedulingIgnoredDuringExecution')
    const { requiredDuringSchedulingIgnoredDuringExecution: demands = [] } = affinity?.[name] ?? {}
    const { preferredDuringSchedulingIgnoredDuringExecution: wishes = [] } = affinity?.[name] ?? {}
    return [
      ...demands.flatMap(({ labelSelector }, at) =>
        labelSelector === undefined ? [noSelector(index(required, at))] : [],
      ),
      ...wishes.flatMap(({ podAffinityTerm }, at) =>
        podAffinityTerm.labelSelector === undefined ? [noSelector(child(index(preferred, at), 'podAffinityTerm'))] : [],
      ),
    ]
  })
}
