/**
 * Registers the agents of machines with a token and identifies their later connections by credential. Only the hash
 * of the credential is stored; no machine can take another's name, cluster or roles.
 */
import { createHash } from 'node:crypto'

import { semanticEqual } from '#meta/object.ts'
import { conflictError, forbiddenError, unauthorizedError } from '#meta/status-errors.ts'
import { isAlreadyExists } from '#meta/status.ts'

import { Clusters } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import { type Machine, type MachineSpec, Machines } from '../kinds/machine.ts'
import type { RegistrationToken } from '../kinds/registration-token.ts'
import type { ManagementObjects } from '../objects.ts'
import type { RouteCall } from '../port/route.ts'
import { credentialOf, hashOf, isSame, parametersIn, tokenOf } from './agent-request.ts'
import { type MachineParameters, readMachineParameters } from './machine-parameters.ts'
import { findToken, useOnce } from './registration-check.ts'
import { removedNode } from './removed-machines.ts'

export interface IdentifiedMachine {
  readonly machine: Machine
  readonly status: MachineParameters['status']
}

const RESOURCE = { group: GROUP, resource: 'machines' }

/** The machine of the credential in the request. Throws StatusError. */
export function connectMachine(objects: ManagementObjects, call: RouteCall): IdentifiedMachine {
  const { spec, status } = readMachineParameters(parametersIn(call))
  const machine = machineOf(objects, hashOf(credentialOf(call)))
  // A wrong credential, one that another machine uses, and one of a removed cluster look the same.
  const isKnown = machine?.spec.nodeName === spec.nodeName && objects.get(Clusters, machine.spec.cluster) !== undefined
  if (!isKnown) throw unauthorizedError('Unauthorized')
  return { machine, status }
}

export function machineOf(objects: Pick<ManagementObjects, 'list'>, hash: string): Machine | undefined {
  return objects.list(Machines).find(({ spec }) => isSame(spec.credentialHash, hash))
}

/** Creates the Machine, or changes what it requests. Throws StatusError. */
export async function registerMachine(objects: ManagementObjects, call: RouteCall): Promise<IdentifiedMachine> {
  const { spec, status } = readMachineParameters(parametersIn(call))
  const hash = hashOf(credentialOf(call))
  const token = findToken(objects, tokenOf(call), 'machine')
  const known = machineOf(objects, hash)
  if (known !== undefined) return { machine: await registerAgain(objects, { known, spec, token }), status }
  // A machine that was removed needs a new credential, which its agent makes after it has cleaned the machine.
  if (token === undefined || (await removedNode(objects, hash)) !== undefined) throw unauthorizedError('Unauthorized')
  return { machine: await create(objects, token, { ...spec, credentialHash: hash }), status }
}

interface SecondRegistration {
  readonly known: Machine
  readonly spec: MachineParameters['spec']
  /** Undefined: the agent shows no token that can be used. */
  readonly token: RegistrationToken | undefined
}

/** Without a change it is a connection: the answer to the first registration may have been lost. */
async function registerAgain(objects: ManagementObjects, { known, spec, token }: SecondRegistration): Promise<Machine> {
  const { name = '' } = known.metadata
  if (known.spec.nodeName !== spec.nodeName)
    throw conflictError(RESOURCE, name, `this machine is registered as "${known.spec.nodeName}"`)
  if (semanticEqual({ ...known.spec, ...spec }, known.spec)) return known
  if (token?.spec.cluster !== known.spec.cluster) throw unauthorizedError('Unauthorized')
  refuseRoles(token, spec)
  await useOnce(objects, token)
  return objects.change(Machines, name, (now) => ({ ...now, spec: { ...now.spec, ...spec } }))
}

type Requested = Omit<MachineSpec, 'cluster'>

async function create(objects: ManagementObjects, token: RegistrationToken, requested: Requested): Promise<Machine> {
  const cluster = objects.get(Clusters, token.spec.cluster)
  if (cluster === undefined) throw unauthorizedError('Unauthorized')
  refuseRoles(token, requested)
  const { name: clusterName = '', uid = '' } = cluster.metadata
  const name = machineName(clusterName, requested.nodeName)
  const isTaken = (): never => {
    const why = `a machine named "${requested.nodeName}" is registered already; remove it first`
    throw conflictError(RESOURCE, name, why)
  }
  if (objects.get(Machines, name) !== undefined) isTaken()
  await useOnce(objects, token)
  const ownerReferences = [{ apiVersion: `${GROUP}/v1`, kind: 'Cluster', name: clusterName, uid }]
  const spec = { ...requested, cluster: clusterName, registeredBy: token.metadata.name ?? '' }
  return objects.create(Machines, { metadata: { name, ownerReferences }, spec }).catch((error: unknown) => {
    throw isAlreadyExists(error) ? isTaken() : error
  })
}

function refuseRoles({ spec }: RegistrationToken, { roles }: Pick<MachineSpec, 'roles'>): void {
  const other = roles.find((role) => !(spec.roles ?? []).includes(role))
  if (other !== undefined) throw forbiddenError(RESOURCE, '', `the token does not allow the role ${other}`)
}

const DIGITS = 12

/** Two machines of a cluster cannot have the same name, however many servers register them. */
function machineName(cluster: string, nodeName: string): string {
  return `m-${createHash('sha256').update(`${cluster}/${nodeName}`).digest('hex').slice(0, DIGITS)}`
}
