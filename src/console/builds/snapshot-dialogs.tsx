/** The dialogs that take and restore a snapshot of etcd. */
import type { VNode } from 'preact'

import type { KubeObject } from '#meta/object.ts'

import { RequestError } from '../api/request.ts'
import { Dialog } from '../forms/dialog.tsx'
import { Field, Form } from '../forms/form.tsx'
import { openOperation } from '../operations/open-operation.ts'
import { AgeText } from '../parts/age-text.tsx'
import type { Snapshot } from './snapshots.ts'

export interface TakeDialogProps {
  readonly cluster: string
  readonly close: () => void
}

export function TakeDialog({ cluster, close }: TakeDialogProps): VNode {
  const submit = ({ snapshot = '' }: Readonly<Record<string, string>>): Promise<void> =>
    openOperation(cluster, { type: 'SaveSnapshot', ...(snapshot.trim() !== '' && { snapshot: snapshot.trim() }) })
  return (
    <Dialog title="Take a snapshot" close={close}>
      <Form label="Take a snapshot" action="Take the snapshot" submit={submit} cancel={close}>
        <p>Each machine with etcd stores a snapshot of all objects of the cluster. Nothing stops meanwhile.</p>
        <Field name="snapshot" label="Name (default: the time). Letters, digits, “.”, “_” and “-”" isOptional />
      </Form>
    </Dialog>
  )
}

export interface RestoreDialogProps {
  readonly cluster: KubeObject & { readonly spec: { readonly displayName: string } }
  readonly snapshot: Snapshot
  readonly close: () => void
}

export function RestoreDialog({ cluster, snapshot, close }: RestoreDialogProps): VNode {
  const { displayName } = cluster.spec
  const submit = ({ typed = '' }: Readonly<Record<string, string>>): Promise<void> => {
    if (typed.trim() !== displayName)
      throw new RequestError({ code: 400, message: `Type "${displayName}" to restore the snapshot` })
    return openOperation(cluster.metadata.name ?? '', { type: 'RestoreSnapshot', snapshot: snapshot.name })
  }
  return (
    <Dialog title={`Restore ${snapshot.name}`} close={close}>
      <Form
        label="Restore the snapshot"
        action="Restore"
        isDangerous
        // A rejection shows the words in the form.
        submit={async (fields) => submit(fields)}
        cancel={close}
      >
        <ul class="consequences">
          <li>
            All objects of {displayName} become those of the snapshot
            {snapshot.takenAtMs !== undefined && (
              <>
                , which is <AgeText time={snapshot.takenAtMs} /> old
              </>
            )}
            .
          </li>
          <li>Every change since then is lost: objects made since then go, and deleted ones come back.</li>
          <li>Pods that the snapshot does not have end, and nodes that are not in the cluster file are deleted.</li>
          <li>Data in volumes stays as it is now.</li>
          <li>The API servers stop until all machines with etcd have the snapshot. Pods keep running meanwhile.</li>
        </ul>
        <Field name="typed" label={`Type "${displayName}" to confirm`} />
      </Form>
    </Dialog>
  )
}
