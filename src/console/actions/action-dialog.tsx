/** The dialog of an action: says what will happen, asks what it needs, shows the server's words if it fails. */
import type { VNode } from 'preact'

import { RequestError } from '../api/request.ts'
import { Dialog } from '../forms/dialog.tsx'
import { Field, Form } from '../forms/form.tsx'
import type { ActionFormProps } from './action-form.ts'
import type { Action } from './action.ts'
import { DebugNodeForm, DebugPodForm } from './debug-form.tsx'
import { DeleteForm } from './delete-form.tsx'
import { DrainForm } from './drain-form.tsx'
import { LabelsForm } from './labels-form.tsx'
import { scale } from './plans.ts'
import { runRequest, surroundings } from './run-action.ts'
import { UndoForm } from './undo-form.tsx'

export interface ActionDialogProps extends ActionFormProps {
  readonly action: Action
}

export function ActionDialog(props: ActionDialogProps): VNode {
  const { action, object, close } = props
  return (
    <Dialog title={`${action.title} ${object.kind ?? ''} ${object.metadata.name ?? ''}`} close={close}>
      <ActionForm {...props} />
    </Dialog>
  )
}

function ActionForm({ action, ...props }: ActionDialogProps): VNode {
  const { dialog = 'confirm' } = action
  switch (dialog) {
    case 'scale':
      return <ScaleForm {...props} />
    case 'labels':
      return <LabelsForm {...props} />
    case 'delete':
      return <DeleteForm {...props} />
    case 'undo':
      return <UndoForm {...props} />
    case 'drain':
      return <DrainForm {...props} />
    case 'debug-pod':
      return <DebugPodForm {...props} />
    case 'debug-node':
      return <DebugNodeForm {...props} />
    case 'confirm':
      return <ConfirmForm {...props} action={action} />
  }
}

function ConfirmForm({ cluster, kind, object, action, close, done }: ActionDialogProps): VNode {
  const submit = async (): Promise<void> => {
    if (action.plan !== undefined) await runRequest(cluster, action.plan({ kind, object }, surroundings()))
    done()
  }
  return (
    <Form label={action.title} action={action.title} submit={submit} cancel={close}>
      <p>{action.warning}</p>
    </Form>
  )
}

function ScaleForm({ cluster, kind, object, close, done }: ActionFormProps): VNode {
  const { replicas = 1 } = (object as { spec?: { replicas?: number } }).spec ?? {}
  const submit = async ({ replicas: text = '' }: Readonly<Record<string, string>>): Promise<void> => {
    if (!/^\d+$/.test(text.trim()))
      throw new RequestError({ code: 400, message: `"${text}" is not a number of replicas` })
    await runRequest(cluster, scale({ kind, object }, Number(text)))
    done()
  }
  return (
    <Form label="Scale" action="Scale" submit={submit} cancel={close}>
      <p>{`Now: ${replicas}`}</p>
      <Field name="replicas" label="Replicas" value={String(replicas)} />
    </Form>
  )
}
