/** The owners of an object, from its controller up to the one without an owner. */
import { useEffect, useState } from 'preact/hooks'

import type { KubeObject } from '#meta/object.ts'

import { clusterPath, objectPath } from '../api/kinds.ts'
import { RequestError, sendForJson } from '../api/request.ts'
import { pageOf } from './object-link.tsx'
import type { Ref } from './ref.ts'

/** Chains of owners are short; a circle of hostile references ends here. */
const MAX_OWNERS = 5

export function useOwners(cluster: string, object: KubeObject): readonly Ref[] {
  const direct = controllerOf(object)
  const [chain, setChain] = useState<readonly Ref[]>([])
  useEffect(() => {
    setChain(direct === undefined ? [] : [direct])
    if (direct === undefined) return undefined
    const stop = new AbortController()
    climb(cluster, direct, stop.signal).then(
      (owners) => setChain(owners),
      () => undefined,
    )
    return () => stop.abort()
  }, [cluster, direct?.kind, direct?.name, direct?.namespace])
  return chain
}

async function climb(cluster: string, first: Ref, signal: AbortSignal): Promise<readonly Ref[]> {
  const chain = [first]
  for (let next: Ref | undefined = first; next !== undefined && chain.length < MAX_OWNERS;) {
    const owner = await readObject(cluster, next, signal)
    next = owner === undefined ? undefined : controllerOf(owner)
    if (next !== undefined) chain.push(next)
  }
  return chain
}

/** Undefined if it cannot be read: the chain ends there. */
async function readObject(cluster: string, ref: Ref, signal: AbortSignal): Promise<KubeObject | undefined> {
  const page = pageOf(cluster, ref)
  if (page?.page !== 'object') return undefined
  try {
    return await sendForJson<KubeObject>(clusterPath(cluster, objectPath(page.kind, page)), { signal })
  } catch (error) {
    if (error instanceof RequestError) return undefined
    throw error
  }
}

function controllerOf({ metadata }: KubeObject): Ref | undefined {
  const { ownerReferences = [], namespace } = metadata
  const owner = ownerReferences.find(({ controller }) => controller === true) ?? ownerReferences[0]
  return owner && { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.name, namespace }
}
