/** Writes cluster files from a form, and changes parts of one without touching the rest. */
import { isCollection, isMap, parseDocument } from 'yaml'

import { toYaml } from '../editor/yaml-text.ts'

export const ROLES = ['controlplane', 'etcd', 'worker'] as const
export type Role = (typeof ROLES)[number]

export interface MachineDraft {
  /** How the server reaches it. */
  readonly way: 'ssh' | 'agent'
  readonly address: string
  /** The name of its Node; empty: the address. */
  readonly name: string
  readonly user: string
  readonly port: string
  readonly roles: readonly Role[]
}

export const NEW_MACHINE: MachineDraft = {
  way: 'ssh',
  address: '',
  name: '',
  user: 'root',
  port: '',
  roles: [...ROLES],
}

export interface FileDraft {
  readonly machines: readonly MachineDraft[]
  /** Empty: the default of the server. */
  readonly network: string
}

/** The cluster file of a form, with a comment that says where the rest is. */
export function fileOf({ machines, network }: FileDraft): string {
  return toYaml({ nodes: machines.map(nodeOf), ...(network !== '' && { network: { plugin: network } }) })
}

/** A machine with an agent is known by its name; it has no SSH. The file wants a user all the same. */
export function nodeOf({ way, address, name, user, port, roles }: MachineDraft): object {
  return {
    address: address.trim(),
    ...(name.trim() !== '' && { hostname_override: name.trim() }),
    user: user.trim() === '' ? 'root' : user.trim(),
    ...(way === 'ssh' && port.trim() !== '' && { port: Number(port) }),
    role: ROLES.filter((role) => roles.includes(role)),
  }
}

/** The parts that the form still needs, in words. */
export function gapsIn({ machines }: FileDraft): readonly string[] {
  if (machines.length === 0) return ['Add a machine.']
  const has = (role: Role): boolean => machines.some(({ roles }) => roles.includes(role))
  const own = machines.flatMap((machine, at) => machineGaps(machine).map((gap) => `Machine ${at + 1}: ${gap}`))
  return [
    ...own,
    ...duplicates(machines.map(({ address }) => address.trim())).map((one) => `Two machines have the address ${one}.`),
    ...duplicates(machines.map(({ name }) => name.trim())).map((one) => `Two machines have the name ${one}.`),
    ...(has('controlplane') ? [] : ['One machine must be a control plane.']),
    ...(has('etcd') ? [] : ['One machine must run etcd.']),
    ...(has('worker') ? [] : ['One machine must be a worker.']),
  ]
}

function machineGaps({ way, address, name, port, roles }: MachineDraft): readonly string[] {
  return [
    ...(address.trim() === '' ? ['give its address.'] : []),
    ...(way === 'agent' && name.trim() === '' ? ['give its name: its agent registers with it.'] : []),
    ...(port.trim() === '' || /^\d{1,5}$/.test(port.trim()) ? [] : [`"${port}" is no port.`]),
    ...(roles.length === 0 ? ['choose a role.'] : []),
  ]
}

function duplicates(texts: readonly string[]): readonly string[] {
  return [...new Set(texts.filter((text, at) => text !== '' && texts.indexOf(text) !== at))]
}

/** A cluster file without its comments is an object. */
export function textOfFile(file: unknown): string {
  return typeof file === 'string' ? file : toYaml(file ?? {})
}

export interface SnapshotSchedule {
  readonly isOn: boolean
  readonly hours: number
  /** So many are kept. */
  readonly retention: number
}

const SCHEDULE_PATH = ['services', 'etcd', 'backup_config']
/** Of the server. */
const SCHEDULE: SnapshotSchedule = { isOn: true, hours: 12, retention: 6 }

/** The schedule in a cluster file. Undefined if the text is not YAML. */
export function scheduleIn(text: string): SnapshotSchedule | undefined {
  const document = parseDocument(text)
  if (document.errors.length > 0) return undefined
  const value: unknown = isMap(document.contents) ? document.getIn(SCHEDULE_PATH) : undefined
  const {
    enabled,
    interval_hours: hours,
    retention,
  } = (isCollection(value) ? value.toJS(document) : {}) as Partial<Record<string, unknown>>
  return {
    isOn: enabled !== false,
    hours: typeof hours === 'number' && hours > 0 ? hours : SCHEDULE.hours,
    retention: typeof retention === 'number' && retention > 0 ? retention : SCHEDULE.retention,
  }
}

/** The text with another schedule. Comments stay. */
export function withSchedule(text: string, { isOn, hours, retention }: SnapshotSchedule): string {
  const document = parseDocument(text)
  const fields = { enabled: isOn, interval_hours: hours, retention }
  for (const [field, value] of Object.entries(fields)) document.setIn([...SCHEDULE_PATH, field], value)
  return document.toString({ lineWidth: 0 })
}

/** The text with one more machine. Comments stay. */
export function withMachine(text: string, machine: MachineDraft): string {
  const document = parseDocument(text)
  if (document.hasIn(['nodes'])) document.addIn(['nodes'], document.createNode(nodeOf(machine)))
  else document.setIn(['nodes'], document.createNode([nodeOf(machine)]))
  return document.toString({ lineWidth: 0 })
}

/** The names of the machines in a file: a registered machine with such a name is built without SSH. */
export function namesIn(text: string): readonly string[] {
  const document = parseDocument(text)
  if (document.errors.length > 0) return []
  const { nodes } = (document.toJS() ?? {}) as { nodes?: unknown }
  if (!Array.isArray(nodes)) return []
  return (nodes as ({ hostname_override?: string | number; address?: string } | null)[]).map((node) =>
    String(node?.hostname_override ?? node?.address ?? ''),
  )
}
