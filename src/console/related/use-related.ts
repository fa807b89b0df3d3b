/** Reads what is related to an object: what it owns, and what uses it. */
import { useEffect, useState } from 'preact/hooks'

import type { KubeList, KubeObject } from '#meta/object.ts'

import { clusterPath, type KindAddress, listPath } from '../api/kinds.ts'
import { RequestError, sendForJson } from '../api/request.ts'
import { itemsOf } from '../lists/follow-objects.ts'
import { kubernetesKind } from '../objects/kubernetes-kind.ts'
import { type Dependant, readDependants } from './dependants.ts'
import { USERS, usersOf } from './references.ts'

export interface Related {
  readonly owned: readonly Dependant[]
  readonly users: readonly KubeObject[]
}

const KINDS: Readonly<Record<string, KindAddress>> = {
  pods: { group: '', version: 'v1', plural: 'pods' },
  services: { group: '', version: 'v1', plural: 'services' },
  ingresses: { group: 'networking.k8s.io', version: 'v1', plural: 'ingresses' },
}
const MAX_OBJECTS = 500

/** Undefined while it is read. `pulse` changes when it is to be read again. */
export function useRelated(cluster: string, object: KubeObject, pulse: string): Related | undefined {
  const [related, setRelated] = useState<Related>()
  useEffect(() => {
    const stop = new AbortController()
    Promise.all([readDependants(cluster, object, stop.signal), readUsers(cluster, object, stop.signal)]).then(
      ([owned, users]) => setRelated({ owned, users }),
      () => undefined,
    )
    return () => stop.abort()
  }, [cluster, object.metadata.uid, object.metadata.resourceVersion, pulse])
  return related
}

async function readUsers(cluster: string, object: KubeObject, signal: AbortSignal): Promise<readonly KubeObject[]> {
  const kinds = (USERS[kubernetesKind(object)] ?? []).flatMap((plural) => KINDS[plural] ?? [])
  const lists = await Promise.all(
    kinds.map((kind) => readList(clusterPath(cluster, listPath(kind, object.metadata.namespace)), signal)),
  )
  return usersOf(object, lists.flat())
}

/** Kinds that the user may not list are left out. */
async function readList(path: string, signal: AbortSignal): Promise<readonly KubeObject[]> {
  try {
    return itemsOf(await sendForJson<KubeList<KubeObject>>(`${path}?limit=${MAX_OBJECTS}`, { signal }))
  } catch (error) {
    if (error instanceof RequestError) return []
    throw error
  }
}
