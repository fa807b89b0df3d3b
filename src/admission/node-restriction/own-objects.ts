/** NodeRestriction for Leases, CSINodes and ResourceSlices: a kubelet may write only those of its node. */
import type { ResourceSlice } from '#apis/resource/v1.ts'

import { refuseEarly } from '../kit/refusal.ts'
import type { NodeWrite } from './node-write.ts'

const LEASE_NAMESPACE = 'kube-node-lease'

export function admitLease({ attributes, node }: NodeWrite): void {
  if (attributes.namespace !== LEASE_NAMESPACE) {
    throw refuseEarly(attributes, `can only access leases in the "${LEASE_NAMESPACE}" system namespace`)
  }
  if (attributes.name === node) return
  throw refuseEarly(attributes, 'can only access node lease with the same name as the requesting node')
}

export function admitCsiNode({ attributes, node }: NodeWrite): void {
  if (attributes.name === node) return
  throw refuseEarly(attributes, 'can only access CSINode with the same name as the requesting node')
}

/** The node authorizer covers updates; it cannot see created objects, nor each object of a deletecollection. */
export function admitResourceSlice({ attributes, node }: NodeWrite): void {
  const { operation, object, oldObject } = attributes
  if (operation !== 'CREATE' && operation !== 'DELETE') return
  const slice = (operation === 'CREATE' ? object : oldObject) as ResourceSlice
  if (slice.spec?.nodeName === node) return
  const verb = operation.toLowerCase()
  throw refuseEarly(attributes, `can only ${verb} ResourceSlice with the same NodeName as the requesting node`)
}
