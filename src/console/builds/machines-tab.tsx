/** The machines of a cluster whose agents have registered. A watch adds each one when it joins. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import type { KubeObject } from '#meta/object.ts'

import { send } from '../api/request.ts'
import { ConfirmDialog } from '../forms/confirm-dialog.tsx'
import { useLive } from '../objects/live.ts'
import { Freshness } from '../objects/object-head.tsx'
import { buildRoute } from '../operations/operation-requests.ts'
import { AgeText } from '../parts/age-text.tsx'
import { Notice } from '../parts/notice.tsx'
import { PlainTable } from '../parts/plain-table.tsx'
import { ConnectMachineDialog } from './connect-machine.tsx'
import { type Machine, ownAddress, ROLE_TITLES, sortMachines, stateOfMachine } from './machines.ts'

export interface MachinesTabProps {
  readonly cluster: KubeObject & { readonly isOwner?: boolean }
}

export function MachinesTab({ cluster }: MachinesTabProps): VNode {
  const name = cluster.metadata.name ?? ''
  const { isOwner = false } = cluster
  const { objects, state } = useLive(buildRoute(name, 'machines'))
  const [isConnecting, setIsConnecting] = useState(false)
  const machines = sortMachines(objects as readonly Machine[])
  if (state.type === 'failed') {
    const title = state.code === 403 ? 'You may not see the machines' : 'The machines cannot be shown'
    return <Notice title={title} text={state.message} />
  }
  if (state.type === 'loading' && machines.length === 0) return <p class="loading">Loading …</p>
  return (
    <>
      <Freshness state={state} deletedAtMs={undefined} />
      {isOwner && (
        <div class="yaml-bar">
          <button type="button" class="primary" onClick={() => setIsConnecting(true)}>
            Connect a machine …
          </button>
        </div>
      )}
      {machines.length === 0 ? (
        <Notice
          title="No machine has registered"
          text={
            isOwner
              ? 'Connect one by a command that runs on it. It appears here as soon as its agent has registered.'
              : 'Owners of the cluster connect machines. They appear here as soon as their agents have registered.'
          }
        />
      ) : (
        <MachineTable machines={machines} isOwner={isOwner} />
      )}
      {isConnecting && <ConnectMachineDialog cluster={name} close={() => setIsConnecting(false)} />}
    </>
  )
}

const COLUMNS = ['Name', 'State', 'Roles', 'Address', 'System', 'Agent', 'Labels and taints']

interface MachineTableProps {
  readonly machines: readonly Machine[]
  readonly isOwner: boolean
}

function MachineTable({ machines, isOwner }: MachineTableProps): VNode {
  const [removed, setRemoved] = useState<Machine>()
  return (
    <>
      <PlainTable
        label="Machines"
        columns={isOwner ? [...COLUMNS, 'Remove'] : COLUMNS}
        rows={machines}
        keyOf={({ metadata }) => metadata.name ?? ''}
        cells={(machine) => [
          <bdi>{machine.spec.nodeName}</bdi>,
          <MachineTag machine={machine} />,
          machine.spec.roles.map((role) => (ROLE_TITLES as Readonly<Record<string, string>>)[role] ?? role).join(', '),
          addressOf(machine),
          [machine.status?.os, machine.status?.architecture].filter(Boolean).join(', '),
          machine.status?.agentVersion,
          marksOf(machine),
          ...(isOwner
            ? [
                <button
                  type="button"
                  aria-label={`Remove ${machine.spec.nodeName}`}
                  onClick={() => setRemoved(machine)}
                >
                  Remove …
                </button>,
              ]
            : []),
        ]}
      />
      {removed && <RemoveMachineDialog machine={removed} close={() => setRemoved(undefined)} />}
    </>
  )
}

function MachineTag({ machine }: { readonly machine: Machine }): VNode {
  const { text, tone, since } = stateOfMachine(machine)
  return (
    <span class={`tone tone-${tone}`}>
      {text}
      {since !== undefined && (
        <>
          {' for '}
          <AgeText time={since} />
        </>
      )}
    </span>
  )
}

function addressOf(machine: Machine): string {
  const own = ownAddress(machine)
  const from = machine.status?.address
  if (own === '') return from ?? ''
  return from === undefined || from === own ? own : `${own}, connects from ${from}`
}

function marksOf({ spec: { labels = {}, taints = [] } }: Machine): string {
  return [...Object.entries(labels).map(([key, value]) => `${key}=${value}`), ...taints].join(', ')
}

interface RemoveMachineDialogProps {
  readonly machine: Machine
  readonly close: () => void
}

function RemoveMachineDialog({ machine: { metadata, spec }, close }: RemoveMachineDialogProps): VNode {
  const path = buildRoute(spec.cluster, `machines/${encodeURIComponent(metadata.name ?? '')}`)
  return (
    <ConfirmDialog
      title={`Remove ${spec.nodeName}`}
      action="Remove"
      run={async () => void (await send(path, { method: 'DELETE' }))}
      close={close}
    >
      <p>
        The connection of the machine, its credential and the token by which it registered end. Its agent stops within
        minutes. Services of Kubernetes on the machine keep running: remove it from the cluster file first, and the
        server cleans it.
      </p>
    </ConfirmDialog>
  )
}
