/**
 * `kube-network-policies`: enforces network policies on a node outside of `up`. It has a separate identity, because it
 * reads pods of the whole cluster, which kubelet, kube-proxy and flanneld may not: see ADR 13.
 */
import { aborted } from '#lib/abort.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { servePages } from '#lib/http/pages.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'
import { removePolicies, startEnforcer } from '#network/policies/enforcer.ts'

import { machineNodeName, openNodeClient } from './node-client.ts'

const NAME = 'kube-network-policies'
/** The nftables table of family inet; only this program uses it. */
const TABLE = NAME

const FLAGS = {
  policies: {
    kubeconfig: flag(string, '', 'kubeconfig `file` (default: the service account of the pod)'),
    master: flag(string, '', '`address` of the API server; overrides the kubeconfig'),
    'hostname-override': flag(string, '', 'name of the node (default: the host name)'),
    'healthz-bind-address': flag(string, '', '`host:port` of the health server; empty disables it'),
    cleanup: flag(bool, false, 'remove the rules and exit'),
  },
  logs: LOG_FLAGS,
} as const satisfies FlagGroups

export const networkPolicies: Program = defineProgram({
  name: NAME,
  long:
    'kube-network-policies enforces NetworkPolicies on the node it runs on: it watches pods, namespaces and policies, and maintains ' +
    'a separate nftables table for the traffic of the node’s pods. The rules stay when it exits, so that policies remain ' +
    'in force: --cleanup removes them.',
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
  const pages = { '/healthz': () => health(enforcer.isApplied()) }
  await servePages(flags['healthz-bind-address'], { clock, log, closing, isFatal: true }, pages)
  await Promise.race([enforcer.ready, aborted(signal)])
  if (enforcer.isApplied()) log.info('Enforcing network policies', { node, table: TABLE })
  await aborted(signal)
  return 0
}

const health = (isEnforced: boolean): { status: number; body: string } =>
  isEnforced ? { status: 200, body: 'ok' } : { status: 503, body: 'network policies are not enforced yet' }

/** Throws ProgramError. */
async function cleanUp({ log }: Invocation<typeof FLAGS>): Promise<number> {
  try {
    await removePolicies(TABLE)
  } catch (cause) {
    throw new ProgramError(`failed to remove rules: ${(cause as Error).message}`, { cause })
  }
  log.info('Removed network policy rules', { table: TABLE })
  return 0
}
