/** The dialogs that create a user, set a password and rename a user. */
import type { VNode } from 'preact'

import { CheckField } from '../forms/choices.tsx'
import { Dialog } from '../forms/dialog.tsx'
import { Field, Form } from '../forms/form.tsx'
import { changeUser, createUser, type ServerUser } from './users.ts'

interface Closing {
  /** Called when the dialog is over. */
  readonly close: () => void
}

export function CreateUserDialog({ close }: Closing): VNode {
  return (
    <Dialog title="Create a user" close={close}>
      <Form
        label="Create a user"
        action="Create"
        cancel={close}
        submit={async ({ username = '', displayName = '', password = '', mustChange }) => {
          await createUser({
            username: username.trim(),
            ...(displayName !== '' && { displayName }),
            ...(password !== '' && { password, mustChangePassword: mustChange === 'on' }),
          })
          close()
        }}
      >
        <p>The user gets the roles for new users. Without a password, the user can log in only after you set one.</p>
        <Field name="username" label="Username" />
        <Field name="displayName" label="Name (optional)" isOptional />
        <Field name="password" label="Password (optional)" type="password" autocomplete="new-password" isOptional />
        <CheckField name="mustChange" label="The user must choose another password at the first log-in" isChecked />
      </Form>
    </Dialog>
  )
}

interface UserDialogProps extends Closing {
  readonly user: ServerUser
}

export function PasswordDialog({ user, close }: UserDialogProps): VNode {
  const title = `Set a password for ${user.username}`
  return (
    <Dialog title={title} close={close}>
      <Form
        label={title}
        action="Set the password"
        cancel={close}
        submit={async ({ password = '' }) => {
          await changeUser(user.name, { password })
          close()
        }}
      >
        <p>All sessions of the user end. The user must choose another password at the next log-in.</p>
        <Field name="password" label="Password" type="password" autocomplete="new-password" />
      </Form>
    </Dialog>
  )
}

export function RenameDialog({ user, close }: UserDialogProps): VNode {
  const title = `Change the name of ${user.username}`
  return (
    <Dialog title={title} close={close}>
      <Form
        label={title}
        action="Save"
        cancel={close}
        submit={async ({ displayName = '' }) => {
          await changeUser(user.name, { displayName })
          close()
        }}
      >
        <p>Other people see this name. The username, for log-ins, stays.</p>
        <Field name="displayName" label="Name" value={user.displayName} />
      </Form>
    </Dialog>
  )
}
