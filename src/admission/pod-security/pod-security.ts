/**
 * PodSecurity: what pods may ask of their node, by namespace. Pods that break the enforced standard are refused; of
 * workloads whose pods would be, their authors are warned. Upstream's pod-security-admission, v1.36.
 */
import { type Namespace, Namespaces, type Pod, type PodTemplateSpec } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { Clock } from '#lib/clock.ts'
import { goQuote } from '#lib/go-text.ts'
import type { KubeObject } from '#meta/object.ts'
import { forbiddenError, internalError } from '#meta/status-errors.ts'
import { aggregateText, type FieldError } from '#meta/validation/field-error.ts'

import { type AdmissionPlugin, defineAdmission } from '../plugin.ts'
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
  /** What counts in namespaces without labels. Default: everything is let in. */
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
  const settings = { clock: options.clock, defaults: options.defaults ?? LENIENT, exemptions: options.exemptions ?? {} }
  return defineAdmission({
    name: 'PodSecurity',
    on: ['CREATE', 'UPDATE'],
    resources: ['namespaces', 'pods', 'pods/ephemeralcontainers', 'pods/resize', ...WORKLOADS],

    validate(attributes) {
      if (attributes.kind.plural === 'namespaces') return admitNamespace(attributes, settings)
      const { namespaces = [], usernames = [] } = settings.exemptions
      if (namespaces.includes(attributes.namespace)) return note(attributes, 'exempt', 'namespace')
      if (usernames.includes(attributes.user.name)) return note(attributes, 'exempt', 'user')
      return attributes.kind.plural === 'pods' ? admitPod(attributes, settings) : admitWorkload(attributes, settings)
    },
  })
}

type Settings = Required<PodSecurityOptions>

function admitPod(attributes: Attributes, settings: Settings): void | Promise<void> {
  const pod = attributes.object as Pod
  const isMinor = attributes.operation === 'UPDATE' && !changesImages(pod, attributes.oldObject as Pod)
  // Nothing is at stake then but what the audit log says of it.
  if (isMinor && attributes.annotate === undefined) return
  return judgePod(attributes, pod, settings, isMinor)
}

async function judgePod(attributes: Attributes, pod: Pod, settings: Settings, isMinor: boolean): Promise<void> {
  const namespace = await namespaceOf(attributes)
  if (namespace === undefined) throw internalError(new Error(lookupText(attributes)))
  const { policy, errors } = parsePolicy(namespace.metadata.labels, settings.defaults)
  if (errors.length === 0 && isFullyPrivileged(policy)) {
    return note(attributes, 'enforce-policy', levelVersionText(PRIVILEGED))
  }
  if (isMinor) return
  if (isExemptClass(pod, settings)) return note(attributes, 'exempt', 'runtimeClass')
  noteErrors(attributes, errors)
  note(attributes, 'enforce-policy', levelVersionText(policy.enforce))
  noteViolations(attributes, pod, policy)
  enforce(attributes, pod, policy)
  warn(attributes, pod, policy)
}

/** For the audit log. */
function note({ annotate }: Attributes, name: string, value: string): void {
  annotate?.(PREFIX + name, value)
}

function noteErrors(attributes: Attributes, errors: readonly FieldError[]): void {
  if (errors.length > 0) note(attributes, 'error', `Failed to parse policy: ${aggregateText(errors)}`)
}

function noteViolations(attributes: Attributes, pod: PodTemplate, { audit }: Policy): void {
  if (attributes.annotate === undefined) return
  const violations = violationsOf(pod, audit)
  if (violations.length > 0) note(attributes, 'audit-violations', wouldViolate(audit, violations))
}

function wouldViolate(standard: LevelVersion, violations: ReturnType<typeof violationsOf>): string {
  return `would violate PodSecurity ${goQuote(levelVersionText(standard))}: ${detailsText(violations)}`
}

function lookupText({ namespace }: Attributes): string {
  return `failed to lookup namespace ${goQuote(namespace)}`
}

async function admitWorkload(attributes: Attributes, settings: Settings): Promise<void> {
  const namespace = await namespaceOf(attributes)
  // Only warnings are at stake, for which nothing is held up.
  if (namespace === undefined) {
    return note(attributes, 'error', `${lookupText(attributes)}: namespace ${goQuote(attributes.namespace)} not found`)
  }
  const { policy, errors } = parsePolicy(namespace.metadata.labels, settings.defaults)
  if (errors.length === 0 && policy.warn.level === 'privileged' && policy.audit.level === 'privileged') return
  const template = templateOf(attributes.object)
  if (template?.spec === undefined) return
  if (isExemptClass(template, settings)) return note(attributes, 'exempt', 'runtimeClass')
  const pod = { ...template, metadata: template.metadata ?? {} }
  noteErrors(attributes, errors)
  noteViolations(attributes, pod, policy)
  warn(attributes, pod, policy)
}

function namespaceOf({ objects, namespace }: Attributes): Promise<Namespace | undefined> {
  return objects.get(Namespaces, '', namespace)
}

function enforce({ kind, name }: Attributes, pod: PodTemplate, { enforce }: Policy): void {
  const violations = violationsOf(pod, enforce)
  if (violations.length === 0) return
  const why = `violates PodSecurity ${goQuote(levelVersionText(enforce))}: ${detailsText(violations)}`
  throw forbiddenError({ group: kind.group, resource: kind.plural }, name, why)
}

function warn(attributes: Attributes, pod: PodTemplate, policy: Policy): void {
  const { enforce, warn } = policy
  // What is enforced on pods has been passed already.
  if (attributes.kind.plural === 'pods' && sameLevelVersion(enforce, warn)) return
  const violations = violationsOf(pod, warn)
  if (violations.length === 0) return
  attributes.warn(wouldViolate(warn, violations))
}

function isExemptClass({ spec }: PodTemplate, { exemptions }: Settings): boolean {
  const { runtimeClassName = '' } = spec
  return runtimeClassName !== '' && (exemptions.runtimeClasses?.includes(runtimeClassName) ?? false)
}

interface Workload extends KubeObject {
  /** Of a PodTemplate. */
  readonly template?: PodTemplateSpec
  readonly spec?: {
    readonly template?: PodTemplateSpec
    readonly jobTemplate?: { readonly spec?: { readonly template?: PodTemplateSpec } }
  }
}

/** Where the kind at hand keeps its pod template. */
function templateOf(object: KubeObject | undefined): PodTemplateSpec | undefined {
  const { template, spec } = (object ?? {}) as Workload
  return template ?? spec?.template ?? spec?.jobTemplate?.spec?.template
}

/** Of what can change in a pod, only other images and further containers can break a standard. */
function changesImages({ spec }: Pod, { spec: old }: Pod): boolean {
  return (
    (['containers', 'initContainers'] as const).some((list) => {
      const [now, before] = [spec[list] ?? [], old[list] ?? []]
      return now.length !== before.length || now.some(({ image }, at) => image !== before[at]?.image)
    }) ||
    (spec.ephemeralContainers ?? []).some(({ name, image }) => {
      const before = old.ephemeralContainers?.find((one) => one.name === name)
      return before === undefined || before.image !== image
    })
  )
}
