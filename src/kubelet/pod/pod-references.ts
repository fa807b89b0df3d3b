/** Lists the ConfigMaps, Secrets and claims that must exist before the containers of a pod can start. Pure. */
import type { Container, EphemeralContainer, Pod, Volume } from '#apis/core/v1.ts'
import { claimNameOf } from '#model/volumes/volumes.ts'

export interface Reference {
  readonly kind: 'configmap' | 'secret' | 'persistentvolumeclaim'
  readonly name: string
}

export interface MountedReference extends Reference {
  readonly volume: string
}

/** References of volumes that are not optional. */
export function mountedReferences(pod: Pick<Pod, 'metadata' | 'spec'>): MountedReference[] {
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    const claim = claimNameOf(pod, volume)
    const own = claim === undefined ? [] : [{ kind: 'persistentvolumeclaim' as const, name: claim }]
    return [...own, ...sourcesOf(volume)].map((reference) => ({ ...reference, volume: volume.name }))
  })
}

interface OptionalSource {
  readonly name?: string
  readonly optional?: boolean
}

function needed(kind: Reference['kind'], source: OptionalSource | undefined): Reference[] {
  const { name = '', optional = false } = source ?? {}
  return name === '' || optional ? [] : [{ kind, name }]
}

function sourcesOf({ configMap, secret, projected }: Volume): Reference[] {
  const { secretName = '', optional = false } = secret ?? {}
  return [
    ...needed('configmap', configMap),
    ...needed('secret', { name: secretName, optional }),
    ...(projected?.sources ?? []).flatMap((source) => [
      ...needed('configmap', source.configMap),
      ...needed('secret', source.secret),
    ]),
  ]
}

/** References of a container's environment that are not optional. */
export function environmentReferences({ env = [], envFrom = [] }: Container | EphemeralContainer): Reference[] {
  return [
    ...envFrom.flatMap(({ configMapRef, secretRef }) => [
      ...needed('configmap', configMapRef),
      ...needed('secret', secretRef),
    ]),
    ...env.flatMap(({ valueFrom }) => [
      ...needed('configmap', valueFrom?.configMapKeyRef),
      ...needed('secret', valueFrom?.secretKeyRef),
    ]),
  ]
}
