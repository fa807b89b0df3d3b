/** The dialog that creates an API token, and then shows its text once. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { session } from '../browser/session.ts'
import { CheckField, SelectField } from '../forms/choices.tsx'
import { Dialog } from '../forms/dialog.tsx'
import { Field, Form } from '../forms/form.tsx'
import { CopyButton } from '../parts/copy-button.tsx'
import { createToken, lifetimeOf, MAX_DAYS } from './tokens.ts'

export function CreateTokenDialog({ close }: { readonly close: () => void }): VNode {
  const [text, setText] = useState<string>()
  const clusters = (session.value?.clusters ?? []).map(({ name, displayName }) => ({ value: name, text: displayName }))
  if (text !== undefined) return <TokenText text={text} close={close} />
  return (
    <Dialog title="Create an API token" close={close}>
      <Form
        label="Create an API token"
        action="Create"
        cancel={close}
        submit={async ({ description = '', cluster = '', readOnly, days = '' }) => {
          setText(
            await createToken({
              ...(description !== '' && { description }),
              ...(cluster !== '' && { cluster }),
              readOnly: readOnly === 'on',
              ttlSeconds: lifetimeOf(days),
            }),
          )
        }}
      >
        <Field name="description" label="Description (optional)" isOptional />
        <SelectField
          name="cluster"
          label="Works for"
          choices={[{ value: '', text: 'All clusters and this server' }, ...clusters]}
        />
        <Field name="days" label={`Ends after (days, at most ${MAX_DAYS})`} value={String(MAX_DAYS)} />
        <CheckField name="readOnly" label="May only read" />
      </Form>
    </Dialog>
  )
}

function TokenText({ text, close }: { readonly text: string; readonly close: () => void }): VNode {
  return (
    <Dialog title="The token was created" close={close}>
      <p>Copy it now: the server does not show it again. It is worth as much as your password.</p>
      <pre class="command">{text}</pre>
      <div class="form-actions">
        <CopyButton text={text} name="the token" />
        <button type="button" class="primary" onClick={close}>
          Done
        </button>
      </div>
    </Dialog>
  )
}
