/** A field whose text is a part of the address, with suggestions. */
import type { TargetedEvent, VNode } from 'preact'
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
  readonly example?: string
  /** The address gets the text when the user presses Enter or leaves the field. Default: with every key. */
  readonly isComplete?: boolean
}

export function QueryField({ query, label, value, example, isComplete = false, ...rest }: QueryFieldProps): VNode {
  const { choices = [], format = (text) => text } = rest
  const id = useId()
  const change = ({ currentTarget }: TargetedEvent<HTMLInputElement>): void =>
    setQuery({ [query]: format(currentTarget.value) })
  return (
    <label class="field">
      {label}
      <input
        type="text"
        value={value}
        autocomplete="off"
        spellcheck={false}
        placeholder={example}
        {...(choices.length > 0 && { list: id })}
        {...(isComplete ? { onChange: change } : { onInput: change })}
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
