/** Warns about likely mistakes in a pod (pkg/api/pod/warnings.go, v1.36). */
import type { Container, NodeSelectorTerm, PodSpec, Volume } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { createRepetition } from '#lib/repetition.ts'
import { semanticEqual } from '#meta/object.ts'
import { parseQuantity, quantityMilliValue } from '#meta/quantity.ts'
import type { FieldPath } from '#meta/validation/field-path.ts'
import { labelValue } from '#meta/validation/names.ts'

import { annotationOf, APP_ARMOR, appArmorOf, SECCOMP_CONTAINER, SECCOMP_POD } from '../annotations.ts'
import type { PodLike } from '../rules.ts'
import { containersOf } from '../walk.ts'
import { addressWarnings } from './addresses.ts'
import { overlapWarnings } from './overlaps.ts'
import { portWarnings } from './ports.ts'

/** With an empty `path` for pods, `spec.template` for templates. */
export function podWarnings(path: FieldPath, { metadata, spec }: PodLike): string[] {
  const specPath = path.child('spec')
  const at = (name: string): FieldPath => specPath.child(name)
  return [
    ...nodeLabelWarnings(at, spec),
    ...annotationWarnings(path.child('metadata.annotations'), metadata.annotations),
    ...(spec.volumes ?? []).flatMap((volume, nth) => volumeWarnings(at('volumes').index(nth), volume)),
    ...overlapWarnings(spec.volumes),
    ...repeatedWarnings(spec, at),
    ...fractionWarnings(at('overhead'), spec.overhead),
    ...seccompPodWarnings(path, { metadata, spec }),
    ...containersOf(spec, specPath).flatMap(({ container, path: where }) => [
      ...profileWarnings(path, { metadata, spec }, container),
      ...containerWarnings(where, container),
    ]),
    ...portWarnings(containersOf(spec, specPath)),
    ...((spec.terminationGracePeriodSeconds ?? 0) < 0
      ? [`${at('terminationGracePeriodSeconds')}: must be >= 0; negative values are invalid and will be treated as 1`]
      : []),
    ...affinityWarnings(at('affinity'), spec),
    ...(spec.dnsConfig?.nameservers ?? []).flatMap((ip, nth) =>
      addressWarnings(at('dnsConfig.nameservers').index(nth), ip),
    ),
    ...(spec.hostAliases ?? []).flatMap(({ ip }, nth) => addressWarnings(at('hostAliases').index(nth).child('ip'), ip)),
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

/** The warning about a deprecated node label; undefined for others. */
export function oldNodeLabelText(label: string): string | undefined {
  return oldNodeLabels.get(label)
}

type PathOf = (name: string) => FieldPath

function nodeLabelWarnings(at: PathOf, spec: PodSpec): string[] {
  const { nodeSelector = {}, affinity, topologySpreadConstraints = [] } = spec
  const selected = Object.keys(nodeSelector).flatMap((label) => {
    const text = oldNodeLabels.get(label)
    return text === undefined ? [] : [`${at('nodeSelector').key(label)}: ${text}`]
  })
  const required = at('affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms')
  const preferred = at('affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution')
  const nodes = affinity?.nodeAffinity
  return [
    ...selected,
    ...(nodes?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []).flatMap((term, nth) =>
      termWarnings(required.index(nth), term, false),
    ),
    ...(nodes?.preferredDuringSchedulingIgnoredDuringExecution ?? []).flatMap(({ preference }, nth) =>
      termWarnings(preferred.index(nth).child('preference'), preference, true),
    ),
    ...topologySpreadConstraints.flatMap(({ topologyKey, labelSelector }, nth) => {
      const path = at('topologySpreadConstraints').index(nth)
      const text = oldNodeLabels.get(topologyKey)
      return [
        ...(text === undefined ? [] : [`${path.child('topologyKey')}: ${topologyKey} is ${text}`]),
        ...(labelSelector === undefined ? [noSelector(path)] : []),
      ]
    }),
  ]
}

function noSelector(path: FieldPath): string {
  return `${path.child('labelSelector')}: a null labelSelector results in matching no pod`
}

function termWarnings(path: FieldPath, { matchExpressions = [] }: NodeSelectorTerm, checkValues: boolean): string[] {
  return matchExpressions.flatMap(({ key: label, values = [] }, at) => {
    const where = path.child('matchExpressions').index(at)
    const text = oldNodeLabels.get(label)
    const old = text === undefined ? [] : [`${where.child('key')}: ${label} is ${text}`]
    if (!checkValues) return old
    const bad = values.flatMap((value, nth) =>
      labelValue(value).map((complaint) => `${where.child('values').index(nth)}: ${value} is invalid, ${complaint}`),
    )
    return [...old, ...bad]
  })
}

const oldAnnotations = [
  ['scheduler.alpha.kubernetes.io/critical-pod', 'non-functional in v1.16+; use the "priorityClassName" field instead'],
  ['security.alpha.kubernetes.io/sysctls', 'non-functional in v1.11+; use the "sysctls" field instead'],
  ['security.alpha.kubernetes.io/unsafe-sysctls', 'non-functional in v1.11+; use the "sysctls" field instead'],
] as const

function annotationWarnings(path: FieldPath, annotations: Readonly<Record<string, string>> | undefined): string[] {
  return oldAnnotations
    .filter(([name]) => annotationOf(annotations, name) !== undefined)
    .map(([name, text]) => `${path.key(name)}: ${text}`)
}

/** The source, upstream's spelling of it, and its replacement. */
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

function volumeWarnings(path: FieldPath, volume: Volume): string[] {
  const old = oldVolumes
    .filter(([source]) => volume[source] !== undefined)
    .map(([, name, text]) => `${path.child(name)}: ${text}`)
  const claim = volume.ephemeral?.volumeClaimTemplate?.spec.resources
  const resources = path.child('ephemeral.volumeClaimTemplate.spec.resources')
  return [
    ...old,
    ...fractionWarnings(resources.child('requests'), claim?.requests, ['storage']),
    ...fractionWarnings(resources.child('limits'), claim?.limits, ['storage']),
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
      name === '' ? [`${secrets.index(nth).child('name')}: invalid empty name ""`] : [],
    ),
  ]
}

function repeated(path: FieldPath, what: string, values: readonly string[]): string[] {
  const isRepeated = createRepetition()
  return values.flatMap((value, nth) => {
    if (isRepeated(value)) return [`${path.index(nth).child(what)}: duplicate ${what} ${goQuote(value)}`]
    return []
  })
}

/** Fractions of a byte have no meaning. */
function fractionWarnings(
  path: FieldPath,
  list: Readonly<Record<string, string>> | undefined,
  names: readonly string[] = ['memory', 'ephemeral-storage'],
): string[] {
  return names.flatMap((name) => {
    const amount = annotationOf(list, name)
    if (amount === undefined || quantityMilliValue(parseQuantity(amount)) % 1000 === 0) return []
    return [`${path.key(name)}: fractional byte value ${goQuote(amount)} is invalid, must be an integer`]
  })
}

const SECCOMP_FIELD = 'non-functional in v1.27+; use the "seccompProfile" field instead'

function seccompPodWarnings(path: FieldPath, { metadata, spec }: PodLike): string[] {
  if (spec.securityContext?.seccompProfile !== undefined) return []
  if (annotationOf(metadata.annotations, SECCOMP_POD) === undefined) return []
  return [`${path.child('metadata.annotations').key(SECCOMP_POD)}: ${SECCOMP_FIELD}`]
}

function profileWarnings(path: FieldPath, { metadata, spec }: PodLike, container: Container): string[] {
  const annotations = path.child('metadata.annotations')
  const warnings: string[] = []
  const seccomp = SECCOMP_CONTAINER + container.name
  const { seccompProfile, appArmorProfile } = container.securityContext ?? {}
  if (seccompProfile === undefined && annotationOf(metadata.annotations, seccomp) !== undefined) {
    warnings.push(`${annotations.key(seccomp)}: ${SECCOMP_FIELD}`)
  }
  const name = APP_ARMOR + container.name
  const text = annotationOf(metadata.annotations, name)
  // Annotations of a pod are fields by now; the conversion warns.
  if (path.isRoot || appArmorProfile !== undefined || text === undefined) return warnings
  const podWide = spec.securityContext?.appArmorProfile
  if (podWide === undefined || !semanticEqual(podWide, appArmorOf(text))) {
    warnings.push(appArmorWarning(annotations, name))
  }
  return warnings
}

export function appArmorWarning(annotations: FieldPath, name: string): string {
  return `${annotations.key(name)}: deprecated since v1.30; use the "appArmorProfile" field instead`
}

function containerWarnings(path: FieldPath, { resources, env = [] }: Container): string[] {
  const limits = path.child('resources.limits')
  const requests = path.child('resources.requests')
  const seen = new Set<string>()
  const hidden = env.flatMap(({ name, value = '', valueFrom }, at) => {
    if (!seen.has(name)) {
      seen.add(name)
      return []
    }
    // A repeated name may refer to its previous value.
    const reference = `$(${name})`
    if (valueFrom === undefined && value !== reference && value.includes(reference)) return []
    const text = `hides previous definition of ${goQuote(name)}, which may be dropped when using apply`
    return [`${path.child('env').index(at)}: ${text}`]
  })
  return [
    ...fractionWarnings(limits, resources?.limits, ['memory']),
    ...fractionWarnings(requests, resources?.requests, ['memory']),
    ...fractionWarnings(limits, resources?.limits, ['ephemeral-storage']),
    ...fractionWarnings(requests, resources?.requests, ['ephemeral-storage']),
    ...hidden,
  ]
}

function affinityWarnings(path: FieldPath, { affinity }: PodSpec): string[] {
  return (['podAffinity', 'podAntiAffinity'] as const).flatMap((name) => {
    const required = path.child(name).child('requiredDuringSchedulingIgnoredDuringExecution')
    const preferred = path.child(name).child('preferredDuringSchedulingIgnoredDuringExecution')
    const { requiredDuringSchedulingIgnoredDuringExecution: requiredTerms = [] } = affinity?.[name] ?? {}
    const { preferredDuringSchedulingIgnoredDuringExecution: preferredTerms = [] } = affinity?.[name] ?? {}
    return [
      ...requiredTerms.flatMap(({ labelSelector }, at) =>
        labelSelector === undefined ? [noSelector(required.index(at))] : [],
      ),
      ...preferredTerms.flatMap(({ podAffinityTerm }, at) =>
        podAffinityTerm.labelSelector === undefined ? [noSelector(preferred.index(at).child('podAffinityTerm'))] : [],
      ),
    ]
  })
}
