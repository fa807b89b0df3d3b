/** The buttons of a cluster: open, kubeconfig, and what its source and the rights of the user permit. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { RequestError } from '../api/request.ts'
import { session } from '../browser/session.ts'
import { RotateDialog } from '../builds/rotate-dialog.tsx'
import { Dialog } from '../forms/dialog.tsx'
import { Field, Form } from '../forms/form.tsx'
import { saveKubeconfig } from '../forward/save-kubeconfig.ts'
import { go, Link } from '../routing/router.tsx'
import { AgentCommand } from './cluster-dialogs.tsx'
import { forkCluster, registerAgain, type Registration, startCluster, stopCluster } from './cluster-requests.ts'
import type { ClusterTabProps } from './cluster-tabs.ts'
import { stateOf } from './clusters.ts'
import { RemoveDialog } from './remove-dialog.tsx'

export function ClusterActions({ cluster }: ClusterTabProps): VNode {
  const { metadata, isOwner = false } = cluster
  const name = metadata.name ?? ''
  const [error, setError] = useState('')
  const isLeaving = metadata.deletionTimestamp !== undefined
  const run = (work: Promise<void>): void => {
    setError('')
    work.catch((failed: unknown) => setError(failed instanceof RequestError ? failed.message : String(failed)))
  }
  return (
    <div class="actions">
      {stateOf(cluster).isReachable && (
        <Link to={{ page: 'cluster', cluster: name }} class="button primary">
          Open
        </Link>
      )}
      {!isLeaving && (
        <button type="button" onClick={() => run(saveKubeconfig(cluster))}>
          Kubeconfig
        </button>
      )}
      {isOwner && <OwnerActions cluster={cluster} run={run} />}
      {error !== '' && (
        <span class="form-error" role="alert">
          {error}
        </span>
      )}
    </div>
  )
}

interface RunProps extends ClusterTabProps {
  readonly run: (work: Promise<void>) => void
}

function OwnerActions({ cluster, run }: RunProps): VNode | null {
  const { metadata, spec } = cluster
  const name = metadata.name ?? ''
  const remove = <RemoveAction cluster={cluster} />
  // The removal of a built cluster can be repeated with force.
  if (metadata.deletionTimestamp !== undefined) return spec.source === 'built' ? remove : null
  switch (spec.source) {
    case 'local':
      return null
    case 'imported':
      return (
        <>
          <RegisterAction name={name} />
          {remove}
        </>
      )
    case 'up':
      return (
        <>
          <UpActions cluster={cluster} run={run} />
          {remove}
        </>
      )
    case 'built':
      return (
        <>
          <RotateAction name={name} />
          {remove}
        </>
      )
  }
}

function UpActions({ cluster, run }: RunProps): VNode {
  const { metadata, spec } = cluster
  const [isForking, setIsForking] = useState(false)
  const name = metadata.name ?? ''
  const isRunning = spec.up?.running !== false
  const fork = async ({ displayName = '' }: Readonly<Record<string, string>>): Promise<void> => {
    const item = await forkCluster(name, displayName)
    setIsForking(false)
    go({ page: 'server-view', view: 'clusters', item })
  }
  return (
    <>
      <button type="button" onClick={() => run(isRunning ? stopCluster(name) : startCluster(name))}>
        {isRunning ? 'Stop' : 'Start'}
      </button>
      {session.value?.user?.isAdministrator === true && (
        <button type="button" onClick={() => setIsForking(true)}>
          Fork …
        </button>
      )}
      {isForking && (
        <Dialog title={`Fork ${spec.displayName}`} close={() => setIsForking(false)}>
          <Form label="Fork" action="Fork" submit={fork} cancel={() => setIsForking(false)}>
            <p>A new cluster starts with a copy of the present state. You own it; it has no other members.</p>
            <Field name="displayName" label="Name" value={`${spec.displayName} (fork)`} />
          </Form>
        </Dialog>
      )}
    </>
  )
}

/** For an agent that has lost its credential, or that was never installed. */
function RegisterAction({ name }: { readonly name: string }): VNode {
  const [isOpen, setIsOpen] = useState(false)
  const [made, setMade] = useState<Omit<Registration, 'cluster'>>()
  const close = (): void => {
    setIsOpen(false)
    setMade(undefined)
  }
  return (
    <>
      <button type="button" onClick={() => setIsOpen(true)}>
        Install agent …
      </button>
      {isOpen && (
        <Dialog title="Install the agent" close={close}>
          {made === undefined ? (
            <Form
              label="Install the agent"
              action="Show the command"
              cancel={close}
              submit={async () => setMade(await registerAgain(name))}
            >
              <p>The agent connects the cluster to this server. An agent that is connected keeps working.</p>
            </Form>
          ) : (
            <AgentCommand registration={made} close={close} />
          )}
        </Dialog>
      )}
    </>
  )
}

function RotateAction({ name }: { readonly name: string }): VNode {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <button type="button" onClick={() => setIsOpen(true)}>
        Rotate …
      </button>
      {isOpen && <RotateDialog cluster={name} close={() => setIsOpen(false)} />}
    </>
  )
}

function RemoveAction({ cluster }: ClusterTabProps): VNode {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <button type="button" class="danger" onClick={() => setIsOpen(true)}>
        Remove …
      </button>
      {isOpen && <RemoveDialog cluster={cluster} close={() => setIsOpen(false)} />}
    </>
  )
}
