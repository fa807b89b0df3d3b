/** Parses the manifests of static pods, applies defaults and validates them. Pure. */
import { createHash } from 'node:crypto'

import type { Pod, Toleration, Volume } from '#apis/core/v1.ts'
import { schemaFor } from '#apis/schemas.ts'
import { goJson } from '#lib/go/text.ts'
import { decodeObject } from '#meta/codec/object.ts'
import { aggregateText } from '#meta/validation/field-error.ts'
import { fieldPath } from '#meta/validation/field-path.ts'
import { defaultPod } from '#model/pod-spec/defaults.ts'
import { podOptions } from '#model/pod-spec/options.ts'
import { validatePodSpec } from '#model/pod-spec/pod-spec.ts'
import { containersOf } from '#model/pod-spec/walk.ts'

export const ANNOTATIONS = {
  hash: 'kubernetes.io/config.hash',
  source: 'kubernetes.io/config.source',
  seen: 'kubernetes.io/config.seen',
  mirror: 'kubernetes.io/config.mirror',
} as const

/** Removes a faked source annotation, so that no pod of the API server counts as static and critical. */
export function fromServer(pod: Pod): Pod {
  const { annotations } = pod.metadata
  if (annotations?.[ANNOTATIONS.source] === undefined) return pod
  return { ...pod, metadata: { ...pod.metadata, annotations: { ...annotations, [ANNOTATIONS.source]: 'api' } } }
}

export interface ManifestSource {
  readonly kind: 'file' | 'http'
  /** The path of the file, or the URL. */
  readonly where: string
  readonly nodeName: string
  readonly isEnabled: (gate: string) => boolean
}

/** Throws for an invalid manifest. A URL may return a PodList. */
export function podsOf(text: string, source: ManifestSource): Pod[] {
  const { gvk, object } = decodeObject(text, 'application/yaml', { schemaFor })
  const isList = gvk.kind === 'PodList' && source.kind === 'http'
  if (gvk.group !== '' || (gvk.kind !== 'Pod' && !isList)) throw new Error(`invalid pod: ${gvk.kind}`)
  const items = isList ? (object['items'] as unknown as Pod[]) : [object as unknown as Pod]
  return items.map((pod) => staticPod(pod, source))
}

function staticPod(given: Pod, source: ManifestSource): Pod {
  const { kind, nodeName, isEnabled } = source
  const { name = '', namespace = 'default' } = given.metadata
  if (name === '') throw new Error('invalid pod: name is needed for the pod')
  const uid = given.metadata.uid ?? hashOf(given, source)
  const pod: Pod = structuredClone(given)
  defaultPod(pod, isEnabled)
  const tolerations = [...(pod.spec.tolerations ?? []), ...(kind === 'file' ? [STAYS] : [])]
  const annotations = { ...pod.metadata.annotations, [ANNOTATIONS.hash]: uid, [ANNOTATIONS.source]: kind }
  const made: Pod = {
    ...pod,
    metadata: { ...pod.metadata, name: `${name}-${nodeName.toLowerCase()}`, namespace, uid, annotations },
    spec: { ...pod.spec, nodeName, ...(tolerations.length > 0 && { tolerations }) },
    status: { phase: 'Pending' },
  }
  const options = podOptions({ isEnabled, allowPrivileged: true })
  const errors = validatePodSpec(made.spec, fieldPath('spec'), options, made.metadata)
  if (errors.length > 0) throw new Error(`invalid pod: ${aggregateText(errors)}`)
  const reference = referenceOf(made)
  if (reference !== undefined) throw new Error(`static pods may not reference ${reference}`)
  return made
}

/** Static pods tolerate all NoExecute taints. */
const STAYS: Toleration = { operator: 'Exists', effect: 'NoExecute' }

/** The UID of a manifest: the same content at the same source is the same pod, also after a restart. */
function hashOf(pod: Pod, { kind, where, nodeName }: ManifestSource): string {
  const origin = kind === 'file' ? `host:${nodeName}file:${where}` : `url:${where}`
  return createHash('md5').update(goJson(pod)).update(origin).digest('hex')
}

/** The kind of API object that the pod refers to, which static pods must not; undefined without one. */
function referenceOf({ spec }: Pod): string | undefined {
  if ((spec.serviceAccountName ?? '') !== '') return 'serviceaccounts'
  const containers = containersOf(spec).map(({ container }) => container)
  const env = containers.flatMap((container) => container.env ?? [])
  const envFrom = containers.flatMap((container) => container.envFrom ?? [])
  const hasSecrets = env.some(({ valueFrom }) => valueFrom?.secretKeyRef !== undefined)
  if (
    hasSecrets ||
    envFrom.some(({ secretRef }) => secretRef !== undefined) ||
    (spec.imagePullSecrets ?? []).length > 0
  )
    return 'secrets'
  const hasMaps = env.some(({ valueFrom }) => valueFrom?.configMapKeyRef !== undefined)
  if (hasMaps || envFrom.some(({ configMapRef }) => configMapRef !== undefined)) return 'configmaps'
  if ((spec.resourceClaims ?? []).length > 0) return 'resourceclaims'
  return (spec.volumes ?? []).map(volumeReference).find((found) => found !== undefined)
}

const VOLUMES: Readonly<Partial<Record<keyof Volume, string>>> = {
  configMap: 'configmaps (via configmap volumes)',
  secret: 'secrets (via secret volumes)',
  csi: 'csidrivers (via CSI volumes)',
  glusterfs: 'endpoints (via glusterFS volumes)',
  persistentVolumeClaim: 'persistentvolumeclaims',
  ephemeral: 'persistentvolumeclaims (via ephemeral volumes)',
  azureFile: 'secrets (via azureFile volumes)',
}
const PROJECTED = {
  configMap: 'configmaps (via projected volumes)',
  secret: 'secrets (via projected volumes)',
  serviceAccountToken: 'serviceaccounts (via projected volumes)',
  clusterTrustBundle: 'clustertrustbundles',
  podCertificate: 'podcertificates',
} as const

function volumeReference(volume: Volume): string | undefined {
  for (const [kind, what] of Object.entries(VOLUMES)) if (volume[kind as keyof Volume] !== undefined) return what
  for (const source of volume.projected?.sources ?? []) {
    for (const [kind, what] of Object.entries(PROJECTED)) {
      if (source[kind as keyof typeof PROJECTED] !== undefined) return what
    }
  }
  return undefined
}
