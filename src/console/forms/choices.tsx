/** Fields of a form that choose: one of a list, or yes. */
import type { VNode } from 'preact'

export interface Choice {
  readonly value: string
  readonly text: string
}

export interface SelectFieldProps {
  readonly name: string
  readonly label: string
  readonly choices: readonly Choice[]
  readonly value?: string
  readonly onChange?: (value: string) => void
}

export function SelectField({ name, label, choices, value, onChange }: SelectFieldProps): VNode {
  return (
    <label class="field">
      {label}
      <select name={name} value={value} onChange={({ currentTarget }) => onChange?.(currentTarget.value)}>
        {choices.map((one) => (
          <option key={one.value} value={one.value}>
            {one.text}
          </option>
        ))}
      </select>
    </label>
  )
}

export interface CheckFieldProps {
  /** The form has the field with the value `on` if it is checked. */
  readonly name: string
  readonly label: string
  readonly isChecked?: boolean
}

export function CheckField({ name, label, isChecked = false }: CheckFieldProps): VNode {
  return (
    <label class="check">
      <input type="checkbox" name={name} defaultChecked={isChecked} />
      {label}
    </label>
  )
}
