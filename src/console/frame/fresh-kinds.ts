/** Reads the kinds of a cluster again when its CustomResourceDefinitions or APIServices change. */
import { useEffect } from 'preact/hooks'

import { clusterPath } from '../api/kinds.ts'
import { reloadKinds } from '../browser/kinds-of-cluster.ts'
import { isSessionExpired } from '../browser/session.ts'
import { socketMessages } from '../browser/socket-messages.ts'
import { random, sleep } from '../browser/time.ts'
import { isAwake, networkChanges } from '../browser/visibility.ts'
import { follow } from '../lists/follow.ts'

const SOURCES = [
  '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
  '/apis/apiregistration.k8s.io/v1/apiservices',
]
/** Discovery follows a change with a delay, which is some seconds in an aggregated API. */
const DELAYS_MS = [500, 2000, 5000]

/** For as long as the page shows the cluster. Users who may not watch these kinds see what was there at first. */
export function useFreshKinds(cluster: string): void {
  const awake = isAwake.value
  const [session, network] = [isSessionExpired.value, networkChanges.value]
  useEffect(() => {
    if (!awake) return undefined
    const stop = new AbortController()
    const reload = reloader(cluster, stop.signal)
    for (const path of SOURCES) followSource(clusterPath(cluster, path), reload, stop.signal)
    return () => stop.abort()
  }, [cluster, awake, session, network])
}

function followSource(path: string, reload: () => void, signal: AbortSignal): void {
  let isFirst = true
  const listener = {
    columns: () => undefined,
    page: () => {
      // The kinds were read at the same time as the first list.
      if (!isFirst) reload()
      isFirst = false
    },
    changed: reload,
    deleted: reload,
    live: () => undefined,
    lost: () => undefined,
  }
  const tools = {
    fetch: (target: string, init: RequestInit) => fetch(target, init),
    messages: socketMessages,
    sleep,
    random,
  }
  follow({ path }, listener, tools, signal).catch(() => undefined)
}

/** Many changes at once are read together. */
function reloader(cluster: string, signal: AbortSignal): () => void {
  let changes = 0
  let isRunning = false
  const run = async (): Promise<void> => {
    isRunning = true
    let seen = 0
    for (let at = 0; at < DELAYS_MS.length; at++) {
      if (seen !== changes) at = 0
      seen = changes
      await sleep(DELAYS_MS[at] ?? 0, signal)
      reloadKinds(cluster)
    }
    isRunning = false
  }
  return () => {
    changes++
    if (!isRunning) run().catch(() => undefined)
  }
}
