/** Searches clusters for the text of the page. A changed text ends the search before. */
import { useEffect, useState } from 'preact/hooks'

import { clusterPath, type Kind, loadKinds } from '../api/kinds.ts'
import { METADATA_ACCEPT, RequestError, sendForJson } from '../api/request.ts'
import { sleep } from '../browser/time.ts'
import { type Found, type MetadataList, searchKinds } from './search-kinds.ts'
import { parseSearch, type SearchQuery } from './search-query.ts'
import { searchedKinds } from './searched-kinds.ts'

export interface ClusterSearch {
  /** Undefined: the search of this cluster has not begun. */
  readonly found?: Found
  readonly isDone: boolean
  /** Why the cluster cannot be searched. */
  readonly error?: string
}

export type Searches = ReadonlyMap<string, ClusterSearch>

/** Waits until the typing pauses. */
const PAUSE_MS = 250
/** Browsers send six requests at a time to a server without TLS, which has one cluster. Others have HTTP/2. */
const REQUESTS = 4
const CLUSTERS_AT_ONCE = 6

/** By the name of the cluster. `clusters` may not change while the page is open. */
export function useSearch(clusters: readonly string[], text: string): Searches {
  const [searches, setSearches] = useState<{ readonly text: string; readonly byCluster: Searches }>()
  const key = clusters.join(' ')
  useEffect(() => {
    const query = parseSearch(text)
    if (query === undefined) return undefined
    const stop = new AbortController()
    const byCluster = new Map<string, ClusterSearch>()
    const report = (cluster: string, search: ClusterSearch): void => {
      if (stop.signal.aborted) return
      byCluster.set(cluster, search)
      setSearches({ text, byCluster: new Map(byCluster) })
    }
    searchAll(clusters, query, report, stop.signal).catch((error: unknown) => {
      if (!stop.signal.aborted) throw error
    })
    return () => stop.abort()
  }, [key, text])
  return searches?.text === text ? searches.byCluster : NONE
}

const NONE: Searches = new Map()

type Report = (cluster: string, search: ClusterSearch) => void

async function searchAll(
  clusters: readonly string[],
  query: SearchQuery,
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  await sleep(PAUSE_MS, signal)
  const waiting = [...clusters]
  const work = async (): Promise<void> => {
    for (let cluster = waiting.shift(); cluster !== undefined; cluster = waiting.shift()) {
      await searchCluster(cluster, query, { report, signal })
    }
  }
  await Promise.all(Array.from({ length: CLUSTERS_AT_ONCE }, work))
}

interface ClusterTools {
  readonly report: Report
  readonly signal: AbortSignal
}

async function searchCluster(cluster: string, query: SearchQuery, { report, signal }: ClusterTools): Promise<void> {
  let found: Found | undefined
  report(cluster, { isDone: false })
  try {
    await searchKinds(searchedKinds(await kindsFor(cluster)), query, {
      atOnce: REQUESTS,
      list: (path) => sendForJson<MetadataList>(clusterPath(cluster, path), { accept: METADATA_ACCEPT, signal }),
      report: (now) => report(cluster, { found: (found = now), isDone: false }),
    })
    report(cluster, { ...(found && { found }), isDone: true })
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    report(cluster, { isDone: true, error: error.message })
  }
}

const kindsByCluster = new Map<string, Promise<readonly Kind[]>>()

/** Read once: people type several texts. After a failure the next search reads them again. */
function kindsFor(cluster: string): Promise<readonly Kind[]> {
  const known = kindsByCluster.get(cluster)
  if (known !== undefined) return known
  const loading = loadKinds(cluster)
  kindsByCluster.set(cluster, loading)
  loading.catch(() => kindsByCluster.delete(cluster))
  return loading
}
