/** Draws what a page has read: while it is loading, when the server refuses it, and when a later attempt failed. */
import type { VNode } from 'preact'

import type { RequestError } from '../api/request.ts'
import { Notice } from './notice.tsx'
import type { Loaded } from './use-loaded.ts'

export interface LoadedViewProps<T> {
  readonly of: Loaded<T>
  /** In the plural: "users". */
  readonly name: string
  readonly children: (value: T) => VNode
}

export function LoadedView<T>({ of: { value, error, reload }, name, children }: LoadedViewProps<T>): VNode {
  if (value === undefined)
    return error === undefined ? <p class="loading">Loading …</p> : <Refusal {...{ name, error, reload }} />
  return (
    <>
      {error !== undefined && (
        <p class="stale-bar" role="status">
          {`${error.message}. This is an earlier state. `}
          <button type="button" class="quiet" onClick={reload}>
            Try again
          </button>
        </p>
      )}
      {children(value)}
    </>
  )
}

interface RefusalProps {
  readonly name: string
  readonly error: RequestError
  readonly reload: () => void
}

function Refusal({ name, error, reload }: RefusalProps): VNode {
  if (error.code === 403) return <Notice title={`You may not see the ${name}`} text={error.message} />
  return <Notice title={`The ${name} cannot be loaded`} text={error.message} retry={reload} />
}
