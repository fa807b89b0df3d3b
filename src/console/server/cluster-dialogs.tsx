/** The dialogs that add clusters. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { RequestError } from '../api/request.ts'
import { SelectField } from '../forms/choices.tsx'
import { Dialog } from '../forms/dialog.tsx'
import { Field, Form } from '../forms/form.tsx'
import { CopyButton } from '../parts/copy-button.tsx'
import { importCluster, type Registration, saveAuthority, startUpCluster } from './cluster-requests.ts'

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
        <AgentCommand registration={made} close={close} />
      )}
    </Dialog>
  )
}

/** The command with which the agent of an imported cluster is installed. */
export function AgentCommand({
  registration: { command, token = '' },
  close,
}: Closing & { readonly registration: Omit<Registration, 'cluster'> }): VNode {
  return (
    <>
      <p>
        {command === undefined
          ? 'Give the agent this token. It is shown here only.'
          : 'Run this command with kubectl of the administrator of the cluster. It contains a token that is valid for a day and is shown here only.'}
      </p>
      <pre class="command" role="region" aria-label="Command" tabIndex={0}>
        {command ?? token}
      </pre>
      {command?.includes('hyperkube-ca.crt') === true && <AuthorityHint />}
      <div class="form-actions">
        <CopyButton text={command ?? token} name={command === undefined ? 'the token' : 'the command'} />
        <button type="button" class="primary" onClick={close}>
          Done
        </button>
      </div>
    </>
  )
}

/** curl and kubectl do not know the authority of this server otherwise. */
function AuthorityHint(): VNode {
  return (
    <p>
      {'The command reads the authority of this server from the file '}
      <code>hyperkube-ca.crt</code>
      {'. '}
      <button type="button" class="quiet" onClick={() => void saveAuthority()}>
        Save hyperkube-ca.crt
      </button>
    </p>
  )
}

const RUNTIMES = [
  { value: 'simulated', text: 'Simulated: pods become ready and end, but run no containers' },
  { value: 'containerd', text: 'With containers: the server needs containerd and the rights of root' },
]

export function UpDialog({ close }: Closing): VNode {
  return (
    <Dialog title="Start a cluster on the machine of the server" close={close}>
      <Form
        label="Start a cluster"
        action="Start"
        cancel={close}
        submit={async ({ displayName = '', runtime = '', nodes = '' }) => {
          if (!/^\d+$/.test(nodes.trim()))
            throw new RequestError({ code: 400, message: `"${nodes}" is not a number of nodes` })
          await startUpCluster(displayName, runtime, Number(nodes))
          close()
        }}
      >
        <Field name="displayName" label="Name" />
        <SelectField name="runtime" label="Nodes" choices={RUNTIMES} />
        <Field name="nodes" label="Number of nodes" value="3" />
      </Form>
    </Dialog>
  )
}
