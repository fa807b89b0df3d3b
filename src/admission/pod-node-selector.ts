/**
 * PodNodeSelector: adds the node selector of a namespace to its pods and restricts the labels they may select. Off by
 * default. Upstream's plugin/pkg/admission/podnodeselector, v1.36.
 */
import { type Namespace, Namespaces, type Pod } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { failure, forbiddenError, internalError } from '#meta/status-errors.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'
import { fieldPath } from '#meta/validation/field-path.ts'
import { qualifiedName, labelValue } from '#meta/validation/names.ts'

import { sentName } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

/**
 * `podNodeSelectorPluginConfig`: selectors as text, by namespace. A namespace's selector lists every label that its
 * pods may select; `clusterDefaultNodeSelector` applies to namespaces without the annotation.
 */
export type NodeSelectorsByNamespace = Readonly<Record<string, string>>

const ANNOTATION = 'scheduler.alpha.kubernetes.io/node-selector'
const CLUSTER_DEFAULT = 'clusterDefaultNodeSelector'

export function createPodNodeSelector(configured: NodeSelectorsByNamespace = {}): AdmissionPlugin {
  return defineAdmission({
    name: 'PodNodeSelector',
    on: ['CREATE'],
    resources: ['pods'],

    async mutate(attributes) {
      const { spec } = attributes.object as Pod
      const name = sentName(attributes)
      const given = await namespaceSelector(attributes, configured)
      checkConflict(name, given, spec.nodeSelector)
      const merged = new Map([...given, ...Object.entries(spec.nodeSelector ?? {})])
      if (merged.size > 0) spec.nodeSelector = Object.fromEntries(merged)
      checkWhitelist(name, attributes, configured)
    },
    async validate(attributes) {
      const { metadata, spec } = attributes.object as Pod
      const name = metadata.name ?? ''
      checkConflict(name, await namespaceSelector(attributes, configured), spec.nodeSelector)
      checkWhitelist(name, attributes, configured)
    },
  })
}

function checkConflict(name: string, given: ReadonlyMap<string, string>, own: Pod['spec']['nodeSelector'] = {}): void {
  const conflicts = Object.entries(own).some(([key, value]) => (given.get(key) ?? value) !== value)
  if (conflicts) throw refusePod(name, 'pod node label selector conflicts with its namespace node label selector')
}

function checkWhitelist(name: string, { object, namespace }: Attributes, configured: NodeSelectorsByNamespace): void {
  const whitelist = parseLabels(configuredFor(configured, namespace))
  const selected = Object.entries((object as Pod).spec.nodeSelector ?? {})
  if (whitelist.size === 0 || selected.every(([key, value]) => whitelist.get(key) === value)) return
  throw refusePod(name, 'pod node label selector labels conflict with its namespace whitelist')
}

function refusePod(name: string, why: string): Error {
  return forbiddenError({ group: '', resource: 'pods' }, name, why)
}

async function namespaceSelector(
  { objects, namespace }: Attributes,
  configured: NodeSelectorsByNamespace,
): Promise<ReadonlyMap<string, string>> {
  const found: Namespace | undefined = await objects.get(Namespaces, '', namespace)
  if (found === undefined) throw internalError(new Error(`namespace ${namespace} does not exist`))
  const annotated = found.metadata.annotations?.[ANNOTATION]
  return parseLabels(annotated ?? configuredFor(configured, CLUSTER_DEFAULT))
}

function configuredFor(configured: NodeSelectorsByNamespace, name: string): string {
  return Object.hasOwn(configured, name) ? (configured[name] ?? '') : ''
}

/** Parses `a=b,c=d` as labels. Throws StatusError 500 for an invalid selector, as upstream. */
function parseLabels(selector: string): ReadonlyMap<string, string> {
  if (selector === '') return new Map()
  return new Map(
    selector.split(',').map((part) => {
      const sides = part.split('=')
      if (sides.length !== 2) throw unreadable(`invalid selector: [${sides.join(' ')}]`)
      const [key = '', value = ''] = sides.map((side) => side.trim())
      const badKey = qualifiedName(key)
      if (badKey.length > 0) throw unreadable(fieldErrorText(fieldPath('<nil>').invalid(key, badKey.join('; '))))
      const badValue = labelValue(value)
      if (badValue.length > 0)
        throw unreadable(fieldErrorText(fieldPath(`[${key}]`).invalid(value, badValue.join('; '))))
      return [key, value] as const
    }),
  )
}

function unreadable(message: string): Error {
  return failure({ code: 500, message })
}
