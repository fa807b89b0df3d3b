/** The dialogs that add and remove clusters. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { Dialog } from '../parts/dialog.tsx'
import { Field, Form } from '../parts/form.tsx'
import { importCluster, type ManagedCluster, type Registration, removeCluster, startUpCluster } from './clusters.ts'

interface Closing {
  /** Called when the dialog is over. */
  readonly close: () => void
}

export function ImportDialog({ close }: Closing): VNode {
  const [made, setMade] = useState<Registration>()
  return (
    <Dialog title="Import a cluster" close={close}>
      {made === undefined ? (
        <Form
          label="Import a cluster"
          action="Create"
          cancel={close}
          submit={async ({ displayName = '' }) => setMade(await importCluster(displayName))}
        >
          <p>Any Kubernetes cluster. Its agent connects to this server, so no port of the cluster has to be open.</p>
          <Field name="displayName" label="Name" />
        </Form>
      ) : (
        <>
          <p>
            Run this command with kubectl of the cluster&apos;s administrator. It contains a token, which is shown here
            only and ends after its first use.
          </p>
          <pre class="command">{made.command ?? made.token}</pre>
          <div class="form-actions">
            <button type="button" onClick={() => void navigator.clipboard.writeText(made.command ?? made.token ?? '')}>
              Copy
            </button>
            <button type="button" class="primary" onClick={close}>
              Done
            </button>
          </div>
        </>
      )}
    </Dialog>
  )
}

export function UpDialog({ close }: Closing): VNode {
  return (
    <Dialog title="Start a cluster on the machine of the server" close={close}>
      <Form
        label="Start a cluster"
        action="Start"
        cancel={close}
        submit={async ({ displayName = '', nodes = '' }) => {
          await startUpCluster(displayName, Number(nodes))
          close()
        }}
      >
        <p>Its nodes are simulated: pods become ready and end, but run no containers.</p>
        <Field name="displayName" label="Name" />
        <Field name="nodes" label="Nodes" value="3" />
      </Form>
    </Dialog>
  )
}

export function RemoveDialog({ cluster, close }: Closing & { readonly cluster: ManagedCluster }): VNode {
  const { metadata, spec } = cluster
  const [left, setLeft] = useState<readonly string[]>()
  if (left !== undefined && left.length > 0) {
    return (
      <Dialog title={`${spec.displayName} was removed`} close={close}>
        <p>This server could not remove from the cluster:</p>
        <ul>
          {left.map((one) => (
            <li key={one}>{one}</li>
          ))}
        </ul>
        <button type="button" class="primary" onClick={close}>
          Done
        </button>
      </Dialog>
    )
  }
  return (
    <Dialog title={`Remove ${spec.displayName}`} close={close}>
      <Form
        label={`Remove ${spec.displayName}`}
        action="Remove"
        isDangerous
        cancel={close}
        submit={async () => {
          const rest = await removeCluster(metadata.name)
          if (rest.length === 0) close()
          else setLeft(rest)
        }}
      >
        <p>{CONSEQUENCES[spec.source]}</p>
      </Form>
    </Dialog>
  )
}

const CONSEQUENCES = {
  local: '',
  imported:
    'This server forgets the cluster and removes its agent, roles and tokens from it. The workloads of the cluster stay.',
  up: 'The cluster and all its data are deleted.',
  built: 'Kubernetes and all its data are removed from the machines of the cluster.',
} as const
