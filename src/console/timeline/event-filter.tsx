/** Chooses which events of the cluster the time line shows. The choice is in the address. */
import type { VNode } from 'preact'

import { NamespaceSelect } from '../parts/namespace-select.tsx'
import { setQuery } from '../routing/router.tsx'
import type { Choices, EventFilter } from './minutes.ts'

export interface EventFilterBarProps {
  readonly cluster: string
  readonly namespace: string
  readonly filter: EventFilter
  readonly choices: Choices
}

export function EventFilterBar({ cluster, namespace, filter, choices }: EventFilterBarProps): VNode {
  return (
    <div class="yaml-bar">
      <NamespaceSelect cluster={cluster} namespace={namespace} />
      <Choice name="kind" label="Kind" all="All kinds" value={filter.kind} texts={choices.kinds} />
      <Choice name="reason" label="Reason" all="All reasons" value={filter.reason} texts={choices.reasons} />
      <label class="check">
        <input
          type="checkbox"
          checked={filter.isWarning}
          onChange={({ currentTarget }) => setQuery({ type: currentTarget.checked ? 'Warning' : '' })}
        />
        Warnings only
      </label>
    </div>
  )
}

interface ChoiceProps {
  readonly name: 'kind' | 'reason'
  readonly label: string
  readonly all: string
  readonly value: string
  readonly texts: readonly string[]
}

/** Of a hostile cluster, longer. */
const MAX_TEXTS = 300
const MAX_LETTERS = 80

function Choice({ name, label, all, value, texts }: ChoiceProps): VNode {
  const shown = texts.slice(0, MAX_TEXTS)
  const known = value === '' || shown.includes(value) ? shown : [value, ...shown]
  return (
    <select
      aria-label={label}
      value={value}
      onChange={({ currentTarget }) => setQuery({ [name]: currentTarget.value })}
    >
      <option value="">{all}</option>
      {known.map((text) => (
        <option key={text} value={text}>
          {text.slice(0, MAX_LETTERS)}
        </option>
      ))}
    </select>
  )
}
