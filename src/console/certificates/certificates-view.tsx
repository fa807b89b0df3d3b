/** The certificates in a cluster with their ends, those that end first at the top. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { clusterPath } from '../api/kinds.ts'
import { readPages } from '../api/read-pages.ts'
import { RequestError } from '../api/request.ts'
import { now } from '../browser/time.ts'
import { ObjectLink } from '../objects/object-link.tsx'
import { LoadedView } from '../parts/loaded-view.tsx'
import { LongText } from '../parts/long-text.tsx'
import { Notice } from '../parts/notice.tsx'
import { PlainTable } from '../parts/plain-table.tsx'
import { useLoaded } from '../parts/use-loaded.ts'
import type { ClusterViewProps } from '../parts/view-props.ts'
import type { CertificateFacts } from './certificate.ts'
import { entriesOf, type Entry, fits, type Row, rowsOf, stateOf, summaryText } from './entries.ts'
import { type Source, SOURCES } from './sources.ts'

const MAX_PAGES = 40

interface Found {
  readonly rows: readonly Row[]
  /** Why some certificates are not here. */
  readonly missing: readonly string[]
  readonly readAtMs: number
}

async function load(cluster: string, signal: AbortSignal): Promise<Found> {
  const parts = await Promise.all(SOURCES.map((source) => readSource(cluster, source, signal)))
  return {
    rows: rowsOf(parts.flatMap(({ entries }) => entries)),
    missing: parts.flatMap(({ missing }) => missing),
    readAtMs: now(),
  }
}

interface Part {
  readonly entries: readonly Entry[]
  readonly missing: readonly string[]
}

/** A kind that the user may not list, or that the cluster does not have, hides no others. */
async function readSource(cluster: string, source: Source, signal: AbortSignal): Promise<Part> {
  const { path, limit, name } = source
  const keep = (object: Parameters<typeof entriesOf>[1]): readonly Entry[] => entriesOf(source, object)
  try {
    const { items, isWhole } = await readPages(
      { path: clusterPath(cluster, path), keep, limit, maxPages: MAX_PAGES },
      signal,
    )
    return { entries: items, missing: isWhole ? [] : [`The cluster has more ${name} than this page reads`] }
  } catch (error) {
    if (!(error instanceof RequestError) || error.code === 0) throw error
    return { entries: [], missing: error.code === 404 ? [] : [`Without ${name}: ${error.message}`] }
  }
}

export function CertificatesView({ cluster }: ClusterViewProps): VNode {
  const found = useLoaded(cluster, (signal) => load(cluster, signal))
  return (
    <LoadedView of={found} name="certificates">
      {(value) => <Certificates cluster={cluster} found={value} reload={found.reload} />}
    </LoadedView>
  )
}

interface CertificatesProps {
  readonly cluster: string
  readonly found: Found
  readonly reload: () => void
}

function Certificates({ cluster, found: { rows, missing, readAtMs }, reload }: CertificatesProps): VNode {
  const [filter, setFilter] = useState('')
  const shown = rows.filter((row) => fits(row, filter.trim().toLowerCase()))
  return (
    <>
      <div class="page-head">
        <input
          type="search"
          class="filter"
          value={filter}
          placeholder="Filter (/)"
          aria-label="Filter certificates"
          aria-keyshortcuts="/"
          onInput={({ currentTarget }) => setFilter(currentTarget.value)}
        />
        <span class="state" role="status">
          {`${summaryText(shown, readAtMs)} As of ${new Date(readAtMs).toLocaleTimeString()}.`}
        </span>
        <button type="button" onClick={reload}>
          Read again
        </button>
      </div>
      {missing.map((text) => (
        <p key={text} class="words words-busy">
          {text}
        </p>
      ))}
      {shown.length === 0 ? (
        <Nothing hasAny={rows.length > 0} isRefused={missing.length === SOURCES.length} />
      ) : (
        <PlainTable
          label="Certificates"
          columns={['State', 'End', 'Subject', 'Names', 'Issuer', 'In']}
          rows={shown}
          keyOf={({ key }) => key}
          cells={(row) => cellsOf(cluster, row, readAtMs)}
        />
      )}
      <p class="muted">The page verifies no signatures. Of TLS Secrets it keeps only the certificates.</p>
    </>
  )
}

function cellsOf(cluster: string, row: Row, nowMs: number): readonly (VNode | string | undefined)[] {
  const { facts, error = '' } = row
  const state = stateOf(row, nowMs)
  return [
    <span key="state" class={`tone tone-${state.tone}`}>
      {state.text}
    </span>,
    ...(facts === undefined ? [error, '', '', ''] : factCells(facts)),
    <At key="at" cluster={cluster} row={row} />,
  ]
}

function factCells({ notAfterMs, subject, issuer, names }: CertificateFacts): readonly VNode[] {
  const end = new Date(notAfterMs)
  return [
    <time key="end" dateTime={end.toISOString()}>
      {end.toLocaleString()}
    </time>,
    <LongText key="subject" text={subject} name="subject" />,
    <LongText key="names" text={names.join(', ')} name="names" />,
    <LongText key="issuer" text={issuer === subject ? 'itself' : issuer} name="issuer" />,
  ]
}

function At({ cluster, row: { at, field, copies } }: { readonly cluster: string; readonly row: Row }): VNode {
  return (
    <>
      <ObjectLink cluster={cluster} to={at}>
        <bdi class="text">{`${at.kind} ${at.namespace === undefined ? '' : `${at.namespace}/`}${at.name}`}</bdi>
      </ObjectLink>{' '}
      <bdi class="muted">{field}</bdi>
      {copies > 0 && <span class="muted">{copies === 1 ? ' and 1 copy' : ` and ${copies} copies`}</span>}
    </>
  )
}

/** Why there are no rows. */
function Nothing({ hasAny, isRefused }: { readonly hasAny: boolean; readonly isRefused: boolean }): VNode {
  const text = 'This page shows those of TLS Secrets, authorities, webhooks, APIServices and signing requests.'
  if (hasAny) return <Notice title="The filter hides all certificates" text="Change the filter to see them." />
  return (
    <Notice title={isRefused ? 'You may see no certificates here' : 'There are no certificates here'} text={text} />
  )
}
