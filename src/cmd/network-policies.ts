/**
 * `kube-network-policies`: holds network policies on this node, for nodes that are not of `up`. It has an identity of its own because it
 * reads pods of the whole cluster, which no kubelet, kube-proxy or flanneld may: see ADR 13.
 */
import { aborted } from '#lib/abort.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { servePages } from '#lib/http/pages.ts'
import { LOG_FLAGS } from '#lib/log-flags.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'
import { removePolicies, startEnforcer } from '#network/policies/enforcer.ts'

import { machineNodeName, openNodeClient } from './node-client.ts'

const NAME = 'kube-network-policies'
/** Of nftables, family inet; nobody else's. */
const TABLE = NAME

const FLAGS = {
  policies: {
    kubeconfig: flag(string, '', 'kubeconfig `file` (default: as a pod)'),
    master: flag(string, '', '`address` of the API server, instead of that of the kubeconfig'),
    'hostname-override': flag(string, '', 'name of the node (default: that of the machine)'),
    'healthz-bind-address': flag(string, '', '`host:port` on which health is asked for; empty: none'),
    cleanup: flag(bool, false, 'removes the rules and exits'),
  },
  logs: LOG_FLAGS,
} as const satisfies FlagGroups

export const networkPolicies: Program = defineProgram({
  name: NAME,
  long:
    'kube-network-policies holds NetworkPolicies on the node it runs on: it follows pods, namespaces and policies, and keeps rules ' +
    'in a table of nftables of its own through which traffic of the node’s pods passes. Rules stay when it ends, so that pods keep ' +
    'their policies: --cleanup removes them.',
  version: kubernetesVersion(),
  flags: FLAGS,
  run: runPolicies,
})

async function runPolicies(invocation: Invocation<typeof FLAGS>, signal: AbortSignal): Promise<number> {
  const { flags, clock, random, log } = invocation
  if (flags.cleanup) return cleanUp(invocation)
  await using closing = new AsyncDisposableStack()
  const where = { kubeconfig: flags.kubeconfig, master: flags.master }
  const client = await openNodeClient(invocation, closing, { name: NAME, where })
  const node = machineNodeName(flags['hostname-override'])
  const enforcer = startEnforcer({ client, clock, random, log, node, table: TABLE })
  closing.defer(() => enforcer.stop())
  const pages = { '/healthz': () => health(enforcer.isHeld()) }
  await servePages(flags['healthz-bind-address'], { clock, log, closing, isFatal: true }, pages)
  await Promise.race([enforcer.ready, aborted(signal)])
  if (enforcer.isHeld()) log.info('Network policies hold', { node, table: TABLE })
  await aborted(signal)
  return 0
}

const health = (isHeld: boolean): { status: number; body: string } =>
  isHeld ? { status: 200, body: 'ok' } : { status: 503, body: 'network policies do not hold' }

/** Throws ProgramError. */
async function cleanUp({ log }: Invocation<typeof FLAGS>): Promise<number> {
  try {
    await removePolicies(TABLE)
  } catch (cause) {
    throw new ProgramError(`rules could not be removed: ${(cause as Error).message}`, { cause })
  }
  log.info('Rules were removed', { table: TABLE })
  return 0
}
