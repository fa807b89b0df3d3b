/**
 * NodeRestriction for Nodes: a kubelet may write only its own Node, and cannot set labels and taints that attract pods.
 */
import type { Node } from '#apis/core/v1.ts'
import { compareText, goQuote } from '#lib/go/text.ts'
import { semanticEqual } from '#meta/object.ts'

import { refuseEarly } from '../kit/refusal.ts'
import type { NodeWrite } from './node-write.ts'

export function admitNode(write: NodeWrite): void {
  const { attributes, node } = write
  const { name, operation } = attributes
  if (name !== node) {
    throw refuseEarly(attributes, `node ${goQuote(node)} is not allowed to modify node ${goQuote(name)}`)
  }
  if (operation === 'CREATE') admitCreate(write)
  if (operation === 'UPDATE') admitUpdate(write)
}

function admitCreate({ attributes, node }: NodeWrite): void {
  const { metadata, spec } = attributes.object as Node
  const me = `node ${goQuote(node)}`
  if (spec?.configSource !== undefined) {
    throw refuseEarly(attributes, `${me} is not allowed to create pods with a non-nil configSource`)
  }
  const labels = forbiddenLabels(metadata.labels, undefined)
  if (labels.length === 0) return
  throw refuseEarly(attributes, `${me} is not allowed to set the following labels: ${labels.join(', ')}`)
}

function admitUpdate({ attributes, node }: NodeWrite): void {
  const next = attributes.object as Node
  const old = attributes.oldObject as Node
  const me = `node ${goQuote(node)}`
  const source = next.spec?.configSource
  if (source !== undefined && !semanticEqual(source, old.spec?.configSource)) {
    throw refuseEarly(attributes, `${me} is not allowed to update configSource to a new non-nil configSource`)
  }
  if (!semanticEqual(next.spec?.taints, old.spec?.taints)) {
    throw refuseEarly(attributes, `${me} is not allowed to modify taints`)
  }
  if (!semanticEqual(next.metadata.ownerReferences, old.metadata.ownerReferences)) {
    throw refuseEarly(attributes, `${me} is not allowed to modify ownerReferences`)
  }
  const labels = forbiddenLabels(next.metadata.labels, old.metadata.labels)
  if (labels.length > 0) throw refuseEarly(attributes, `is not allowed to modify labels: ${labels.join(', ')}`)
}

type Labels = Readonly<Record<string, string>>

/** The changed labels that the kubelet may not change, in order. */
function forbiddenLabels(next: Labels = {}, old: Labels = {}): string[] {
  const changed = [...new Set([...Object.keys(next), ...Object.keys(old)])].filter(
    (key) => Object.hasOwn(next, key) !== Object.hasOwn(old, key) || next[key] !== old[key],
  )
  return changed.filter(isForbidden).sort(compareText)
}

const OWN_LABELS = new Set([
  'kubernetes.io/hostname',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
])

function isForbidden(key: string): boolean {
  const slash = key.indexOf('/')
  const domain = slash < 0 ? '' : key.slice(0, slash)
  if (isWithin(domain, 'node-restriction.kubernetes.io')) return true
  if (!isWithin(domain, 'kubernetes.io') && !isWithin(domain, 'k8s.io')) return false
  return !OWN_LABELS.has(key) && !isWithin(domain, 'kubelet.kubernetes.io') && !isWithin(domain, 'node.kubernetes.io')
}

function isWithin(domain: string, parent: string): boolean {
  return domain === parent || domain.endsWith(`.${parent}`)
}
