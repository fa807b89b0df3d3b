/** Who kube-proxy is to the API server, and the node that it is on. */
import { hostname } from 'node:os'

import { type Node, Nodes } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { programConfig } from '#client/config.ts'
import { openConnection } from '#client/connection.ts'
import { until, UntilTimeout } from '#client/until.ts'
import { ProgramError } from '#lib/program.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'
import { userAgent } from '#model/version.ts'

import type { ProxyProgram } from './program.ts'

/** Throws ProgramError for what the user can act on. */
export async function connect(program: ProxyProgram): Promise<ApiClient> {
  const { env, cwd, readFile, clock, log, closing, settings, configuration } = program
  const where = { kubeconfig: configuration.clientConnection.kubeconfig, master: settings.master }
  try {
    const config = await programConfig(where, { env, cwd, readFile, warn: (text) => log.info(text) })
    const onError = (error: unknown): void => log.error(error, 'refreshing credentials')
    const connection = await openConnection(config, { clock, readFile, env, onError })
    closing.defer(() => connection.close())
    return new ApiClient({ ...connection, clock, userAgent: userAgent('kube-proxy') })
  } catch (cause) {
    if (cause instanceof ConfigError) throw new ProgramError(cause.message, { cause })
    throw cause
  }
}

export function nodeNameOf({ settings, configuration }: ProxyProgram): string {
  const asked = settings['hostname-override'] === '' ? configuration.hostnameOverride : settings['hostname-override']
  const name = (asked === '' ? hostname() : asked).trim().toLowerCase()
  if (name === '') throw new ProgramError('empty hostname is invalid')
  return name
}

/** A node that is being made is waited for; one with blocks for pods, where those tell who is local. */
const NODE_MS = 30_000
const CIDR_MS = 5 * 60_000

/** Undefined: it did not come. Throws ProgramError where nothing can be done without it. */
export async function findNode(program: ProxyProgram, client: ApiClient, name: string): Promise<Node | undefined> {
  const { log, signal, configuration } = program
  const needsCidr = configuration.detectLocalMode === 'NodeCIDR'
  const isThere = (node: Node | undefined): boolean =>
    node !== undefined && (!needsCidr || (node.spec.podCIDR ?? '') !== '')
  try {
    const asked = { client, kind: Nodes, name, signal, timeoutMs: needsCidr ? CIDR_MS : NODE_MS }
    return await until({ ...asked, onError: (error) => log.error(error, 'Failed to retrieve node info') }, isThere)
  } catch (cause) {
    if (!(cause instanceof UntilTimeout)) throw cause
    if (needsCidr) throw new ProgramError(`node "${name}" has no podCIDR: ${cause.message}`, { cause })
    log.info('The node is not there; its addresses are not known', { node: name })
    return undefined
  }
}
