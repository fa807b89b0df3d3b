/** A field of a form with several lines. */
import type { VNode } from 'preact'

export interface AreaFieldProps {
  readonly name: string
  readonly label: string
  readonly value?: string
  readonly rows?: number
}

export function AreaField({ name, label, value = '', rows = 3 }: AreaFieldProps): VNode {
  return (
    <label class="field">
      {label}
      <textarea name={name} rows={rows} spellcheck={false} autocomplete="off" defaultValue={value} />
    </label>
  )
}
