/**
 * Parses and validates the parameters that the agent of a machine sends: node name, roles, addresses, labels and
 * taints. The machine may be hostile: every value has a limit.
 */
import { badRequestError } from '#meta/status-errors.ts'
import { dns1123Subdomain, labelValue, qualifiedName } from '#meta/validation/names.ts'

import { MACHINE_ROLES, type MachineRole, type MachineSpec, type MachineStatus } from '../kinds/machine.ts'

export interface MachineParameters {
  readonly spec: Required<Pick<MachineSpec, 'nodeName' | 'roles' | 'address' | 'internalAddress' | 'labels' | 'taints'>>
  readonly status: Required<Pick<MachineStatus, 'os' | 'architecture' | 'hostname' | 'agentVersion'>>
}

type Fields = Readonly<Record<string, unknown>>

/** Whether the parameters are those of a machine; otherwise they are of the agent of a cluster. */
export function isOfMachine(parameters: Fields): boolean {
  return parameters['node'] !== undefined
}

/** Throws StatusError. */
export function readMachineParameters({ node, machine }: Fields): MachineParameters {
  const { requestedHostname, customConfig, ...flags } = fieldsOf('node', node)
  const { address, internalAddress, label = {}, taints = [] } = fieldsOf('node.customConfig', customConfig)
  const { os, architecture, hostname, agentVersion } = fieldsOf('machine', machine)
  const nodeName = textOf('node.requestedHostname', requestedHostname)
  if (dns1123Subdomain(nodeName).length > 0)
    throw badRequestError('the name of the node is not a DNS name in lower case')
  return {
    spec: {
      nodeName,
      roles: rolesOf(flags),
      address: addressOf('address', address),
      internalAddress: addressOf('internalAddress', internalAddress),
      labels: labelsOf(label),
      taints: taintsOf(taints),
    },
    status: {
      os: textOf('machine.os', os),
      architecture: textOf('machine.architecture', architecture),
      hostname: textOf('machine.hostname', hostname),
      agentVersion: textOf('machine.agentVersion', agentVersion),
    },
  }
}

const MAX_TEXT = 253
const MAX_ITEMS = 100

function fieldsOf(name: string, value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw badRequestError(`the parameters have no object "${name}"`)
  return value as Fields
}

function textOf(name: string, value: unknown): string {
  if (typeof value !== 'string' || value.length > MAX_TEXT || /[^\x20-\x7e]/.test(value))
    throw badRequestError(`the parameter "${name}" is not a short text`)
  return value
}

/** Upstream's spelling of the flags. */
const FLAGS: Readonly<Record<MachineRole, string>> = { etcd: 'etcd', controlplane: 'controlPlane', worker: 'worker' }

function rolesOf(flags: Fields): readonly MachineRole[] {
  const roles = MACHINE_ROLES.filter((role) => flags[FLAGS[role]] === true)
  if (roles.length === 0) throw badRequestError('the machine requests no role')
  return roles
}

/** Empty, an IP address or a DNS name. */
export function isAddress(text: string): boolean {
  return text.length <= MAX_TEXT && /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]*)$/.test(text)
}

function addressOf(name: string, value: unknown): string {
  const text = textOf(name, value)
  if (!isAddress(text)) throw badRequestError(`the parameter "${name}" is not an address`)
  return text
}

/** Throws StatusError. */
export function labelsOf(value: unknown): Readonly<Record<string, string>> {
  const labels = Object.entries(fieldsOf('label', value))
  if (labels.length > MAX_ITEMS) throw badRequestError(`there are more than ${MAX_ITEMS} labels`)
  for (const [key, text] of labels) {
    const isLabel = typeof text === 'string' && qualifiedName(key).length === 0 && labelValue(text).length === 0
    if (!isLabel) throw badRequestError(`"${key.slice(0, MAX_TEXT)}" is not a label with a valid value`)
  }
  return Object.fromEntries(labels) as Readonly<Record<string, string>>
}

const EFFECTS = new Set(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])

/** Throws StatusError. */
export function taintsOf(value: unknown): readonly string[] {
  if (!Array.isArray(value) || value.length > MAX_ITEMS)
    throw badRequestError(`the taints are no list of at most ${MAX_ITEMS}`)
  return value.map((taint: unknown) => {
    const [, key = '', text = '', effect = ''] =
      typeof taint === 'string' && taint.length <= 2 * MAX_TEXT
        ? (/^([^=:]+)(?:=([^:]*))?:(\w+)$/.exec(taint) ?? [])
        : []
    const isTaint = qualifiedName(key).length === 0 && labelValue(text).length === 0 && EFFECTS.has(effect)
    if (!isTaint) throw badRequestError('a taint is not of the form key=value:effect')
    return taint as string
  })
}
