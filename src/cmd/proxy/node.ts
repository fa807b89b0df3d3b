/** Creates the API client of kube-proxy and reads its Node. */
import { type Node, Nodes } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { until, UntilTimeout } from '#client/until.ts'
import { ProgramError } from '#lib/program.ts'

import { machineNodeName, openNodeClient } from '../node-client.ts'
import type { ProxyProgram } from './program.ts'

export function connect(program: ProxyProgram): Promise<ApiClient> {
  const { settings, configuration, closing } = program
  const where = { kubeconfig: configuration.clientConnection.kubeconfig, master: settings.master }
  return openNodeClient(program, closing, { name: 'kube-proxy', where })
}

export function nodeNameOf({ settings, configuration }: ProxyProgram): string {
  const requested =
    settings['hostname-override'] === '' ? configuration.hostnameOverride : settings['hostname-override']
  return machineNodeName(requested)
}

/** Waits for the Node to be created and, if local pods are detected by node CIDR, for its podCIDRs. */
const NODE_MS = 30_000
const CIDR_MS = 5 * 60_000

/** Undefined if the Node does not appear. Throws ProgramError if it is required. */
export async function findNode(program: ProxyProgram, client: ApiClient, name: string): Promise<Node | undefined> {
  const { log, signal, configuration } = program
  const needsCidr = configuration.detectLocalMode === 'NodeCIDR'
  const isThere = (node: Node | undefined): boolean =>
    node !== undefined && (!needsCidr || (node.spec.podCIDR ?? '') !== '')
  try {
    const lookup = { client, kind: Nodes, name, signal, timeoutMs: needsCidr ? CIDR_MS : NODE_MS }
    return await until({ ...lookup, onError: (error) => log.error(error, 'Failed to retrieve node info') }, isThere)
  } catch (cause) {
    if (!(cause instanceof UntilTimeout)) throw cause
    if (needsCidr) throw new ProgramError(`node "${name}" has no podCIDR: ${cause.message}`, { cause })
    log.info('Node does not exist; using no node addresses', { node: name })
    return undefined
  }
}
