/** A form that sends its fields once, shows that it works, and shows the server's words if it fails. */
import type { ComponentChildren, VNode } from 'preact'
import { useState } from 'preact/hooks'

import { RequestError } from '../api/request.ts'

export interface FormProps {
  readonly label: string
  /** Of the button. */
  readonly action: string
  /** The fields by name. Rejects with RequestError. */
  readonly submit: (fields: Readonly<Record<string, string>>) => Promise<void>
  readonly children: ComponentChildren
  readonly isDangerous?: boolean
  readonly cancel?: () => void
}

export function Form({ label, action, submit, children, isDangerous = false, cancel }: FormProps): VNode {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState('')
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault()
    const data = new FormData(event.currentTarget as HTMLFormElement)
    const fields = Object.fromEntries([...data].map(([name, value]) => [name, typeof value === 'string' ? value : '']))
    setBusy(true)
    setError('')
    submit(fields)
      .catch((failed: unknown) => {
        if (!(failed instanceof RequestError)) throw failed
        setError(failed.message)
      })
      .finally(() => setBusy(false))
  }
  return (
    <form class="form" aria-label={label} onSubmit={onSubmit}>
      {children}
      {error !== '' && (
        <p class="form-error" role="alert">
          {error}
        </p>
      )}
      <div class="form-actions">
        <button type="submit" class={isDangerous ? 'danger' : 'primary'} disabled={isBusy}>
          {action}
        </button>
        {cancel && (
          <button type="button" onClick={cancel}>
            Cancel
          </button>
        )}
      </div>
    </form>
  )
}

export interface FieldProps {
  readonly name: string
  readonly label: string
  readonly type?: 'text' | 'password'
  readonly autocomplete?: string
  readonly value?: string
  readonly isOptional?: boolean
}

export function Field({ name, label, type = 'text', autocomplete = 'off', value = '', isOptional }: FieldProps): VNode {
  const attributes = { name, autocomplete, defaultValue: value, required: isOptional !== true, spellcheck: false }
  return (
    <label class="field">
      {label}
      {type === 'password' ? <input type="password" {...attributes} /> : <input type="text" {...attributes} />}
    </label>
  )
}
