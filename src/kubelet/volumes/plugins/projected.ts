/** projected: several sources in one directory, tokens of the pod's account among them. */
import type { Pod, VolumeProjection } from '#apis/core/v1.ts'

import { type ContentAsk, fromConfigMap, fromSecret } from '../content.ts'
import { downwardFiles, modeOf } from '../payloads.ts'
import { type FileContent, oneOf, type Payload, type VolumePlugin } from '../volume-plugin.ts'
import { inMemory } from './empty-dir.ts'

export const projected: VolumePlugin = {
  name: 'kubernetes.io/projected',
  volume: 'projected',
  isContent: true,
  async plan({ pod, volume }, sources) {
    const { sources: projections = [], defaultMode } = volume.projected ?? {}
    const ask = { pod, sources, mode: modeOf(defaultMode) }
    const files = new Map<string, FileContent>()
    const errors: Error[] = []
    for (const [index, projection] of (projections ?? []).entries()) {
      try {
        for (const [path, file] of await filesOf(projection, { ...ask, place: `${volume.name}/${index}` }))
          files.set(path, file)
      } catch (error) {
        errors.push(error as Error)
      }
    }
    if (errors.length > 0) throw oneOf(errors)
    return { at: 'pod', memory: inMemory(pod, sources.allocatable()), files }
  },
}

type Projections = { readonly [K in keyof VolumeProjection]-?: Project<NonNullable<VolumeProjection[K]>> }

/** `place`: which source of the pod it is. */
type ProjectionAsk = ContentAsk & { readonly place: string }

type Project<S> = (source: S, ask: ProjectionAsk) => Promise<Payload>

const PROJECTIONS: Projections = {
  secret: (source, ask) => fromSecret(ask, source),
  configMap: (source, ask) => fromConfigMap(ask, source),
  downwardAPI: async ({ items = [] }, { pod, sources, mode }) => downwardFiles(items, pod, sources.allocatable(), mode),
  async serviceAccountToken({ audience = '', expirationSeconds, path }, ask) {
    const token = await ask.sources.token({ pod: ask.pod, audience, expirationSeconds })
    return new Map([[path, own(token, ask)]])
  },
  async clusterTrustBundle({ name, signerName, labelSelector, optional: isOptional = false, path }, ask) {
    if (name === undefined && signerName === undefined) {
      throw new Error('ClusterTrustBundle projection requires either name or signerName to be set')
    }
    const text = await ask.sources.trustAnchors({ name, signerName, labelSelector, isOptional })
    return new Map([[path, own(text, ask)]])
  },
  async podCertificate(projection, ask) {
    const { key, chain } = await ask.sources.certificate({ pod: ask.pod, place: ask.place, projection })
    const { credentialBundlePath = '', keyPath = '', certificateChainPath = '' } = projection
    const files = [
      [credentialBundlePath, key + chain],
      [keyPath, key],
      [certificateChainPath, chain],
    ] as const
    return new Map(files.filter(([path]) => path !== '').map(([path, text]) => [path, own(text, ask)]))
  },
}

async function filesOf(projection: VolumeProjection, ask: ProjectionAsk): Promise<Payload> {
  const kinds = Object.keys(PROJECTIONS) as (keyof VolumeProjection)[]
  const kind = kinds.find((each) => projection[each] !== undefined)
  if (kind === undefined) return new Map()
  return (PROJECTIONS[kind] as Project<unknown>)(projection[kind], ask)
}

/** Readable for the one user or the group of the pod alone, where it has one. */
function own(text: string, { pod, mode }: ContentAsk): FileContent {
  const user = userOf(pod)
  const isOwned = user !== undefined || pod.spec.securityContext?.fsGroup !== undefined
  return { data: Buffer.from(text), mode: isOwned ? 0o600 : mode, user }
}

/** The user that all containers run as, when the pod says so. */
function userOf({ spec }: Pod): number | undefined {
  const { initContainers = [], containers, ephemeralContainers = [], securityContext } = spec
  const users = [...initContainers, ...containers, ...ephemeralContainers].map(
    (container) => container.securityContext?.runAsUser ?? securityContext?.runAsUser,
  )
  return new Set(users).size === 1 ? users[0] : undefined
}
