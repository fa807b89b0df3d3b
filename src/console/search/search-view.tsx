/** Searches objects of all kinds by name and label, in one cluster or in all clusters of a server. */
import type { VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

import { session } from '../browser/session.ts'
import { Notice } from '../parts/notice.tsx'
import { location, setQuery } from '../routing/router.tsx'
import { ClusterResults } from './cluster-results.tsx'
import { parseSearch } from './search-query.ts'
import { type ClusterSearch, type Searches, useSearch } from './use-search.ts'
import { useStates } from './use-states.ts'

export function SearchCluster({ cluster }: { readonly cluster: string }): VNode {
  return <Search clusters={[{ name: cluster, displayName: cluster }]} />
}

export function SearchServer(): VNode {
  const clusters = session.value?.clusters ?? []
  if (clusters.length === 0)
    return <Notice title="There are no clusters" text="Import or create one, then search it." />
  return <Search clusters={clusters} isServer />
}

interface SearchProps {
  readonly clusters: readonly { readonly name: string; readonly displayName: string }[]
  readonly isServer?: boolean
}

function Search({ clusters, isServer = false }: SearchProps): VNode {
  const { q = '' } = location.value.query
  const searches = useSearch(
    clusters.map(({ name }) => name),
    q,
  )
  const states = useStates(searches)
  return (
    <>
      <SearchField value={q} />
      <p class="state" role="status">
        {statusText(q, searches, clusters.length)}
      </p>
      {clusters.map(({ name, displayName }) => {
        const search = searches.get(name)
        return (
          search !== undefined && (
            <ClusterResults
              key={name}
              cluster={name}
              title={isServer ? displayName : undefined}
              search={search}
              states={states}
            />
          )
        )
      })}
    </>
  )
}

function SearchField({ value }: { readonly value: string }): VNode {
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => input.current?.focus(), [])
  return (
    <p class="search-field">
      <input
        ref={input}
        type="search"
        class="filter"
        value={value}
        placeholder="Part of a name, or label=value"
        aria-label="Search objects of all kinds"
        onInput={({ currentTarget }) => setQuery({ q: currentTarget.value })}
      />
    </p>
  )
}

function statusText(text: string, searches: Searches, clusters: number): string {
  if (parseSearch(text) === undefined) return 'Type two letters of a name, or a label such as app=web.'
  const all = [...searches.values()]
  const count = all.reduce((sum, search) => sum + hitsOf(search), 0)
  const objects = `${count.toLocaleString('en')} object${count === 1 ? '' : 's'} found`
  if (all.length === clusters && all.every(({ isDone }) => isDone)) return objects
  const [searched, kinds] = [sum(all, 'searched'), sum(all, 'kinds')]
  return kinds === 0 ? 'Searching …' : `${objects}. Searching kind ${searched} of ${kinds} …`
}

function hitsOf({ found }: ClusterSearch): number {
  return (found?.groups ?? []).reduce((total, group) => total + group.total, 0)
}

function sum(all: readonly ClusterSearch[], what: 'searched' | 'kinds'): number {
  return all.reduce((total, { found }) => total + (found?.[what] ?? 0), 0)
}
