/**
 * Generates the shell commands that install the agent on a machine and register it with the management server. Pure
 * functions.
 */
import { caChecksumOf } from '#supervisor/agent/server-link.ts'

import type { MachineRole } from '../kinds/machine.ts'

export interface CommandPlan {
  readonly serverUrl: string
  /** PEM; undefined: the certificate of the server is from a public authority. */
  readonly ca: string | undefined
  readonly token: string
  readonly roles: readonly MachineRole[]
  readonly nodeName?: string
  readonly address?: string
  readonly internalAddress?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly taints?: readonly string[]
}

export interface MachineCommands {
  /** Installs the agent as a service of systemd. */
  readonly command: string
  /** Runs the agent until it is stopped, for machines without systemd. */
  readonly foregroundCommand: string
  /** Only workers can run Windows. */
  readonly windowsCommand?: string
}

/** Values must be checked before: they have no characters that a shell would read. */
export function machineCommands(plan: CommandPlan): MachineCommands {
  const flags = flagsOf(plan)
  const isWorker = plan.roles.length === 1 && plan.roles[0] === 'worker'
  return {
    command: `sudo hyperkube node install ${flags}`,
    foregroundCommand: `sudo hyperkube node agent ${flags}`,
    ...(isWorker && { windowsCommand: `hyperkube.cmd node agent ${flags}` }),
  }
}

function flagsOf({ serverUrl, ca, token, roles, nodeName, address, internalAddress, ...marks }: CommandPlan): string {
  const { labels = {}, taints = [] } = marks
  const given: Readonly<Record<string, string | undefined>> = {
    server: serverUrl,
    token,
    'ca-checksum': ca === undefined ? undefined : caChecksumOf(ca),
    'node-name': nodeName,
    address,
    'internal-address': internalAddress,
  }
  return [
    ...Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`])),
    ...roles.map((role) => `--${role}`),
    ...Object.entries(labels).map(([key, value]) => `--label=${key}=${value}`),
    ...taints.map((taint) => `--taint=${taint}`),
  ].join(' ')
}
