/** How many rows have each value of a column. A click shows only those rows. */
import type { VNode } from 'preact'

import type { RowGroup } from '../lists/messages.ts'
import { wordOf } from '../lists/order.ts'
import { toneOf } from '../parts/tone.ts'
import { location, setQuery } from '../routing/router.tsx'

export function GroupBar({ groups }: { readonly groups: readonly RowGroup[] }): VNode | null {
  const { group = '', q = '' } = location.value.query
  if (groups.length === 0) return null
  return (
    <ul class="groups" aria-label={`Rows by ${nameOf(group)}`}>
      {groups.map(({ value, count }) => {
        const filter = filterFor(group, value)
        const isOn = q === filter
        return (
          <li key={value}>
            <button type="button" aria-pressed={isOn} onClick={() => setQuery({ q: isOn ? '' : filter })}>
              <bdi class={`tone tone-${toneOf(group, value) ?? 'plain'}`}>{value === '' ? 'none' : value}</bdi>
              {count.toLocaleString('en')}
            </button>
          </li>
        )
      })}
    </ul>
  )
}

/** `@namespace` is the address of the column that is in no Table. */
function nameOf(group: string): string {
  return group === '@namespace' ? 'namespace' : wordOf(group)
}

function filterFor(group: string, value: string): string {
  const text = value.toLowerCase()
  return `${nameOf(group)}==${/[\s"]/.test(text) ? `"${text.replaceAll('"', '')}"` : text}`
}
