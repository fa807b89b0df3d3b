/** Asks before something is done that cannot be undone, and shows the server's words if it fails. */
import type { ComponentChildren, VNode } from 'preact'

import { Dialog } from './dialog.tsx'
import { Form } from './form.tsx'

export interface ConfirmDialogProps {
  readonly title: string
  /** Of the button. */
  readonly action: string
  /** Rejects with RequestError. */
  readonly run: () => Promise<void>
  /** Called when the dialog is over. */
  readonly close: () => void
  readonly children: ComponentChildren
}

export function ConfirmDialog({ title, action, run, close, children }: ConfirmDialogProps): VNode {
  const submit = async (): Promise<void> => {
    await run()
    close()
  }
  return (
    <Dialog title={title} close={close}>
      <Form label={title} action={action} submit={submit} cancel={close} isDangerous>
        {children}
      </Form>
    </Dialog>
  )
}
