/** The objects that a search has found in a cluster, by kind, and what it could not search. */
import type { VNode } from 'preact'

import type { State } from '../objects/state-of.ts'
import { AgeText } from '../parts/age-text.tsx'
import { qualified, titleOf } from '../parts/kind-groups.ts'
import { Link } from '../routing/router.tsx'
import type { Found, Hit, KindHits } from './search-kinds.ts'
import type { ClusterSearch } from './use-search.ts'
import type { States } from './use-states.ts'

export interface ClusterResultsProps {
  readonly cluster: string
  /** Undefined: the page is about this cluster only. */
  readonly title: string | undefined
  readonly search: ClusterSearch
  readonly states: States
}

export function ClusterResults({ cluster, title, search, states }: ClusterResultsProps): VNode {
  const { found, isDone, error } = search
  return (
    <section aria-label={title ?? 'Results'}>
      {title !== undefined && (
        <h2>
          <Link to={{ page: 'cluster', cluster }}>{title}</Link>
        </h2>
      )}
      {error !== undefined && <p class="words words-bad">{`The cluster cannot be searched: ${error}`}</p>}
      {isDone && error === undefined && found?.groups.length === 0 && <p class="muted">No object fits.</p>}
      {found?.groups.map((group) => (
        <KindResults key={qualified(group.kind)} cluster={cluster} group={group} states={states} within={title} />
      ))}
      {found !== undefined && isDone && <Limits found={found} />}
    </section>
  )
}

interface KindResultsProps {
  readonly cluster: string
  readonly group: KindHits
  readonly states: States
  /** The name of the cluster, if the page shows several. */
  readonly within: string | undefined
}

function KindResults({ cluster, group: { kind, hits, total }, states, within }: KindResultsProps): VNode {
  const title = titleOf(kind)
  const Heading = within === undefined ? 'h2' : 'h3'
  const label = within === undefined ? title : `${title} of ${within}`
  return (
    <section class="short-list" aria-label={label}>
      <header>
        <Heading>
          <Link to={{ page: 'list', cluster, kind }} title={qualified(kind)}>
            {title}
          </Link>
        </Heading>
        <span class="state">{total.toLocaleString('en')}</span>
      </header>
      <div class="short-rows" tabIndex={0} role="region" aria-label={`${label} that fit`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              {kind.isNamespaced && <th scope="col">Namespace</th>}
              <th scope="col">State</th>
              <th scope="col">Age</th>
            </tr>
          </thead>
          <tbody>
            {hits.map((hit) => (
              <tr key={hit.uid}>
                <td>
                  <Link to={{ page: 'object', cluster, kind, namespace: hit.namespace, name: hit.name, tab: '' }}>
                    <bdi>{hit.name}</bdi>
                  </Link>
                </td>
                {kind.isNamespaced && <td>{hit.namespace}</td>}
                <td>
                  <StateText hit={hit} state={states.get(hit.uid)} />
                </td>
                <td>{hit.createdAt !== '' && <AgeText time={hit.createdAt} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {total > hits.length && (
        <p class="muted">{`The best ${hits.length} of ${total.toLocaleString('en')}. Type more letters.`}</p>
      )}
    </section>
  )
}

function StateText({ hit, state }: { readonly hit: Hit; readonly state: State | undefined }): VNode | null {
  const shown: State | undefined = hit.isTerminating ? { text: 'Terminating', tone: 'busy' } : state
  return shown === undefined ? null : <span class={`tone tone-${shown.tone ?? 'none'}`}>{shown.text}</span>
}

const MAX_LINES = 5

/** Says which objects the search has not read. */
function Limits({ found: { refused, failed, cut } }: { readonly found: Found }): VNode | null {
  const lines = [
    ...(refused === 0 ? [] : [`${refused} kind${refused === 1 ? '' : 's'} you may not list`]),
    ...cut.map(({ kind, read, left }) => {
      const [first, all] = [read.toLocaleString('en'), (read + left).toLocaleString('en')]
      return `${kind}: the search read the first ${first} of about ${all} objects, and those with exactly this name`
    }),
    ...failed.map(({ kind, message }) => `${kind}: ${message}`),
  ]
  if (lines.length === 0) return null
  return (
    <ul class="results muted" aria-label="Not searched">
      {lines.slice(0, MAX_LINES).map((line) => (
        <li key={line}>{line}</li>
      ))}
      {lines.length > MAX_LINES && <li>{`${lines.length - MAX_LINES} more`}</li>}
    </ul>
  )
}
