/** The choices of a list that are kept in the address: wide columns, selectors of the server, and counts by a column. */
import type { TargetedFocusEvent, TargetedKeyboardEvent, VNode } from 'preact'

import type { Column } from '../lists/messages.ts'
import { QueryField, type QueryFieldProps } from '../parts/query-field.tsx'
import { location, setQuery } from '../routing/router.tsx'
import { isAge } from './visible-columns.ts'

export interface ListMenuProps {
  readonly columns: readonly Column[]
  readonly isNamespaced: boolean
}

export function ListMenu({ columns, isNamespaced }: ListMenuProps): VNode {
  const { wide = '', labels = '', fields = '', group = '' } = location.value.query
  const hasWide = columns.some(({ priority }) => priority > 0)
  const isSet = wide !== '' || labels !== '' || fields !== '' || group !== ''
  return (
    <details class="menu" onFocusOut={closeOutside} onKeyDown={closeByEscape}>
      <summary class={isSet ? 'is-set' : undefined}>View</summary>
      <div class="menu-box" tabIndex={-1}>
        {hasWide && (
          <label class="check">
            <input
              type="checkbox"
              checked={wide === '1'}
              onChange={({ currentTarget }) => setQuery({ wide: currentTarget.checked ? '1' : '' })}
            />
            All columns
          </label>
        )}
        <label class="field">
          Count by
          <select value={group} onChange={({ currentTarget }) => setQuery({ group: currentTarget.value })}>
            <option value="">nothing</option>
            {isNamespaced && <option value="@namespace">Namespace</option>}
            {columns
              .filter((column) => column.name !== 'Name' && !isAge(column))
              .map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
          </select>
        </label>
        <SelectorField query="labels" label="Label selector" value={labels} example="app=web,tier!=cache" />
        <SelectorField query="fields" label="Field selector" value={fields} example="status.phase=Pending" />
        <p class="muted">The API server applies selectors, so the browser reads only the objects that fit.</p>
      </div>
    </details>
  )
}

/** When the focus leaves the menu. */
function closeOutside({ currentTarget, relatedTarget }: TargetedFocusEvent<HTMLDetailsElement>): void {
  if (!currentTarget.contains(relatedTarget as Node | null)) currentTarget.open = false
}

function closeByEscape({ key, currentTarget }: TargetedKeyboardEvent<HTMLDetailsElement>): void {
  if (key !== 'Escape') return
  currentTarget.open = false
  currentTarget.querySelector('summary')?.focus()
}

/** Half a selector is an error. */
function SelectorField(props: Pick<QueryFieldProps, 'query' | 'label' | 'value' | 'example'>): VNode {
  return <QueryField {...props} isComplete format={(text) => text.trim()} />
}
