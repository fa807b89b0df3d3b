/** Reads the states of objects that a search has found: lists of metadata have none. */
import { useEffect, useState } from 'preact/hooks'

import type { KubeObject } from '#meta/object.ts'

import { clusterPath, objectPath } from '../api/kinds.ts'
import { RequestError, sendForJson } from '../api/request.ts'
import { type State, stateOf } from '../objects/state-of.ts'
import { qualified } from '../parts/kind-groups.ts'
import type { Hit, KindHits } from './search-kinds.ts'
import type { Searches } from './use-search.ts'

export type States = ReadonlyMap<string, State>

/** Kinds whose objects have a state. Custom kinds can have one too. */
const WITH_STATE: ReadonlySet<string> = new Set([
  'pods',
  'nodes',
  'namespaces',
  'persistentvolumeclaims',
  'persistentvolumes',
  'deployments.apps',
  'statefulsets.apps',
  'daemonsets.apps',
  'replicasets.apps',
  'jobs.batch',
  'cronjobs.batch',
])
const PER_KIND = 10
const MAX_STATES = 60
const AT_ONCE = 3

/** By uid. They are read when the search is done. */
export function useStates(searches: Searches): States {
  const [states, setStates] = useState<States>(new Map())
  const isDone = searches.size > 0 && [...searches.values()].every((search) => search.isDone)
  useEffect(() => {
    if (!isDone) return undefined
    const stop = new AbortController()
    const byUid = new Map<string, State>()
    const report = (uid: string, state: State): void => {
      byUid.set(uid, state)
      if (!stop.signal.aborted) setStates(new Map(byUid))
    }
    readAll(wanted(searches), report, stop.signal).catch((error: unknown) => {
      if (!stop.signal.aborted) throw error
    })
    return () => stop.abort()
  }, [searches, isDone])
  return states
}

interface Wanted {
  readonly hit: Hit
  readonly path: string
}

function wanted(searches: Searches): readonly Wanted[] {
  return [...searches]
    .flatMap(([cluster, { found }]) => (found?.groups ?? []).flatMap((group) => targetsOf(cluster, group)))
    .slice(0, MAX_STATES)
}

function targetsOf(cluster: string, { kind, hits }: KindHits): readonly Wanted[] {
  if (!WITH_STATE.has(qualified(kind)) && !kind.group.includes('.')) return []
  if (kind.group.endsWith('.k8s.io')) return []
  return hits.slice(0, PER_KIND).map((hit) => ({ hit, path: clusterPath(cluster, objectPath(kind, hit)) }))
}

async function readAll(
  targets: readonly Wanted[],
  report: (uid: string, state: State) => void,
  signal: AbortSignal,
): Promise<void> {
  const waiting = [...targets]
  const work = async (): Promise<void> => {
    for (let target = waiting.shift(); target !== undefined; target = waiting.shift()) {
      const state = await readState(target.path, signal)
      if (state !== undefined) report(target.hit.uid, state)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}

async function readState(path: string, signal: AbortSignal): Promise<State | undefined> {
  try {
    return stateOf(await sendForJson<KubeObject>(path, { signal }))
  } catch (error) {
    // Objects that are gone or may not be read have no state here.
    if (error instanceof RequestError || error instanceof TypeError) return undefined
    throw error
  }
}
