/** The bar above a list with checked rows: how many there are, and what can be done with them. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { useMayEach } from '../access/use-may.ts'
import type { Kind } from '../api/kinds.ts'
import type { Row } from '../lists/messages.ts'
import { type BulkAction, bulkActionsFor } from './bulk-actions.ts'
import { BulkDialog } from './bulk-dialog.tsx'

export interface BulkBarProps {
  readonly cluster: string
  readonly kind: Kind
  readonly rows: readonly Row[]
  readonly clear: () => void
}

/** The bar asks for the rights in so many namespaces. In others the server answers each request. */
const ASKED_NAMESPACES = 5

export function BulkBar({ cluster, kind, rows, clear }: BulkBarProps): VNode | null {
  const [opened, setOpened] = useState<BulkAction>()
  const offered = useOffered(cluster, kind, rows)
  if (rows.length === 0) return null
  return (
    <div class="bulk-bar" role="group" aria-label="Checked objects">
      <strong>{`${rows.length.toLocaleString('en')} checked`}</strong>
      {offered.map((one) => (
        <button
          key={one.action.name}
          type="button"
          class={one.action.isDangerous === true ? 'danger' : undefined}
          onClick={() => setOpened(one)}
        >
          {one.action.title}
        </button>
      ))}
      <button type="button" class="quiet" onClick={clear}>
        Uncheck all
      </button>
      {opened !== undefined && (
        <BulkDialog {...{ cluster, kind, rows, ...opened }} close={() => setOpened(undefined)} done={clear} />
      )}
    </div>
  )
}

function useOffered(cluster: string, kind: Kind, rows: readonly Row[]): readonly BulkAction[] {
  const actions = bulkActionsFor(kind)
  const namespaces = [...new Set(rows.map(({ namespace }) => namespace))].slice(0, ASKED_NAMESPACES)
  const questions = actions.flatMap(({ action }) =>
    namespaces.flatMap((namespace) => action.rights.map(({ verb }) => ({ action, verb, namespace }))),
  )
  const allowed = useMayEach(
    cluster,
    questions.map(({ verb, namespace }) => ({
      verb,
      kind,
      object: { metadata: namespace === '' ? {} : { namespace } },
    })),
  )
  return actions.filter(({ action }) => questions.every((one, at) => one.action !== action || allowed[at] === true))
}
