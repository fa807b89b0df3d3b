/**
 * NodeRestriction for service account tokens: a kubelet may request a token only for a pod on its node. The pod or one
 * of its CSI drivers must use the audience.
 */
import type { TokenRequest } from '#apis/authentication/v1.ts'
import { PersistentVolumeClaims, PersistentVolumes, type Pod, Pods, type Volume } from '#apis/core/v1.ts'
import { CSIDrivers } from '#apis/storage/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { resourceAccess } from '#auth/authorizer.ts'
import { goQuote } from '#lib/go/text.ts'
import { notFoundError } from '#meta/status-errors.ts'

import { aggregate, refuseEarly } from '../kit/refusal.ts'
import type { NodeWrite } from './node-write.ts'

export function admitToken(write: NodeWrite): void | Promise<void> {
  const { operation, subresource } = write.attributes
  return operation === 'CREATE' && subresource === 'token' ? admitRequest(write) : undefined
}

async function admitRequest(write: NodeWrite): Promise<void> {
  const { attributes, node, isEnabled } = write
  const reference = (attributes.object as TokenRequest).spec.boundObjectRef
  const { apiVersion, kind, name = '', uid = '' } = reference ?? {}
  if (apiVersion !== 'v1' || kind !== 'Pod' || name === '') {
    throw refuseEarly(attributes, 'node requested token not bound to a pod')
  }
  if (uid === '') throw refuseEarly(attributes, 'node requested token with a pod binding without a uid')
  const pod = await attributes.objects.get(Pods, attributes.namespace, name)
  if (pod === undefined) throw notFoundError({ group: '', resource: 'pod' }, name)
  if (pod.metadata.uid !== uid) {
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`
    throw refuseEarly(attributes, why)
  }
  if (pod.spec.nodeName !== node) {
    throw refuseEarly(attributes, 'node requested token bound to a pod scheduled on a different node')
  }
  if (isEnabled('ServiceAccountNodeAudienceRestriction')) await checkAudience(write, pod)
}

async function checkAudience(write: NodeWrite, pod: Pod): Promise<void> {
  const { attributes, ask } = write
  const audiences = (attributes.object as TokenRequest).spec.audiences ?? []
  if (audiences.length > 1) throw refuseEarly(attributes, 'node may only request 0 or 1 audiences')
  const [audience = ''] = audiences
  const { found, errors } = await searchAudience(attributes, pod, audience)
  if (found) return
  if (errors.length > 0) {
    throw refuseEarly(attributes, `error validating audience ${goQuote(audience)}: ${aggregate(errors)}`)
  }
  const { user, namespace, name } = attributes
  const verb = 'request-serviceaccounts-token-audience'
  const verdict = await ask(user, resourceAccess({ verb, namespace, name, version: 'v1', resource: audience }))
  if (verdict.allowed) return
  const notFound = `audience ${goQuote(audience)} not found in pod spec volume`
  const why =
    verdict.error === undefined
      ? `${notFound}, ${user.name} is not authorized to request tokens for this audience`
      : `${notFound}, error authorizing ${user.name} to request tokens for this audience: ${verdict.error}`
  throw refuseEarly(attributes, why)
}

interface Search {
  readonly found: boolean
  readonly errors: readonly string[]
}

async function searchAudience({ objects }: Attributes, pod: Pod, audience: string): Promise<Search> {
  const errors: string[] = []
  for (const volume of pod.spec.volumes ?? []) {
    if (projectsToken(volume, audience)) return { found: true, errors }
    try {
      const driver = await driverOf(objects, pod, volume)
      if (driver === '') continue
      const { spec } = (await objects.get(CSIDrivers, '', driver)) ?? missing('csidriver.storage.k8s.io', driver)
      if (spec.tokenRequests?.some((request) => request.audience === audience)) return { found: true, errors }
    } catch (error) {
      errors.push((error as Error).message)
    }
  }
  return { found: false, errors }
}

function projectsToken({ projected }: Volume, audience: string): boolean {
  return (projected?.sources ?? []).some(
    ({ serviceAccountToken }) => serviceAccountToken !== undefined && (serviceAccountToken.audience ?? '') === audience,
  )
}

function missing(resource: string, name: string): never {
  throw new Error(`${resource} ${goQuote(name)} not found`)
}

/** In-tree volumes that are migrated to CSI drivers. */
const MIGRATED: readonly (readonly [source: string, driver: string])[] = [
  ['awsElasticBlockStore', 'ebs.csi.aws.com'],
  ['azureDisk', 'disk.csi.azure.com'],
  ['azureFile', 'file.csi.azure.com'],
  ['cinder', 'cinder.csi.openstack.org'],
  ['gcePersistentDisk', 'pd.csi.storage.gke.io'],
  ['portworxVolume', 'pxd.portworx.com'],
  ['vsphereVolume', 'csi.vsphere.vmware.com'],
]

function migratedDriver(source: object): string {
  return MIGRATED.find(([field]) => Object.hasOwn(source, field))?.[1] ?? ''
}

/** The CSI driver that mounts the volume; empty if there is none. */
async function driverOf(objects: Attributes['objects'], { metadata }: Pod, volume: Volume): Promise<string> {
  const claim =
    volume.ephemeral?.volumeClaimTemplate === undefined
      ? volume.persistentVolumeClaim?.claimName
      : `${metadata.name}-${volume.name}`
  if (claim === undefined) return volume.csi?.driver ?? migratedDriver(volume)
  const { spec } =
    (await objects.get(PersistentVolumeClaims, metadata.namespace ?? '', claim)) ??
    missing('persistentvolumeclaim', claim)
  const name = spec.volumeName ?? ''
  const found = (await objects.get(PersistentVolumes, '', name)) ?? missing('persistentvolume', name)
  return found.spec.csi?.driver ?? migratedDriver(found.spec)
}
