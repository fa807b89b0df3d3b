/** Sections that need other objects: endpoints of a Service, who is bound to a role, what pods request of a node. */
import type { VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'

import type { Node, Pod } from '#apis/core/v1.ts'
import type { EndpointSlice } from '#apis/discovery/v1.ts'
import type { ClusterRoleBinding, RoleBinding } from '#apis/rbac/v1.ts'
import type { KubeList, KubeObject } from '#meta/object.ts'

import { clusterPath } from '../api/kinds.ts'
import { RequestError, sendForJson } from '../api/request.ts'
import { itemsOf } from '../lists/follow-objects.ts'
import { kubernetesKind } from '../objects/kubernetes-kind.ts'
import { useLive } from '../objects/live.ts'
import { boundTable } from './access.ts'
import { endpointTable } from './network.ts'
import { resourceTable } from './node.ts'
import { SectionView } from './section-view.tsx'
import type { Section } from './section.ts'

interface Source {
  /** A list that a watch keeps fresh. */
  readonly live?: string
  /** Lists that change rarely: they are read once, and again when the object changes. */
  readonly paths: readonly string[]
  readonly sections: (object: KubeObject, found: readonly KubeObject[] | undefined) => readonly Section[]
}

const RBAC = '/apis/rbac.authorization.k8s.io/v1'

function sourceOf(object: KubeObject): Source | undefined {
  const { metadata } = object
  const { name = '', namespace = '' } = metadata
  const inside = `/namespaces/${encodeURIComponent(namespace)}`
  switch (kubernetesKind(object)) {
    case 'Service': {
      const selector = encodeURIComponent(`kubernetes.io/service-name=${name}`)
      return {
        live: `/apis/discovery.k8s.io/v1${inside}/endpointslices?labelSelector=${selector}`,
        paths: [],
        sections: (_, slices = []) => endpointTable(slices as readonly EndpointSlice[]),
      }
    }
    case 'Node':
      return {
        paths: [`/api/v1/pods?fieldSelector=${encodeURIComponent(`spec.nodeName=${name}`)}`],
        sections: (node, pods) => resourceTable(node as Node, pods as readonly Pod[] | undefined),
      }
    case 'Role':
      return { paths: [`${RBAC}${inside}/rolebindings`], sections: boundTo }
    case 'ClusterRole':
      return { paths: [`${RBAC}/clusterrolebindings`, `${RBAC}/rolebindings`], sections: boundTo }
    default:
      return undefined
  }
}

function boundTo({ kind = '', metadata }: KubeObject, bindings: readonly KubeObject[] = []): readonly Section[] {
  const { name = '' } = metadata
  return boundTable({ kind, name }, bindings as readonly (RoleBinding | ClusterRoleBinding)[])
}

interface MoreSectionsProps {
  readonly cluster: string
  readonly object: KubeObject
  /** Changes when the lists are to be read again. */
  readonly version: string
}

export function MoreSections({ cluster, object, version }: MoreSectionsProps): VNode | null {
  const source = sourceOf(object)
  const [found, setFound] = useState<{ readonly objects?: readonly KubeObject[]; readonly error?: string }>({})
  const live = useLive(source?.live === undefined ? undefined : clusterPath(cluster, source.live))
  const key = source?.paths.join(' ') ?? ''
  useEffect(() => {
    if (source === undefined || source.paths.length === 0) return undefined
    const stop = new AbortController()
    readAll(cluster, source.paths, stop.signal).then(
      (objects) => setFound({ objects }),
      (error: unknown) => {
        if (error instanceof RequestError) setFound({ error: error.message })
      },
    )
    return () => stop.abort()
  }, [cluster, key, version])
  if (source === undefined) return null
  return (
    <>
      {source.sections(object, source.live === undefined ? found.objects : live.objects).map((section) => (
        <SectionView key={section.title} cluster={cluster} section={section} />
      ))}
      {found.error !== undefined && <p class="words words-bad">{found.error}</p>}
    </>
  )
}

async function readAll(cluster: string, paths: readonly string[], signal: AbortSignal): Promise<readonly KubeObject[]> {
  const lists = await Promise.all(
    paths.map((path) => sendForJson<KubeList<KubeObject>>(clusterPath(cluster, path), { signal })),
  )
  return lists.flatMap((list) => itemsOf(list))
}
