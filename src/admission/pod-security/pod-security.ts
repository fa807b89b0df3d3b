/**
 * PodSecurity: what pods may ask of their node, by namespace. Pods that break the enforced standard are refused; of
 * workloads whose pods would be, their authors are warned. Upstream's pod-security-admission, v1.36.
 */
import { type Namespace, Namespaces, type Pod, type PodTemplateSpec } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { Clock } from '#lib/clock.ts'
import { goQuote } from '#meta/go-text.ts'
import type { KubeObject } from '#meta/object.ts'
import { forbiddenError, internalError } from '#meta/status-errors.ts'

import { type AdmissionPlugin, defineAdmission } from '../plugin.ts'
import { admitNamespace } from './namespaces.ts'
import {
  isFullyPrivileged,
  levelVersionText,
  parsePolicy,
  type Policy,
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
      if (namespaces.includes(attributes.namespace) || usernames.includes(attributes.user.name)) return
      return attributes.kind.plural === 'pods' ? admitPod(attributes, settings) : admitWorkload(attributes, settings)
    },
  })
}

type Settings = Required<PodSecurityOptions>

function admitPod(attributes: Attributes, settings: Settings): void | Promise<void> {
  const pod = attributes.object as Pod
  if (attributes.operation === 'UPDATE' && !changesImages(pod, attributes.oldObject as Pod)) return
  return judgePod(attributes, pod, settings)
}

async function judgePod(attributes: Attributes, pod: Pod, settings: Settings): Promise<void> {
  const namespace = await namespaceOf(attributes)
  if (namespace === undefined) {
    throw internalError(new Error(`failed to lookup namespace ${goQuote(attributes.namespace)}`))
  }
  const { policy } = parsePolicy(namespace.metadata.labels, settings.defaults)
  if (isFullyPrivileged(policy) || isExemptClass(pod, settings)) return
  enforce(attributes, pod, policy)
  warn(attributes, pod, policy)
}

async function admitWorkload(attributes: Attributes, settings: Settings): Promise<void> {
  const namespace = await namespaceOf(attributes)
  // Only warnings are at stake, for which nothing is held up.
  if (namespace === undefined) return
  const { policy } = parsePolicy(namespace.metadata.labels, settings.defaults)
  if (policy.warn.level === 'privileged') return
  const template = templateOf(attributes.object)
  if (template?.spec === undefined || isExemptClass(template, settings)) return
  warn(attributes, { ...template, metadata: template.metadata ?? {} }, policy)
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
  attributes.warn(`would violate PodSecurity ${goQuote(levelVersionText(warn))}: ${detailsText(violations)}`)
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
