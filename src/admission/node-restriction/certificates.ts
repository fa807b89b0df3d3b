/**
 * NodeRestriction for certificate requests: a kubelet may request certificates only for itself and for pods on its
 * node.
 */
import type { CertificateSigningRequest } from '#apis/certificates/v1.ts'
import { Nodes, Pods, ServiceAccounts } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import type { KubeObject } from '#meta/object.ts'
import { failure } from '#meta/status-errors.ts'
import type { StatusError } from '#meta/status.ts'
import { readCertificateRequest } from '#model/certificate-requests.ts'

import { refuseEarly } from '../kit/refusal.ts'
import type { NodeWrite } from './node-write.ts'

const NODE_SIGNERS = new Set(['kubernetes.io/kubelet-serving', 'kubernetes.io/kube-apiserver-client-kubelet'])

export function admitCertificateRequest({ attributes, node, isEnabled }: NodeWrite): void {
  if (attributes.operation !== 'CREATE' || isEnabled('AllowInsecureKubeletCertificateSigningRequests')) return
  const request = attributes.object as CertificateSigningRequest
  if (!NODE_SIGNERS.has(request.spec.signerName)) return
  let commonName: string
  try {
    commonName = readCertificateRequest(request).subject.commonName
  } catch (error) {
    throw refuseEarly(attributes, `unable to parse csr: ${(error as Error).message}`)
  }
  if (commonName !== `system:node:${node}`) {
    throw refuseEarly(attributes, `can only create a node CSR with CN=system:node:${node}`)
  }
}

interface PodCertificateRequest extends KubeObject {
  readonly spec: {
    readonly nodeName: string
    readonly nodeUID: string
    readonly podName: string
    readonly podUID: string
    readonly serviceAccountName: string
    readonly serviceAccountUID: string
  }
}

export function admitPodCertificateRequest(write: NodeWrite): Promise<void> {
  const { attributes, isEnabled } = write
  const { operation, subresource } = attributes
  if (!isEnabled('PodCertificateRequest')) {
    throw refuseEarly(attributes, 'PodCertificateRequest feature gate is disabled')
  }
  if (operation !== 'CREATE') throw refuseEarly(attributes, `unexpected operation ${operation}`)
  if (subresource !== '') throw refuseEarly(attributes, `unexpected subresource ${subresource}`)
  return admitPodRequest(write)
}

async function admitPodRequest(write: NodeWrite): Promise<void> {
  const { attributes, node } = write
  const { spec } = attributes.object as PodCertificateRequest
  if (spec.nodeName !== node) {
    const why = `PodCertificateRequest.Spec.NodeName=${goQuote(spec.nodeName)}, which is not the requesting node ${goQuote(node)}`
    throw refuseEarly(attributes, why)
  }
  const pod = `${attributes.namespace}/${spec.podName}`
  const found = await attributes.objects.get(Nodes, '', node)
  if (found === undefined) throw unknown('node', node, node)
  if (found.metadata.uid !== spec.nodeUID) {
    const named = `names node UID ${goQuote(spec.nodeUID)}`
    const real = goQuote(found.metadata.uid ?? '')
    throw unsettled(
      `PodCertificateRequest for pod ${goQuote(pod)} ${named}, inconsistent with the running node (${real})`,
    )
  }
  await checkPod(write, pod)
  await checkAccount(write, pod)
}

async function checkPod({ attributes }: NodeWrite, path: string): Promise<void> {
  const { spec } = attributes.object as PodCertificateRequest
  const pod = await attributes.objects.get(Pods, attributes.namespace, spec.podName)
  if (pod === undefined) throw unknown('pod', path, spec.podName)
  const what = `PodCertificateRequest for pod ${goQuote(path)}`
  if (pod.metadata.uid !== spec.podUID) {
    const uids = `contains pod UID (${goQuote(spec.podUID)}) which differs from running pod ${goQuote(pod.metadata.uid ?? '')}`
    throw unsettled(`${what} ${uids}`)
  }
  if (pod.spec.nodeName !== spec.nodeName) {
    const why = `pod ${goQuote(path)} is not running on node ${goQuote(spec.nodeName)} named in the PodCertificateRequest`
    throw refuseEarly(attributes, why)
  }
  if (Object.hasOwn(pod.metadata.annotations ?? {}, 'kubernetes.io/config.mirror')) {
    throw refuseEarly(attributes, `pod ${goQuote(path)} is a mirror pod`)
  }
  const account = pod.spec.serviceAccountName ?? ''
  if (account === spec.serviceAccountName) return
  const names = `contains serviceAccountName (${goQuote(spec.serviceAccountName)}) that differs from running pod (${goQuote(account)})`
  throw refuseEarly(attributes, `${what} ${names}`)
}

async function checkAccount({ attributes }: NodeWrite, path: string): Promise<void> {
  const { serviceAccountName: name, serviceAccountUID } = (attributes.object as PodCertificateRequest).spec
  const account = await attributes.objects.get(ServiceAccounts, attributes.namespace, name)
  if (account === undefined) throw unknown('service account', `${attributes.namespace}/${name}`, name)
  const uid = account.metadata.uid ?? ''
  if (uid === serviceAccountUID) return
  const uids = `names service account UID ${goQuote(serviceAccountUID)}, which differs from the running service account (${goQuote(uid)})`
  throw unsettled(`PodCertificateRequest for pod ${goQuote(path)} ${uids}`)
}

/** Not a refusal: the named object may be about to be replaced, so the kubelet should retry. */
function unsettled(message: string): StatusError {
  return failure({ code: 500, message })
}

function unknown(what: string, path: string, name: string): StatusError {
  const missing = `${what.replace(' ', '')} ${goQuote(name)} not found`
  return unsettled(`while retrieving ${what} ${goQuote(path)} named in the PodCertificateRequest: ${missing}`)
}
