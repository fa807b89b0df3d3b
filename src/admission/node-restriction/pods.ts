/**
 * NodeRestriction for pods: a kubelet may create mirror pods, and may evict, delete and report the status of pods on
 * its node.
 */
import { type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { type OwnerReference, semanticEqual } from '#meta/object.ts'
import { notFoundError } from '#meta/status-errors.ts'

import { apiReference } from '../kit/pod-references.ts'
import { refuseEarly } from '../kit/refusal.ts'
import type { NodeWrite } from './node-write.ts'

const MIRROR = 'kubernetes.io/config.mirror'

export function admitPod(write: NodeWrite): void | Promise<void> {
  const { attributes, node } = write
  const { subresource, operation } = attributes
  switch (subresource) {
    case 'status':
      return admitStatus(write)
    case 'eviction':
      return admitEviction(write)
    case '':
      break
    default: {
      const why = `unexpected pod subresource ${goQuote(subresource)}, only 'status' and 'eviction' are allowed`
      throw refuseEarly(attributes, why)
    }
  }
  if (operation === 'CREATE') return admitCreate(write)
  if (operation !== 'DELETE') {
    const why = `unexpected operation ${goQuote(operation)}, node ${goQuote(node)} can only create and delete mirror pods`
    throw refuseEarly(attributes, why)
  }
  if ((attributes.oldObject as Pod).spec.nodeName === node) return
  throw refuseEarly(attributes, `node ${goQuote(node)} can only delete pods with spec.nodeName set to itself`)
}

async function admitCreate({ attributes, node }: NodeWrite): Promise<void> {
  const { metadata, spec } = attributes.object as Pod
  const me = `node ${goQuote(node)}`
  if (!Object.hasOwn(metadata.annotations ?? {}, MIRROR)) {
    throw refuseEarly(attributes, `pod does not have ${goQuote(MIRROR)} annotation, ${me} can only create mirror pods`)
  }
  if (spec.nodeName !== node)
    throw refuseEarly(attributes, `${me} can only create pods with spec.nodeName set to itself`)
  const owners = metadata.ownerReferences ?? []
  const complaint = ownerComplaint(owners, node)
  if (complaint !== undefined) throw refuseEarly(attributes, `${me} ${complaint}`)
  const found: Node | undefined = await attributes.objects.get(Nodes, '', node)
  if (found === undefined) throw notFoundError({ group: '', resource: 'node' }, node)
  const uid = found.metadata.uid ?? ''
  if (owners[0]?.uid !== uid) {
    throw refuseEarly(attributes, `node ${node} UID mismatch: expected ${owners[0]?.uid ?? ''} got ${uid}`)
  }
  requireNoReferences(attributes, me)
}

function ownerComplaint(owners: readonly OwnerReference[], node: string): string | undefined {
  if (owners.length > 1) return 'can only create pods with a single owner reference set to itself'
  const [owner] = owners
  if (owner === undefined || owner.apiVersion !== 'v1' || owner.kind !== 'Node' || owner.name !== node) {
    return 'can only create pods with an owner reference set to itself'
  }
  if (owner.controller !== true) return 'can only create pods with a controller owner reference set to itself'
  return owner.blockOwnerDeletion === true ? 'must not set blockOwnerDeletion on an owner reference' : undefined
}

/** A kubelet may read whatever a pod of its node references. */
function requireNoReferences(attributes: NodeWrite['attributes'], me: string): void {
  let resource: string | undefined
  try {
    resource = apiReference(attributes.object as Pod)
  } catch (error) {
    throw refuseEarly(attributes, `error checking mirror pod for API references: ${(error as Error).message}`)
  }
  if (resource !== undefined) throw refuseEarly(attributes, `${me} can not create pods that reference ${resource}`)
}

function admitStatus({ attributes, node }: NodeWrite): void {
  const me = `node ${goQuote(node)}`
  if (attributes.operation !== 'UPDATE') {
    throw refuseEarly(attributes, `unexpected operation ${goQuote(attributes.operation)}`)
  }
  const old = attributes.oldObject as Pod
  const next = attributes.object as Pod
  if (old.spec.nodeName !== node) {
    throw refuseEarly(attributes, `${me} can only update pod status for pods with spec.nodeName set to itself`)
  }
  if (!semanticEqual(old.metadata.labels, next.metadata.labels)) {
    throw refuseEarly(attributes, `${me} cannot update labels through pod status`)
  }
  if (!semanticEqual(old.status?.resourceClaimStatuses, next.status?.resourceClaimStatuses)) {
    throw refuseEarly(attributes, `${me} cannot update resource claim statues`)
  }
  if (!semanticEqual(old.status?.extendedResourceClaimStatus, next.status?.extendedResourceClaimStatus)) {
    throw refuseEarly(attributes, `${me} cannot update extended resource claim status`)
  }
}

async function admitEviction({ attributes, node }: NodeWrite): Promise<void> {
  const { operation, namespace, objects, object } = attributes
  if (operation !== 'CREATE') throw refuseEarly(attributes, `unexpected operation ${operation}`)
  const name = attributes.name || object?.metadata.name || ''
  if (name === '') throw refuseEarly(attributes, 'could not determine pod from request data')
  const pod = await objects.get(Pods, namespace, name)
  if (pod === undefined) throw notFoundError({ group: '', resource: 'pod' }, name)
  if (pod.spec.nodeName === node) return
  throw refuseEarly(attributes, `node ${node} can only evict pods with spec.nodeName set to itself`)
}
