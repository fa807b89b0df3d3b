/** The machines whose agents have registered for a cluster: their states in words, and the request for a command. */
import type { AnyCondition } from '#meta/conditions.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Tone } from '../parts/tone.ts'
import { type MachineDraft, type Role, ROLES } from './cluster-file.ts'

export interface Machine extends KubeObject {
  readonly spec: {
    readonly cluster: string
    readonly nodeName: string
    readonly roles: readonly string[]
    readonly address?: string
    readonly internalAddress?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly taints?: readonly string[]
  }
  readonly status?: {
    readonly conditions?: readonly AnyCondition[]
    readonly os?: string
    readonly architecture?: string
    readonly agentVersion?: string
    readonly address?: string
    readonly connectedAt?: string
    readonly disconnectedAt?: string
  }
}

export const ROLE_TITLES: Readonly<Record<Role, string>> = {
  controlplane: 'Control plane',
  etcd: 'etcd',
  worker: 'Worker',
}

export interface MachineState {
  readonly text: string
  readonly tone: Tone
  /** When the state began. */
  readonly since: string | undefined
}

export function stateOfMachine({ status = {} }: Machine): MachineState {
  const { conditions = [], connectedAt, disconnectedAt } = status
  const isConnected = conditions.some(({ type, status: value }) => type === 'Connected' && value === 'True')
  if (isConnected) return { text: 'Connected', tone: 'good', since: connectedAt }
  if (disconnectedAt !== undefined) return { text: 'Disconnected', tone: 'bad', since: disconnectedAt }
  return { text: 'Registered', tone: 'busy', since: undefined }
}

/** Empty if the machine sent no address. */
export function ownAddress({ spec: { address = '', internalAddress = '' } }: Machine): string {
  return address === '' ? internalAddress : address
}

/** A registered machine as one of the cluster file: the server finds it by its name. */
export function draftOf(machine: Machine): MachineDraft {
  const { nodeName, roles } = machine.spec
  const own = ownAddress(machine)
  return {
    way: 'agent',
    address: own === '' ? (machine.status?.address ?? '') : own,
    name: nodeName,
    user: '',
    port: '',
    roles: ROLES.filter((role) => roles.includes(role)),
  }
}

/** Disconnected ones first, then by name. */
export function sortMachines(machines: readonly Machine[]): readonly Machine[] {
  const rank = (machine: Machine): number => Number(stateOfMachine(machine).tone === 'good')
  return [...machines].sort((a, b) => rank(a) - rank(b) || collator.compare(a.spec.nodeName, b.spec.nodeName))
}

const collator = new Intl.Collator('en', { numeric: true })

export interface MachineCommands {
  readonly command: string
  readonly foregroundCommand: string
  readonly windowsCommand?: string
  readonly uses: number
  readonly validHours: number
}

export interface RegistrationRequest {
  readonly roles: readonly Role[]
  readonly uses: number
  readonly validHours: number
  readonly nodeName?: string
  readonly address?: string
  readonly internalAddress?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly taints?: readonly string[]
}

/** The request of the form's fields. A text says what is wrong with them. */
export function registrationIn(fields: Readonly<Record<string, string>>): RegistrationRequest | string {
  const roles = ROLES.filter((role) => fields[`role-${role}`] !== undefined)
  if (roles.length === 0) return 'Choose at least one role'
  const uses = numberIn(fields['uses'])
  if (uses === undefined) return 'The number of machines must be a whole number'
  const validHours = numberIn(fields['validHours'])
  if (validHours === undefined) return 'The hours must be a whole number'
  // A field with the name nodeName would hide this property of the form from scripts.
  const nodeName = fields['node']?.trim() ?? ''
  if (nodeName !== '' && uses > 1) return 'A name is for one machine only'
  const labels = linesIn(fields['labels'])
  const wrong = labels.find((line) => !line.includes('='))
  if (wrong !== undefined) return `The label "${wrong}" must be key=value`
  const taints = linesIn(fields['taints'])
  return {
    roles,
    uses,
    validHours,
    ...textIn('nodeName', nodeName),
    ...textIn('address', fields['address']),
    ...textIn('internalAddress', fields['internalAddress']),
    ...(labels.length > 0 && { labels: Object.fromEntries(labels.map(pairIn)) }),
    ...(taints.length > 0 && { taints }),
  }
}

function numberIn(text = ''): number | undefined {
  return /^\d{1,4}$/.test(text.trim()) ? Number(text) : undefined
}

function textIn<K extends string>(name: K, text = ''): Partial<Record<K, string>> {
  return text.trim() === '' ? {} : ({ [name]: text.trim() } as Record<K, string>)
}

function linesIn(text = ''): readonly string[] {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter(Boolean)
}

function pairIn(line: string): readonly [key: string, value: string] {
  const at = line.indexOf('=')
  return [line.slice(0, at), line.slice(at + 1)]
}
