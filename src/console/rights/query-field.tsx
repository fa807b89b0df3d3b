/** A field whose text is a part of the address, with suggestions. */
import type { VNode } from 'preact'
import { useId } from 'preact/hooks'

import { setQuery } from '../routing/router.tsx'

export interface QueryFieldProps {
  /** The name in the address. */
  readonly query: string
  readonly label: string
  readonly value: string
  /** Suggestions. Any other text is possible too. */
  readonly choices?: readonly string[]
  /** Of the text before it goes to the address. Default: as it was typed. */
  readonly format?: (text: string) => string
}

export function QueryField({ query, label, value, choices = [], format = (text) => text }: QueryFieldProps): VNode {
  const id = useId()
  return (
    <label class="field">
      {label}
      <input
        type="text"
        value={value}
        autocomplete="off"
        spellcheck={false}
        {...(choices.length > 0 && { list: id })}
        onInput={({ currentTarget }) => setQuery({ [query]: format(currentTarget.value) })}
      />
      {choices.length > 0 && (
        <datalist id={id}>
          {choices.map((text) => (
            <option key={text} value={text} />
          ))}
        </datalist>
      )}
    </label>
  )
}
