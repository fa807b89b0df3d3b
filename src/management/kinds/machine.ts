/**
 * The Machine kind of the management server: a machine whose agent has registered as a node of one cluster. It stores
 * the hash of the agent's credential, which is not valid without the object.
 */
import type { Kind } from '#apis/kinds.ts'
import type { Condition } from '#meta/conditions.ts'
import type { KubeObject } from '#meta/object.ts'
import { NODE_ROLES, type NodeRole } from '#supervisor/agent/parameters.ts'

import {
  BOOLEAN,
  CONDITIONS,
  defineManagementKind,
  type ManagementKind,
  immutable,
  list,
  NAME,
  oneOf,
  record,
  TEXT,
  TIME,
} from './definition.ts'

export type MachineRole = NodeRole
export const MACHINE_ROLES: readonly MachineRole[] = NODE_ROLES

export interface Machine extends KubeObject {
  readonly spec: MachineSpec
  readonly status?: MachineStatus
}

/** The request of the agent at its registration. */
export interface MachineSpec {
  readonly cluster: string
  /** The name of its Node; unique in the cluster. */
  readonly nodeName: string
  readonly roles: readonly MachineRole[]
  /** Empty: there is none but the internal address. */
  readonly address?: string
  /** For the other machines of the cluster. */
  readonly internalAddress?: string
  readonly labels?: Readonly<Record<string, string>>
  /** `key=value:effect`. */
  readonly taints?: readonly string[]
  /** SHA-256 of the credential, in hex. */
  readonly credentialHash: string
  /** The name of the RegistrationToken that let it register. */
  readonly registeredBy?: string
  /** The server has a plan for it, or will have one: see `links/plan-route.ts`. */
  readonly hasPlan?: boolean
}

export interface MachineStatus {
  readonly conditions?: readonly Condition[]
  readonly os?: string
  readonly architecture?: string
  readonly hostname?: string
  readonly agentVersion?: string
  /** The address from which the agent has connected. */
  readonly address?: string
  readonly connectedAt?: string
  readonly disconnectedAt?: string
}

/** Whether the agent is connected. */
export const MACHINE_CONNECTED = 'Connected'

export const MACHINE: ManagementKind<Machine> = defineManagementKind<Machine>({
  kind: 'Machine',
  plural: 'machines',
  description: 'A machine of a cluster, whose agent has registered with the server.',
  spec: record(
    {
      cluster: immutable(NAME),
      nodeName: immutable(NAME),
      roles: { ...list(oneOf(...MACHINE_ROLES), MACHINE_ROLES.length), minItems: 1 },
      address: TEXT,
      internalAddress: TEXT,
      labels: { type: 'object', maxProperties: 100, additionalProperties: { type: 'string', maxLength: 63 } },
      taints: list(TEXT, 100),
      credentialHash: { type: 'string', pattern: '^[0-9a-f]{64}$' },
      registeredBy: TEXT,
      hasPlan: BOOLEAN,
    },
    ['cluster', 'nodeName', 'roles', 'credentialHash'],
  ),
  status: record({
    conditions: CONDITIONS,
    os: TEXT,
    architecture: TEXT,
    hostname: TEXT,
    agentVersion: TEXT,
    address: TEXT,
    connectedAt: TIME,
    disconnectedAt: TIME,
  }),
  columns: [
    { name: 'Cluster', jsonPath: '.spec.cluster' },
    { name: 'Node', jsonPath: '.spec.nodeName' },
    { name: 'Roles', jsonPath: '.spec.roles' },
    { name: 'Connected', jsonPath: '.status.conditions[?(@.type=="Connected")].status' },
  ],
})
export const Machines: Kind<Machine> = MACHINE.kind
