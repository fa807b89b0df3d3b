/**
 * PodSecurity: applies the Pod Security Standards by namespace. It refuses pods that violate the enforced standard and
 * warns authors of workloads whose pods would. Upstream's pod-security-admission, v1.36.
 */
import { type Namespace, Namespaces, type Pod, type PodTemplateSpec } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { Clock } from '#lib/clock.ts'
import { goQuote } from '#lib/go/text.ts'
import { firstByKey } from '#lib/repetition.ts'
import type { KubeObject } from '#meta/object.ts'
import { forbiddenError, internalError } from '#meta/status-errors.ts'
import { aggregateText } from '#meta/validation/field-error.ts'
import type { FieldError } from '#meta/validation/field-path.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'

import { type AdmissionPlugin, defineAdmission } from '../plugin.ts'
import { createPodSecurityMeter, type PodSecurityMeter } from './metrics.ts'
import { admitNamespace } from './namespaces.ts'
import {
  isFullyPrivileged,
  type LevelVersion,
  levelVersionText,
  parsePolicy,
  type Policy,
  PREFIX,
  PRIVILEGED,
  sameLevelVersion,
} from './policy.ts'
import { detailsText, type PodTemplate, violationsOf } from './standards.ts'

export interface Exemptions {
  readonly usernames?: readonly string[]
  readonly namespaces?: readonly string[]
  readonly runtimeClasses?: readonly string[]
}

export interface PodSecurityOptions {
  readonly clock: Clock
  readonly metrics?: ServerMeters | undefined
  /** The policy of namespaces without labels. Default: privileged. */
  readonly defaults?: Policy
  readonly exemptions?: Exemptions
}

const LENIENT: Policy = { enforce: PRIVILEGED, audit: PRIVILEGED, warn: PRIVILEGED }

const WORKLOADS = [
  'replicationcontrollers',
  'podtemplates',
  'replicasets.apps',
  'deployments.apps',
  'statefulsets.apps',
  'daemonsets.apps',
  'jobs.batch',
  'cronjobs.batch',
]

export function createPodSecurity(options: PodSecurityOptions): AdmissionPlugin {
  const { clock, metrics = createServerMeters(), defaults = LENIENT, exemptions = {} } = options
  const settings: Settings = { clock, defaults, exemptions, count: createPodSecurityMeter(metrics) }
  return defineAdmission({
    name: 'PodSecurity',
    on: ['CREATE', 'UPDATE'],
    resources: ['namespaces', 'pods', 'pods/ephemeralcontainers', 'pods/resize', ...WORKLOADS],

    validate(attributes) {
      if (attributes.kind.plural === 'namespaces') return admitNamespace(attributes, settings)
      const { namespaces = [], usernames = [] } = settings.exemptions
      if (namespaces.includes(attributes.namespace)) return exempt(attributes, settings, 'namespace')
      if (usernames.includes(attributes.user.name)) return exempt(attributes, settings, 'user')
      return attributes.kind.plural === 'pods' ? admitPod(attributes, settings) : admitWorkload(attributes, settings)
    },
  })
}

interface Settings extends Required<Omit<PodSecurityOptions, 'metrics'>> {
  readonly count: PodSecurityMeter
}

function exempt(attributes: Attributes, { count }: Settings, why: string): void {
  count.exempted(attributes)
  note(attributes, 'exempt', why)
}

function admitPod(attributes: Attributes, settings: Settings): void | Promise<void> {
  const pod = attributes.object as Pod
  const isMinor = attributes.operation === 'UPDATE' && !changesImages(pod, attributes.oldObject as Pod)
  // Only the audit annotation depends on it.
  if (isMinor && attributes.annotate === undefined) return
  return evaluatePod(attributes, pod, settings, isMinor)
}

async function evaluatePod(attributes: Attributes, pod: Pod, settings: Settings, isMinor: boolean): Promise<void> {
  const namespace = await namespaceOf(attributes)
  if (namespace === undefined) {
    settings.count.failed(attributes, true)
    throw internalError(new Error(lookupText(attributes)))
  }
  const { policy, errors } = parsePolicy(namespace.metadata.labels, settings.defaults)
  if (errors.length === 0 && isFullyPrivileged(policy)) {
    settings.count.evaluated(attributes, { mode: 'enforce', policy: policy.enforce, decision: 'allow' })
    return note(attributes, 'enforce-policy', levelVersionText(PRIVILEGED))
  }
  if (isMinor) return
  if (isExemptClass(pod, settings)) return exempt(attributes, settings, 'runtimeClass')
  noteErrors(attributes, errors, settings)
  note(attributes, 'enforce-policy', levelVersionText(policy.enforce))
  noteViolations(attributes, pod, policy, settings)
  enforce(attributes, pod, policy, settings)
  warn(attributes, pod, policy, settings)
}

/** For the audit log. */
function note({ annotate }: Attributes, name: string, value: string): void {
  annotate?.(PREFIX + name, value)
}

function noteErrors(attributes: Attributes, errors: readonly FieldError[], { count }: Settings): void {
  if (errors.length === 0) return
  count.failed(attributes, false)
  note(attributes, 'error', `Failed to parse policy: ${aggregateText(errors)}`)
}

/** Counted also without auditing. */
function noteViolations(attributes: Attributes, pod: PodTemplate, { audit }: Policy, { count }: Settings): void {
  const violations = violationsOf(pod, audit)
  if (violations.length === 0) return
  count.evaluated(attributes, { mode: 'audit', policy: audit, decision: 'deny' })
  note(attributes, 'audit-violations', wouldViolate(audit, violations))
}

function wouldViolate(standard: LevelVersion, violations: ReturnType<typeof violationsOf>): string {
  return `would violate PodSecurity ${goQuote(levelVersionText(standard))}: ${detailsText(violations)}`
}

function lookupText({ namespace }: Attributes): string {
  return `failed to lookup namespace ${goQuote(namespace)}`
}

async function admitWorkload(attributes: Attributes, settings: Settings): Promise<void> {
  const namespace = await namespaceOf(attributes)
  // Errors only affect warnings, so the request continues.
  if (namespace === undefined) {
    settings.count.failed(attributes, true)
    return note(attributes, 'error', `${lookupText(attributes)}: namespace ${goQuote(attributes.namespace)} not found`)
  }
  const { policy, errors } = parsePolicy(namespace.metadata.labels, settings.defaults)
  if (errors.length === 0 && policy.warn.level === 'privileged' && policy.audit.level === 'privileged') return
  const template = templateOf(attributes.object)
  if (template?.spec === undefined) return
  if (isExemptClass(template, settings)) return exempt(attributes, settings, 'runtimeClass')
  const pod = { ...template, metadata: template.metadata ?? {} }
  noteErrors(attributes, errors, settings)
  noteViolations(attributes, pod, policy, settings)
  warn(attributes, pod, policy, settings)
}

function namespaceOf({ objects, namespace }: Attributes): Promise<Namespace | undefined> {
  return objects.get(Namespaces, '', namespace)
}

function enforce(attributes: Attributes, pod: PodTemplate, { enforce }: Policy, { count }: Settings): void {
  const { kind, name } = attributes
  const violations = violationsOf(pod, enforce)
  const decision = violations.length === 0 ? 'allow' : 'deny'
  count.evaluated(attributes, { mode: 'enforce', policy: enforce, decision })
  if (violations.length === 0) return
  const why = `violates PodSecurity ${goQuote(levelVersionText(enforce))}: ${detailsText(violations)}`
  throw forbiddenError({ group: kind.group, resource: kind.plural }, name, why)
}

function warn(attributes: Attributes, pod: PodTemplate, policy: Policy, { count }: Settings): void {
  const { enforce, warn } = policy
  // The enforced policy has already been checked for pods.
  if (attributes.kind.plural === 'pods' && sameLevelVersion(enforce, warn)) return
  const violations = violationsOf(pod, warn)
  if (violations.length === 0) return
  count.evaluated(attributes, { mode: 'warn', policy: warn, decision: 'deny' })
  attributes.warn(wouldViolate(warn, violations))
}

function isExemptClass({ spec }: PodTemplate, { exemptions }: Settings): boolean {
  const { runtimeClassName = '' } = spec
  return runtimeClassName !== '' && (exemptions.runtimeClasses?.includes(runtimeClassName) ?? false)
}

interface Workload extends KubeObject {
  /** For a PodTemplate. */
  readonly template?: PodTemplateSpec
  readonly spec?: {
    readonly template?: PodTemplateSpec
    readonly jobTemplate?: { readonly spec?: { readonly template?: PodTemplateSpec } }
  }
}

/** The pod template of a kind. */
function templateOf(object: KubeObject | undefined): PodTemplateSpec | undefined {
  const { template, spec } = (object ?? {}) as Workload
  return template ?? spec?.template ?? spec?.jobTemplate?.spec?.template
}

/** Of a pod's mutable fields, only images and new containers can violate a standard. */
function changesImages({ spec }: Pod, { spec: old }: Pod): boolean {
  const ephemeral = firstByKey(old.ephemeralContainers ?? [], ({ name }) => name)
  return (
    (['containers', 'initContainers'] as const).some((list) => {
      const [now, before] = [spec[list] ?? [], old[list] ?? []]
      return now.length !== before.length || now.some(({ image }, at) => image !== before[at]?.image)
    }) ||
    (spec.ephemeralContainers ?? []).some(({ name, image }) => {
      const before = ephemeral.get(name)
      return before === undefined || before.image !== image
    })
  )
}
