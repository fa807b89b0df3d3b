/** Volume plugin `projected`: several sources in one directory, including service account tokens. */
import type { Pod, VolumeProjection } from '#apis/core/v1.ts'

import { type ContentRequest, fromConfigMap, fromSecret } from '../content.ts'
import { downwardFiles, modeOf } from '../payloads.ts'
import { combineErrors, type FileContent, type Payload, type VolumePlugin } from '../volume-plugin.ts'
import { inMemory } from './empty-dir.ts'

export const projected: VolumePlugin = {
  name: 'kubernetes.io/projected',
  volume: 'projected',
  isContent: true,
  usage: 'files',
  async plan({ pod, volume }, sources) {
    const { sources: projections = [], defaultMode } = volume.projected ?? {}
    const request = { pod, sources, mode: modeOf(defaultMode) }
    const files = new Map<string, FileContent>()
    const errors: Error[] = []
    for (const [index, projection] of (projections ?? []).entries()) {
      try {
        for (const [path, file] of await filesOf(projection, { ...request, projectionKey: `${volume.name}/${index}` }))
          files.set(path, file)
      } catch (error) {
        errors.push(error as Error)
      }
    }
    if (errors.length > 0) throw combineErrors(errors)
    return { at: 'pod', memory: inMemory(pod, sources.allocatable()), files }
  },
}

type Projections = { readonly [K in keyof VolumeProjection]-?: Project<NonNullable<VolumeProjection[K]>> }

/** `projectionKey` identifies the source within the pod. */
type ProjectionRequest = ContentRequest & { readonly projectionKey: string }

type Project<S> = (source: S, request: ProjectionRequest) => Promise<Payload>

const PROJECTIONS: Projections = {
  secret: (source, request) => fromSecret(request, source),
  configMap: (source, request) => fromConfigMap(request, source),
  downwardAPI: async ({ items = [] }, { pod, sources, mode }) => downwardFiles(items, pod, sources.allocatable(), mode),
  async serviceAccountToken({ audience = '', expirationSeconds, path }, request) {
    const token = await request.sources.token({ pod: request.pod, audience, expirationSeconds })
    return new Map([[path, own(token, request)]])
  },
  async clusterTrustBundle({ name, signerName, labelSelector, optional: isOptional = false, path }, request) {
    if (name === undefined && signerName === undefined) {
      throw new Error('ClusterTrustBundle projection requires either name or signerName to be set')
    }
    const text = await request.sources.trustAnchors({ name, signerName, labelSelector, isOptional })
    return new Map([[path, own(text, request)]])
  },
  async podCertificate(projection, request) {
    const { key, chain } = await request.sources.certificate({
      pod: request.pod,
      projectionKey: request.projectionKey,
      projection,
    })
    const { credentialBundlePath = '', keyPath = '', certificateChainPath = '' } = projection
    const files = [
      [credentialBundlePath, key + chain],
      [keyPath, key],
      [certificateChainPath, chain],
    ] as const
    return new Map(files.filter(([path]) => path !== '').map(([path, text]) => [path, own(text, request)]))
  },
}

async function filesOf(projection: VolumeProjection, request: ProjectionRequest): Promise<Payload> {
  const kinds = Object.keys(PROJECTIONS) as (keyof VolumeProjection)[]
  const kind = kinds.find((each) => projection[each] !== undefined)
  if (kind === undefined) return new Map()
  return (PROJECTIONS[kind] as Project<unknown>)(projection[kind], request)
}

/** Readable only by the pod's user or group, if it has one. */
function own(text: string, { pod, mode }: ContentRequest): FileContent {
  const user = userOf(pod)
  const isOwned = user !== undefined || pod.spec.securityContext?.fsGroup !== undefined
  return { data: Buffer.from(text), mode: isOwned ? 0o600 : mode, user }
}

/** The common user of all containers, if they have one. */
function userOf({ spec }: Pod): number | undefined {
  const { initContainers = [], containers, ephemeralContainers = [], securityContext } = spec
  const users = [...initContainers, ...containers, ...ephemeralContainers].map(
    (container) => container.securityContext?.runAsUser ?? securityContext?.runAsUser,
  )
  return new Set(users).size === 1 ? users[0] : undefined
}
