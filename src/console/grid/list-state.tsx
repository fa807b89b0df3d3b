/** Says how much of a list is there and how fresh it is. */
import type { VNode } from 'preact'

import type { FromWorker } from '../lists/messages.ts'
import { Notice } from '../parts/notice.tsx'
import { setQuery } from '../routing/router.tsx'

export function StateLine({ data }: { readonly data: FromWorker | undefined }): VNode {
  if (data === undefined) return <span class="state">Loading …</span>
  const { state, loaded, expected, shown } = data
  const rows = shown === loaded ? count(loaded) : `${count(shown)} of ${count(loaded)}`
  if (state.type === 'loading') {
    const all = expected > loaded ? ` of about ${count(expected)}` : ''
    return <span class="state">{`${count(loaded)}${all} …`}</span>
  }
  if (state.type === 'live') return <span class="state state-live">{rows}</span>
  if (state.type === 'failed') return <span class="state state-failed">Failed</span>
  return (
    <span class="state state-stale" role="status" title={state.message}>
      {`${rows}, as of ${new Date(state.sinceMs).toLocaleTimeString()}. Reconnecting …`}
    </span>
  )
}

interface ListNoticeProps {
  readonly data: FromWorker
  readonly filter: string
  readonly namespace: string
  readonly kind: string
}

/** Why a list shows no rows. */
export function ListNotice({ data, filter, namespace, kind }: ListNoticeProps): VNode {
  const { state, loaded } = data
  const where = namespace === '' ? 'in this cluster' : `in namespace ${namespace}`
  if (state.type === 'failed') {
    const title = state.code === 403 ? `You may not list ${kind} ${where}` : `The server refused the list of ${kind}`
    return <Notice title={title} text={state.message} />
  }
  if (loaded > 0) {
    return (
      <Notice title={`The filter hides all ${count(loaded)} ${kind}`} text={`Filter: ${filter}`}>
        <button type="button" onClick={() => setQuery({ q: '' })}>
          Clear the filter
        </button>
      </Notice>
    )
  }
  if (state.type === 'stale') return <Notice title="The list cannot be loaded" text={state.message} />
  return <Notice title={`There are no ${kind} ${where}`} text="New ones appear here at once." />
}

function count(value: number): string {
  return value.toLocaleString('en')
}
