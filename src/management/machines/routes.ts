/**
 * The HTTP routes for the machines of a cluster. Members of the cluster list them; only its owners create
 * registration commands and remove machines.
 */
import { badRequestError, forbiddenError, notFoundError } from '#meta/status-errors.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'

import { createRegistrationToken, type MachineGrant } from '../clusters/registration.ts'
import {
  type ClusterAccess,
  CLUSTERS,
  ownedCluster,
  type PersonCall,
  personRoute,
  refuseUnknown,
  viewOf,
  visibleCluster,
} from '../clusters/requests.ts'
import type { Cluster } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import { type Machine, MACHINE_ROLES, type MachineRole, Machines } from '../kinds/machine.ts'
import { RegistrationTokens } from '../kinds/registration-token.ts'
import { isAddress, labelsOf, taintsOf } from '../links/machine-parameters.ts'
import type { ManagementObjects } from '../objects.ts'
import type { Reply, Route } from '../port/route.ts'
import type { ObjectWatches } from '../watches/object-watches.ts'
import { type CommandPlan, machineCommands } from './commands.ts'

export interface MachineRoutesOptions extends ClusterAccess {
  readonly watches: ObjectWatches
  /** `https://manager.example`. */
  readonly serverUrl: () => string
  /** PEM; undefined: the certificate of the server is from a public authority. */
  readonly ca: () => string | undefined
}

export function machineRoutes(options: MachineRoutesOptions): readonly Route[] {
  const path = '/v3/clusters/:cluster/machines'
  return [
    personRoute('GET', path, (call) => listMachines(options, call)),
    personRoute('POST', `${path}/registration`, (call) => createRegistration(options, call)),
    personRoute('DELETE', `${path}/:machine`, (call) => removeMachine(options, call)),
  ]
}

/** Members of projects only may not see the addresses of machines. */
function listMachines(options: MachineRoutesOptions, call: PersonCall): Promise<Reply> {
  const { memberships, watches } = options
  const { metadata } = visibleCluster(options, call)
  const { name = '' } = metadata
  const isMember =
    memberships.isAdministrator(call.person.user) || memberships.clusterRoles(call.person.user, name).length > 0
  if (!isMember) throw forbiddenError(CLUSTERS, name, 'only members of the cluster may see its machines')
  const isVisible = ({ spec }: Machine): boolean => spec.cluster === name
  return watches.serve(call, { kind: Machines, isVisible, view: machineView })
}

function machinesOf(objects: ManagementObjects, cluster: string): readonly Machine[] {
  return objects.list(Machines).filter(({ spec }) => spec.cluster === cluster)
}

function machineView(machine: Machine): object {
  const { credentialHash: _, ...spec } = machine.spec
  return { ...viewOf(machine), spec }
}

/** The commands for the person who connects machines. The token is shown here only. */
async function createRegistration(options: MachineRoutesOptions, call: PersonCall): Promise<Reply> {
  const { objects, serverUrl, ca } = options
  const cluster = ownedCluster(options, call)
  refuseOwn(cluster)
  const { grant, settings } = registrationIn(await call.readBody())
  const token = await createRegistrationToken(objects, cluster, call.person.user.metadata.name ?? '', grant)
  const commands = machineCommands({ serverUrl: serverUrl(), ca: ca(), token, roles: grant.roles, ...settings })
  return { status: 201, body: { token, ...grant, ...commands } }
}

function refuseOwn({ spec }: Cluster): void {
  if (spec.source === 'local' || spec.source === 'up')
    throw badRequestError('the cluster runs on the machine of the server; no machines can join it')
}

const MAX_USES = 1000
const MAX_HOURS = 7 * 24
const DAY_HOURS = 24

type Settings = Pick<CommandPlan, 'nodeName' | 'address' | 'internalAddress' | 'labels' | 'taints'>

function registrationIn(body: Readonly<Record<string, unknown>>): {
  readonly grant: MachineGrant
  readonly settings: Settings
} {
  const { roles = ['worker'], uses = 1, validHours = DAY_HOURS, nodeName, address, internalAddress, ...rest } = body
  const { labels, taints, ...unknown } = rest
  refuseUnknown(unknown)
  const isName = nodeName === undefined || (typeof nodeName === 'string' && dns1123Subdomain(nodeName).length === 0)
  if (!isName) throw badRequestError('nodeName must be a DNS name in lower case')
  return {
    grant: {
      roles: rolesIn(roles),
      uses: wholeNumber('uses', uses, MAX_USES),
      validHours: wholeNumber('validHours', validHours, MAX_HOURS),
    },
    settings: {
      ...(nodeName !== undefined && { nodeName }),
      ...addressField('address', address),
      ...addressField('internalAddress', internalAddress),
      ...(labels !== undefined && { labels: labelsOf(labels) }),
      ...(taints !== undefined && { taints: taintsOf(taints) }),
    },
  }
}

function rolesIn(value: unknown): readonly MachineRole[] {
  const given: readonly unknown[] = Array.isArray(value) ? value : []
  const roles = MACHINE_ROLES.filter((role) => given.includes(role))
  if (roles.length === 0 || roles.length !== given.length)
    throw badRequestError(`roles must be a list of ${MACHINE_ROLES.join(', ')}`)
  return roles
}

function wholeNumber(name: string, value: unknown, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > max)
    throw badRequestError(`${name} must be a number from 1 to ${max}`)
  return value
}

/** Keywords for the source of an address look like names. */
function addressField<K extends string>(name: K, value: unknown): Partial<Record<K, string>> {
  if (value === undefined) return {}
  if (typeof value !== 'string' || value === '' || !isAddress(value))
    throw badRequestError(`${name} must be an address`)
  return { [name]: value } as Record<K, string>
}

/** The token that let it register ends too, so that the machine cannot come back by itself. */
async function removeMachine(options: MachineRoutesOptions, call: PersonCall): Promise<Reply> {
  const { objects } = options
  const { metadata } = ownedCluster(options, call)
  const { machine = '' } = call.params
  const found = machinesOf(objects, metadata.name ?? '').find((one) => one.metadata.name === machine)
  if (found === undefined) throw notFoundError({ group: GROUP, resource: 'machines' }, machine)
  const { registeredBy } = found.spec
  if (registeredBy !== undefined && registeredBy !== '') await objects.delete(RegistrationTokens, registeredBy)
  await objects.delete(Machines, machine)
  return { status: 200, body: {} }
}
