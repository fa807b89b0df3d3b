/** NodeRestriction for PersistentVolumeClaims: a kubelet may only report the progress of a volume expansion. */
import type { PersistentVolumeClaim } from '#apis/core/v1.ts'
import { compareText, goQuote } from '#lib/go/text.ts'
import { semanticEqual } from '#meta/object.ts'

import { refuseEarly } from '../kit/refusal.ts'
import type { NodeWrite } from './node-write.ts'

const OWN_METADATA = ['resourceVersion', 'managedFields']
const OWN_STATUS = ['capacity', 'conditions']
const OWN_EXPANSION = ['allocatedResources', 'allocatedResourceStatuses']

export function admitClaim({ attributes, node, isEnabled }: NodeWrite): void {
  const { subresource, operation } = attributes
  if (subresource !== 'status') throw refuseEarly(attributes, 'may only update PVC status')
  if (operation !== 'UPDATE') throw refuseEarly(attributes, `unexpected operation ${goQuote(operation)}`)
  const next = attributes.object as PersistentVolumeClaim
  const old = attributes.oldObject as PersistentVolumeClaim
  const ownStatus = isEnabled('RecoverVolumeExpansionFailure') ? [...OWN_STATUS, ...OWN_EXPANSION] : OWN_STATUS
  const changed = [
    ...changes('metadata', [next.metadata, old.metadata], OWN_METADATA),
    ...changes('spec', [next.spec, old.spec], []),
    ...changes('status', [next.status, old.status], ownStatus),
  ]
  if (changed.length === 0) return
  const rule = `node ${goQuote(node)} is not allowed to update fields other than status.quantity and status.conditions`
  throw refuseEarly(attributes, `${rule}: ${changed.join(', ')}`)
}

/** The paths that differ, other than `own`. */
function changes(
  path: string,
  pair: readonly [object | undefined, object | undefined],
  own: readonly string[],
): string[] {
  const [next, old] = pair.map((part) => new Map(Object.entries(part ?? {})))
  const fields = [...new Set([...(next?.keys() ?? []), ...(old?.keys() ?? [])])].filter((field) => !own.includes(field))
  return fields
    .filter((field) => !semanticEqual(next?.get(field), old?.get(field)))
    .sort(compareText)
    .map((field) => `${path}.${field}`)
}
