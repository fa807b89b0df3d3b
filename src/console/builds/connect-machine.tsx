/** The dialog with the command that connects a machine: roles, labels and taints, for Linux and Windows. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { RequestError, sendForJson } from '../api/request.ts'
import { AreaField } from '../forms/area-field.tsx'
import { CheckField } from '../forms/choices.tsx'
import { Dialog } from '../forms/dialog.tsx'
import { Field, Form } from '../forms/form.tsx'
import { buildRoute } from '../operations/operation-requests.ts'
import { CopyButton } from '../parts/copy-button.tsx'
import { ROLES } from './cluster-file.ts'
import { type MachineCommands, registrationIn, ROLE_TITLES } from './machines.ts'

export interface ConnectMachineDialogProps {
  readonly cluster: string
  readonly close: () => void
}

export function ConnectMachineDialog({ cluster, close }: ConnectMachineDialogProps): VNode {
  const [made, setMade] = useState<MachineCommands>()
  const submit = async (fields: Readonly<Record<string, string>>): Promise<void> => {
    const body = registrationIn(fields)
    if (typeof body === 'string') throw new RequestError({ code: 400, message: body })
    setMade(await sendForJson<MachineCommands>(buildRoute(cluster, 'machines/registration'), { method: 'POST', body }))
  }
  return (
    <Dialog title="Connect a machine" close={close}>
      {made === undefined ? (
        <Form label="Connect a machine" action="Show the command" submit={submit} cancel={close}>
          <p>The agent of the machine connects to this server, so no port of the machine has to be open.</p>
          <div class="machine-roles" role="group" aria-label="Roles">
            {ROLES.map((role) => (
              <CheckField key={role} name={`role-${role}`} label={ROLE_TITLES[role]} isChecked={role === 'worker'} />
            ))}
          </div>
          <Field name="uses" label="Number of machines" value="1" />
          <Field name="validHours" label="The command is valid for so many hours" value="24" />
          <details>
            <summary>Name, addresses, labels and taints</summary>
            <div class="form">
              <Field name="node" label="Name of the node (default: its host name)" isOptional />
              <Field name="address" label="Address" isOptional />
              <Field name="internalAddress" label="Address for other machines" isOptional />
              <AreaField name="labels" label="Labels, key=value, one in a line" rows={2} />
              <AreaField name="taints" label="Taints, key=value:effect, one in a line" rows={2} />
            </div>
          </details>
        </Form>
      ) : (
        <Commands made={made} close={close} />
      )}
    </Dialog>
  )
}

function Commands({ made, close }: { readonly made: MachineCommands; readonly close: () => void }): VNode {
  const { command, foregroundCommand, windowsCommand, uses, validHours } = made
  return (
    <>
      <p>
        {`Run one of these on ${uses === 1 ? 'the machine' : `each of at most ${uses} machines`} within ${validHours} hours. ` +
          'The program hyperkube must be there. The command contains a token, which is shown here only.'}
      </p>
      <Command title="Linux, as a service of systemd" text={command} />
      {windowsCommand !== undefined && <Command title="Windows" text={windowsCommand} />}
      <details>
        <summary>Linux without systemd</summary>
        <Command title="In the foreground" text={foregroundCommand} />
      </details>
      <p class="muted">The machine appears in the list as soon as its agent has registered.</p>
      <div class="form-actions">
        <button type="button" class="primary" onClick={close}>
          Done
        </button>
      </div>
    </>
  )
}

function Command({ title, text }: { readonly title: string; readonly text: string }): VNode {
  return (
    <section>
      <h3 class="command-title">{title}</h3>
      <pre class="command" role="region" aria-label={title} tabIndex={0}>
        {text}
      </pre>
      <CopyButton text={text} name={`the command for ${title}`} />
    </section>
  )
}
